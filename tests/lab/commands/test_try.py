"""tool lab try"""

import os
import re
from pathlib import Path

import pytest

from sampletool.kit.context import Context
from sampletool.kit.contract.errors import ToolError
from sampletool.kit.safety.signals import Signals
from sampletool.kit.testing.tool import Tool
from sampletool.lab.commands.lab import try_
from sampletool.lab.starter_files import exercise_names, starter_text
from sampletool.lab.tried import trying
from tests.lab.support import shared_fork_server

LOST = """
from pathlib import Path

def prepare():
    Path("log").write_text("-")

def worker(name):
    with open("log", "r+") as log:
        text = log.read()
        log.seek(0)
        log.write(text + name)

def invariant():
    if len(Path("log").read_text()) != 3:
        return "a line is lost."
"""
COUNTER = """
from pathlib import Path

def prepare():
    Path("count").write_text("0")

def worker(name):
    Path("count").write_text(str(int(Path("count").read_text()) + 1))

def invariant():
    if Path("count").read_text() != "2":
        return "a count is lost."
"""
HOLDS = LOST.replace('"r+"', '"a+"').replace("text + name", "name")


def test_the_shortest_schedule_that_breaks_it_is_drawn_and_can_be_replayed(tool: Tool) -> None:
    (tool.cwd / "mine.py").write_text(LOST)
    before = sorted(os.walk(os.environ["TMPDIR"]))

    ran = tool("lab", "try", "mine.py")
    again = tool(
        "lab", "try", "mine.py", "--schedule", ran.error["context"]["schedule"], "--format", "text"
    )

    assert (ran.status, ran.code) == (3, "RACE_FOUND")
    tried = ran.response["data"]
    assert (tried["is_complete"], tried["run"]["reason"]) == (True, "a line is lost.")
    assert (tried["workers"], tried["rounds"], tried["kill"]) == (2, 1, False)
    assert [event["step"] for event in tried["run"]["events"] if event["worker"] == "A"] == [
        "open log",
        "write log",
    ]
    assert again.status == 3
    assert re.search(r"  4  +write log +log: -[AB]   <== broken", again.text)
    assert [path.name for path in tool.cwd.iterdir()] == ["mine.py"]
    assert sorted(os.walk(os.environ["TMPDIR"])) == before


def test_a_schedule_on_which_nothing_else_is_wrong_is_drawn_before_a_shorter_one(
    tool: Tool,
) -> None:
    (tool.cwd / "mine.py").write_text(COUNTER)

    ran = tool("lab", "try", "mine.py")

    run = ran.response["data"]["run"]
    assert (run["reason"], run["also"]) == ("a count is lost.", [])
    assert any("invalid literal" in reason for reason in ran.response["data"]["reasons"])


def test_the_verdict_states_what_was_explored_and_what_was_not(tool: Tool) -> None:
    (tool.cwd / "mine.py").write_text(HOLDS)

    ran = tool("lab", "try", "mine.py", "--format", "text")

    assert ran.status == 0
    text = " ".join(ran.text.split())
    assert " schedules of 2 workers, 1 round each, no kills: 0 broken." in text
    assert "Not explored: more workers (--workers); more rounds (--rounds); kills (--kill);" in text
    assert "threads and shared memory." in text
    assert text.endswith("Within this bound, no schedule breaks your rule.")


def test_after_an_exercise_is_solved_the_next_one_is_named(tool: Tool) -> None:
    exercises = exercise_names()
    for name in (exercises[0], exercises[-1]):
        (title, *_) = starter_text(name).splitlines()
        (tool.cwd / f"my-{name}.py").write_text(f'{title}\n"""\n{HOLDS}')

    first = tool("lab", "try", f"my-{exercises[0]}.py")
    last = tool("lab", "try", f"my-{exercises[-1]}.py", "--format", "text")

    assert first.data["next_exercise"] == exercises[1]
    assert " ".join(last.text.split()).endswith("You have solved the last exercise.")


def test_more_schedules_than_are_run_are_no_success(
    tool: Tool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(try_, "MOST_SCHEDULES", 2)
    file = Path(tool.cwd / "mine.py")
    file.write_text(HOLDS)

    with trying(file, shared_fork_server()) as tried_file:
        tried = try_.try_all(Context(Signals()), tried_file)
        with pytest.raises(ToolError, match=r"has more than 2 schedules.* These 2 hold") as refused:
            try_.judge(tried_file, tried)

    assert refused.value.code == "TOO_MANY_SCHEDULES"
    assert "There are more schedules, which were not run." in tried.verdict()


def test_a_mistake_is_named(tool: Tool) -> None:
    (tool.cwd / "mine.py").write_text("worker = 1\n")

    nowhere = tool("lab", "try", "nowhere.py")
    assert (nowhere.code, nowhere.error["context"]["path"]) == (
        "FILE_NOT_FOUND",
        str(tool.cwd / "nowhere.py"),
    )
    assert tool("lab", "try", ".").code == "UNSAFE_PATH"
    assert tool("lab", "try", "mine.py").code == "CANNOT_TRY"


def test_a_wrong_value_of_workers_is_reported_before_an_invariant_that_cannot_fail(
    tool: Tool,
) -> None:
    source = 'WORKERS = "thread"\ndef worker(name): pass\ndef invariant(): pass\n'
    (tool.cwd / "mine.py").write_text(source)

    ran = tool("lab", "try", "mine.py")

    assert ran.code == "CANNOT_TRY"
    assert 'line 1: WORKERS must be "threads" or "processes"' in ran.error["message"]
