"""A file of one's own, stepped through every schedule: what is a step, what is refused, what is found."""

from contextlib import closing
from itertools import islice
from pathlib import Path

import pytest

from sampletool.kit.testing.scale import SOAK, scale
from sampletool.lab.errors import CannotTry
from sampletool.lab.explore import every_run
from sampletool.lab.recording import Recording
from sampletool.lab.tried import trying

HOLDS = "\ndef invariant(): pass\n"
COUNTED = """
from pathlib import Path

def prepare():
    Path("count").write_text("0")

def invariant():
    assert Path("count").read_text() == "2", f"the file says {Path('count').read_text()}."
"""


def written(tmp_path: Path, text: str) -> Path:
    file = tmp_path / "own" / "mine.py"
    file.parent.mkdir(exist_ok=True)
    file.write_text(text)
    return file


def runs_of(tmp_path: Path, text: str, most: int | None = None) -> list[Recording]:
    file = written(tmp_path, text)
    with trying(file) as follow, closing(every_run(follow)) as runs:
        return list(islice(runs, most))


def steps(recording: Recording) -> list[str]:
    return [f"{event.worker} {event.step}" for event in recording.events]


def bad(recordings: list[Recording]) -> list[Recording]:
    return [recording for recording in recordings if recording.is_broken]


def test_reading_and_writing_one_open_file_are_two_steps_and_the_lost_update_is_found(tmp_path: Path) -> None:
    worker = """
def worker(name):
    with open("count", "r+") as file:
        count = int(file.read())
        file.seek(0)
        file.write(str(count + 1))
"""
    runs = runs_of(tmp_path, COUNTED + worker)

    assert steps(runs[0]) == ["A open count", "A write count", "B open count", "B write count"]
    assert {run.schedule for run in runs} - {run.schedule for run in bad(runs)} == {"A1 A2 B1 B2", "B1 B2 A1 A2"}
    assert {run.reason for run in bad(runs)} == {"the file says 1."}
    assert runs[0].events[0].at == "mine.py:11"


def test_a_worker_that_waits_for_a_lock_holds_on_every_schedule(tmp_path: Path) -> None:
    worker = """
import fcntl
def worker(name):
    with open("lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        count = int(Path("count").read_text())
        Path("count").write_text(str(count + 1))
"""
    runs = runs_of(tmp_path, COUNTED + worker, most=scale(12, 1000))

    assert bad(runs) == []
    assert any(event.outcome == "blocked" for run in runs for event in run.events)


def test_between_two_short_locks_there_is_room_for_another(tmp_path: Path) -> None:
    worker = """
import fcntl
def worker(name):
    with open("lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        count = int(Path("count").read_text())
    with open("lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        Path("count").write_text(str(count + 1))
"""
    runs = runs_of(tmp_path, COUNTED + worker, most=12)
    alone, broken = runs[0], bad(runs)[0]

    assert {event.outcome for event in alone.events} == {"done"}, "no worker waits for itself"
    assert broken.reason == "the file says 1."


def test_looking_whether_it_is_there_is_a_step_and_making_it_again_and_again_is_waiting(tmp_path: Path) -> None:
    looks = 'import os\ndef worker(name):\n    if not os.path.exists("x"): os.mkdir("x")\n'
    insists = """
import os
def worker(name):
    while True:
        try:
            os.mkdir("x")
            break
        except FileExistsError:
            pass
    os.rmdir("x")
"""
    naive, waiting = runs_of(tmp_path, looks + HOLDS), runs_of(tmp_path, insists + HOLDS)

    assert steps(naive[0]) == ["A look at x", "A make x", "B look at x"]
    failed = "B failed, line 3: FileExistsError: [Errno 17] File exists: 'x'."
    assert {run.schedule: run.reason for run in naive}["A1 B1 A2 B2"] == failed
    assert bad(waiting) == []


WRONG = {
    "line 1: SyntaxError": "def worker(name:",
    "no function worker()": HOLDS,
    "no function invariant()": "def worker(name): pass",
    "came to none of its steps": f"def worker(name): pass{HOLDS}",
    "B fails although no other is at work, line 2: FileEx": f"def worker(name):\n  open('x', 'x').close(){HOLDS}",
    f"changes {Path(__file__)}, outside of its own": f"def worker(name): open({__file__!r}, 'a'){HOLDS}",
    "changes /made, outside of its own": f"import os\ndef worker(name): os.mkdir('/made'){HOLDS}",
    "does not end: 500 steps": f"def worker(name):\n  while True: open('x', 'a').close(){HOLDS}",
    "use fcntl.flock": f"import fcntl\ndef worker(name): fcntl.lockf(open('x', 'w'), fcntl.LOCK_EX){HOLDS}",
    "it uses SQLite": f"import sqlite3\ndef worker(name): sqlite3.connect('db'){HOLDS}",
    "line 3: ZeroDivisionError": f"def worker(name): open('x', 'a'){HOLDS}def prepare(): 1/0",
}
if SOAK:
    WRONG["neither ends nor does anything"] = f"def worker(name):\n  while True: pass{HOLDS}"


@pytest.mark.parametrize("problem", WRONG)
def test_a_file_that_cannot_be_tried_is_refused_with_the_place(tmp_path: Path, problem: str) -> None:
    with pytest.raises(CannotTry) as refused:
        runs_of(tmp_path, WRONG[problem], most=3)

    assert problem in refused.value.message
    assert [file.name for file in (tmp_path / "own").iterdir()] == ["mine.py"]
