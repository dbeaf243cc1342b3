"""A learner's own file: what is a step, what is refused, and what is found."""

from contextlib import closing
from itertools import islice
from pathlib import Path

import pytest

from sampletool.lab.draw import timeline
from sampletool.lab.errors import CannotTry
from sampletool.lab.recording import Recording
from sampletool.lab.tried import Bound, trying
from tests.lab.support import shared_fork_server

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


def runs_of(
    tmp_path: Path, text: str, most: int | None = None, bound: Bound | None = None
) -> list[Recording]:
    file = written(tmp_path, text)
    with (
        trying(file, shared_fork_server(), bound) as tried_file,
        closing(tried_file.runs()) as runs,
    ):
        return [played.recording for played in islice(runs, most)]


def steps(recording: Recording) -> list[str]:
    return [f"{event.worker} {event.step}" for event in recording.events]


def bad(recordings: list[Recording]) -> list[Recording]:
    return [recording for recording in recordings if recording.is_broken]


def test_reading_and_writing_one_open_file_are_two_steps_and_the_lost_update_is_found(
    tmp_path: Path,
) -> None:
    worker = """
def worker(name):
    with open("count", "r+") as file:
        count = int(file.read())
        file.seek(0)
        file.write(str(count + 1))
"""
    runs = runs_of(tmp_path, COUNTED + worker)

    assert steps(runs[0]) == ["A open count", "A write count", "B open count", "B write count"]
    good = {run.schedule for run in runs if not run.is_broken}
    assert good == {"A1 A2 B1 B2", "B1 B2 A1 A2"}
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
    runs = runs_of(tmp_path, COUNTED + worker)

    assert bad(runs) == []
    assert {run.schedule.index("A3 ") < run.schedule.index("B3 ") for run in runs} == {True, False}


def test_a_worker_that_asks_for_a_held_lock_is_not_chosen(tmp_path: Path) -> None:
    worker = """
import fcntl
def worker(name):
    with open("lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        open("work", "w").close()
"""
    file = written(tmp_path, worker + HOLDS)

    with trying(file, shared_fork_server()) as tried_file:
        played = tried_file.follow("A1 B1")

    possible_while_a_has_the_lock = played.choices[3]
    assert played.recording.schedule.startswith("A1 B1 A2 A3")
    assert possible_while_a_has_the_lock == ["A3"]


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
    runs = runs_of(tmp_path, COUNTED + worker)
    alone, broken = runs[0], bad(runs)[0]

    assert {event.outcome for event in alone.events} == {"done"}, "no worker waits for itself"
    assert broken.reason == "the file says 1."


def test_looking_whether_it_is_there_is_a_step_and_making_it_again_and_again_is_waiting(
    tmp_path: Path,
) -> None:
    looks = """
import os
def worker(name):
    open(name, "w").close()
    if not os.path.exists("x"):
        os.mkdir("x")
"""
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
    naive = runs_of(tmp_path, looks + HOLDS)

    assert steps(naive[0])[:3] == ["A empty A", "A look at x", "A make x"]
    failed = "failed, line 6: FileExistsError: [Errno 17] File exists: 'x'."
    assert {run.reason for run in bad(naive)} == {f"A {failed}", f"B {failed}"}
    assert bad(runs_of(tmp_path, insists + HOLDS)) == []


WRONG = {
    "line 1: SyntaxError": "def worker(name:",
    "no function worker()": HOLDS,
    "no function invariant()": "def worker(name): pass",
    "worker() does nothing with files": f"def worker(name): pass{HOLDS}",
    "B fails although no other is at work, line 2: FileEx": (
        f"def worker(name):\n  open('x', 'x').close(){HOLDS}"
    ),
    f"changes {Path(__file__)}, outside of its own": (
        f"def worker(name): open({__file__!r}, 'a'){HOLDS}"
    ),
    "changes /made, outside of its own": f"import os\ndef worker(name): os.mkdir('/made'){HOLDS}",
    "does not end: 500 steps": f"def worker(name):\n  while True: open('x', 'a').write('x'){HOLDS}",
    "use fcntl.flock": (
        f"import fcntl\ndef worker(name): fcntl.lockf(open('x', 'w'), fcntl.LOCK_EX){HOLDS}"
    ),
    "worker() uses SQLite": f"import sqlite3\ndef worker(name): sqlite3.connect('db'){HOLDS}",
    "line 3: ZeroDivisionError": f"def worker(name): open('x', 'a'){HOLDS}def prepare(): 1/0",
}
WRONG["does not end: line 2 is in a loop that does nothing with files"] = (
    f"def worker(name):\n  while True: pass{HOLDS}"
)


@pytest.mark.parametrize("problem", WRONG)
def test_a_file_that_cannot_be_tried_is_refused_with_the_place(
    tmp_path: Path, problem: str
) -> None:
    with pytest.raises(CannotTry) as refused:
        runs_of(tmp_path, WRONG[problem], most=3)

    assert problem in refused.value.message
    assert [file.name for file in (tmp_path / "own").iterdir()] == ["mine.py"]


STEPPED = {
    "os.utime('x')": "set times of x",
    "os.setxattr('x', 'user.note', b'1')": "set attributes of x",
    "os.listxattr('x')": "look at x",
    "shutil.copyfile('x', 'y')": "copy into y",
    "os.fstat(fd)": "look at x",
    "os.lseek(fd, 0, os.SEEK_END)": "look at x",
    "os.readlink('link')": "look at link",
    "os.preadv(fd, [bytearray(1)], 0)": "read x",
    "os.pwritev(fd, [b'1'], 0)": "write x",
    "os.writev(fd, [b'1'])": "write x",
    "os.sendfile(fd, fd, 0, 1)": "copy into x",
    "os.ftruncate(fd, 0)": "truncate x",
    "os.scandir()": "list here",
    "os.access('x', os.R_OK)": "look at x",
    "os.open('.', os.O_RDONLY)": "open directory here",
    "fcntl.flock(fd, fcntl.LOCK_EX)": "lock file x",
    "fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)": "try to lock file x",
}


@pytest.mark.parametrize("call", STEPPED)
def test_every_call_that_has_to_do_with_files_is_a_step(tmp_path: Path, call: str) -> None:
    program = f"""
import fcntl, os, shutil
def prepare():
    open("x", "w").write("content")
    os.symlink("x", "link")
def worker(name):
    fd = os.open("x", os.O_RDWR)
    os.write(fd, b"1")
    {call}
{HOLDS}"""

    (run,) = runs_of(tmp_path, program, most=1)

    assert f"A {STEPPED[call]}" in steps(run)[2:]


REFUSED = {
    "subprocess.run(['true'])": "starts another program",
    "os.system('true')": "starts another program",
    "os.fork()": "forks a process",
    "threading.Thread(target=print).start()": "starts a thread",
    "mmap.mmap(-1, 1)": "uses memory that processes share",
    "ctypes.CDLL(None)": "calls C code",
    "socket.socket()": "uses a socket",
    "fcntl.lockf(open('x', 'w'), fcntl.LOCK_EX)": "takes a record lock",
    "time.time()": "reads the clock (time.time); leave the time out, or use a fixed number",
    "datetime.datetime.now()": "reads the clock (datetime.now)",
    "random.random()": "depends on chance (random.random); use the name of the worker",
    "os.urandom(1)": "depends on chance (os.urandom)",
    "uuid.uuid4()": "depends on chance (uuid.uuid4)",
    "os.kill(os.getpid(), 15)": "sends a signal",
    "tempfile.mkstemp()": "creates a file with a random name (tempfile.mkstemp); use a fixed name",
    "os.mkfifo('pipe')": "uses a special file",
}


@pytest.mark.parametrize("call", REFUSED)
def test_what_cannot_be_stepped_is_refused_by_name_and_line(tmp_path: Path, call: str) -> None:
    program = f"""
import ctypes, datetime, fcntl, mmap, os, random, socket, subprocess, tempfile
import threading, time, uuid
def worker(name):
    open("x", "w").close()
    {call}
{HOLDS}"""

    with pytest.raises(CannotTry) as refused:
        runs_of(tmp_path, program, most=1)

    assert f"line 6: worker() {REFUSED[call]}" in refused.value.message


def test_a_worker_can_ask_whether_the_owner_of_a_lock_is_alive(tmp_path: Path) -> None:
    program = """
import os
from pathlib import Path
def worker(name):
    if name == "A":
        Path("owner").write_text(str(os.getpid()))
        Path("work").touch()
    elif Path("owner").exists() and (owner := Path("owner").read_text()):
        try:
            os.kill(int(owner), 0)
            Path("found").write_text("alive")
        except ProcessLookupError:
            Path("found").write_text("dead")
def invariant(killed):
    if Path("found").exists():
        return Path("found").read_text()
"""

    runs = runs_of(tmp_path, program, bound=Bound(kill=True))

    reasons = {run.reason for run in runs}
    assert reasons == {None, "alive", "dead"}
    assert any("B look for a process" in steps(run) for run in runs)


def test_a_program_that_does_other_things_on_the_same_schedule_is_refused(tmp_path: Path) -> None:
    worker = """
def worker(name):
    Path("count").read_text()
    number = int(open("/proc/sys/kernel/random/uuid").read()[:8], 16)
    for _ in range(number % 8):
        Path("count").write_text("2")
"""

    with pytest.raises(CannotTry, match="not deterministic"):
        runs_of(tmp_path, COUNTED + worker)


def test_after_a_kill_the_invariant_is_told_who_was_killed(tmp_path: Path) -> None:
    program = """
from pathlib import Path
def worker(name):
    Path(name).touch()
    Path(f"{name}-done").touch()
def invariant(killed):
    if killed is None:
        assert Path("A-done").exists()
    else:
        assert killed == "A" and Path("B-done").exists()
        assert Path("A").exists() or not Path("A-done").exists()
"""

    runs = runs_of(tmp_path, program, bound=Bound(kill=True))

    killed_at = {run.schedule.split("A!")[0].count("A") for run in runs if "A!" in run.schedule}
    assert killed_at == {0, 1, 2, 3}, "touch() sets the times first, and then creates the file"
    assert bad(runs) == []


def test_always_is_judged_after_each_step_and_the_step_that_breaks_it_is_marked(
    tmp_path: Path,
) -> None:
    program = """
from pathlib import Path
def worker(name):
    if name == "A":
        Path("half").touch()
        Path("half").unlink()
    else:
        Path("other").touch()
def always():
    assert not Path("half").exists(), "half of it can be seen"
def invariant():
    assert True
"""

    runs = runs_of(tmp_path, program)

    assert {run.reason for run in runs} == {"half of it can be seen"}
    assert [event.step for event in runs[0].events if event.note == "broken"] == ["open half"]


SAVE = """
import os
from pathlib import Path
def prepare():
    Path("file").write_text("old")
def worker(name):
    if name == "A":
        with open("new", "w") as file:
            file.write("new")
            file.flush()
            {flush}
        os.replace("new", "file")
        directory = os.open(".", os.O_RDONLY)
        os.fsync(directory)
    else:
        Path("file").read_text()
def invariant():
    assert Path("file").read_text() == "new"
def after_power_cut(finished):
    text = Path("file").read_text()
    if finished:
        assert text == "new", f"after A: {{text!r}}"
    else:
        assert text in ("old", "new"), f"during A: {{text!r}}"
"""


@pytest.mark.parametrize(
    "flush", ["os.fsync(file.fileno())", "os.fdatasync(file.fileno())", "os.sync()"]
)
def test_what_was_flushed_survives_a_power_cut(tmp_path: Path, flush: str) -> None:
    runs = runs_of(tmp_path, SAVE.format(flush=flush))

    assert len(runs) > 1
    assert bad(runs) == []


def test_what_was_not_flushed_may_be_missing_after_a_power_cut(tmp_path: Path) -> None:
    (run,) = runs_of(tmp_path, SAVE.format(flush="pass"), most=1)

    assert run.reason == "After a power cut: during A: ''"
    broken = [event.step for event in run.events if event.note == "broken"]
    assert broken[0] == "rename to file"


def test_a_change_whose_state_after_a_power_cut_is_not_known_is_refused(tmp_path: Path) -> None:
    with pytest.raises(CannotTry, match=r"what os.pwrite leaves after a power cut is not known"):
        runs_of(tmp_path, SAVE.format(flush="os.pwrite(file.fileno(), b'new', 0)"), most=1)


def test_a_file_that_says_so_is_tried_with_kills(tmp_path: Path) -> None:
    program = """
from pathlib import Path
KILL = True
def worker(name):
    Path(name).touch()
def invariant(killed):
    assert Path("B").exists()
"""

    runs = runs_of(tmp_path, program)

    assert any("A!" in run.schedule for run in runs)
    assert bad(runs) == []


CREATING = {
    "os.open('x', os.O_CREAT | os.O_EXCL)": "create x",
    "os.mkdir('x')": "make x",
    "os.symlink('target', 'x')": "link x",
    "os.link('other', 'x')": "link x",
}


@pytest.mark.parametrize("call", CREATING)
def test_a_step_that_fails_to_create_a_file_says_so(tmp_path: Path, call: str) -> None:
    program = f"""
import os
def prepare():
    open("other", "w").close()
def worker(name):
    try:
        {call}
    except FileExistsError:
        pass
{HOLDS}"""

    (run,) = runs_of(tmp_path, program, most=1)

    assert steps(run) == [f"A {CREATING[call]}", f"B {CREATING[call]}: it exists"]


def test_the_picture_names_every_file_and_shows_more_than_a_few_characters(tmp_path: Path) -> None:
    program = f"""
from pathlib import Path
def worker(name):
    Path(f"file-of-{{name}}").write_text("word " * 12 + name)
{HOLDS}"""

    (run,) = runs_of(tmp_path, program, most=1)

    words = "word " * 12
    assert run.events[-1].state == f"file-of-A: {words}A  file-of-B: {words}B"
    assert max(len(line) for line in timeline(run, 80)) <= 80
