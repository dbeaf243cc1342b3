"""Partial-order reduction: it finds what full exploration finds, with fewer runs."""

from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

import pytest

from sampletool.kit.testing.scale import scale
from sampletool.lab.explore import run_every_schedule
from sampletool.lab.recording import Recording, Turn
from sampletool.lab.step_order import must_keep_order
from sampletool.lab.tried import trying
from tests.lab.support import shared_fork_server

COUNTER = """
from pathlib import Path

def prepare():
    Path("count").write_text("0")

def invariant():
    assert Path("count").read_text() == "2", "a count is lost"
"""

PROGRAMS = {
    "write beside and rename": COUNTER
    + """
def worker(name):
    count = int(Path("count").read_text())
    Path("count").rename(name)
    Path("count").write_text(str(count + 1))
""",
    "lock": COUNTER
    + """
import fcntl

def worker(name):
    with open("lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        Path("count").write_text(str(int(Path("count").read_text()) + 1))
""",
    "try to lock": COUNTER
    + """
import fcntl

def worker(name):
    with open("lock", "w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return
        Path("count").write_text("2")
""",
    "two locks in opposite order": """
from pathlib import Path
import fcntl

def prepare():
    Path("count").write_text("2")

def invariant():
    assert Path("count").read_text() == "2", "a count is lost"

def worker(name):
    with open(name, "w") as own, open({"A": "B", "B": "A"}[name], "w") as other:
        fcntl.flock(own, fcntl.LOCK_EX)
        fcntl.flock(other, fcntl.LOCK_EX)
""",
    "wait until a file is there": COUNTER
    + """
import os

def worker(name):
    if name == "A":
        Path("ready").touch()
    else:
        while not os.path.exists("ready"):
            pass
        Path("count").write_text("2")
""",
    "list a directory": COUNTER
    + """
import os

def worker(name):
    Path(name).touch()
    if len(os.listdir()) == 3:
        Path("count").write_text("2")
""",
}


def outcomes(runs: list[Recording]) -> set[tuple[str | None, str]]:
    """Return how the runs end: what is broken, and what is in the files."""
    return {(run.reason, run.events[-1].state) for run in runs}


@pytest.mark.parametrize("name", list(PROGRAMS)[: scale(4, len(PROGRAMS))])
def test_every_outcome_of_full_exploration_is_found_with_fewer_runs(
    tmp_path: Path, name: str
) -> None:
    file = tmp_path / "mine.py"
    file.write_text(PROGRAMS[name])
    with trying(file, shared_fork_server()) as tried_file:
        full = list(run_every_schedule(tried_file.follow))
        with closing(tried_file.runs()) as runs:
            reduced = [played.recording for played in runs]

    assert outcomes(reduced) == outcomes(full)
    assert {run.schedule for run in reduced} <= {run.schedule for run in full}
    assert len(reduced) < len(full)


def test_the_counter_has_seventy_schedules_and_four_classes(tmp_path: Path) -> None:
    file = tmp_path / "mine.py"
    file.write_text(
        COUNTER
        + """
def worker(name):
    count = int(Path("count").read_text())
    Path(f"new-{name}").write_text(str(count + 1))
    Path(f"new-{name}").rename("count")
"""
    )

    with trying(file, shared_fork_server()) as tried_file, closing(tried_file.runs()) as runs:
        reduced = [played.recording for played in runs]

    assert len(reduced) == 4
    assert sum(run.is_broken for run in reduced) == 2


def test_no_two_runs_are_of_one_class(tmp_path: Path) -> None:
    """Two schedules are of one class if each pair of conflicting steps has the same order."""
    file = tmp_path / "mine.py"
    file.write_text(PROGRAMS["try to lock"])

    orders = []
    with trying(file, shared_fork_server()) as tried_file, closing(tried_file.runs()) as runs:
        for played in runs:
            orders.append(order_of_conflicts(played.turns))

    assert len(orders) == len(set(orders))


def order_of_conflicts(turns: Sequence[Turn]) -> frozenset[tuple[str, str]]:
    order = set()
    for position, later in enumerate(turns):
        for earlier in turns[:position]:
            if must_keep_order(earlier, later):
                order.add((earlier.token, later.token))
    return frozenset(order)
