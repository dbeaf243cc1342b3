"""Reads and writes of shared objects that no assignment in a learner's file shows are steps too.

Each program loses its value only if the other thread runs between two of its statements.
"""

from contextlib import closing
from pathlib import Path

import pytest

from sampletool.lab.errors import CannotTry
from sampletool.lab.tried import trying
from tests.lab.support import shared_fork_server

_HEAD = 'WORKERS = "threads"\n'

_INVARIANT_OF_SAME_NAME = """
def invariant():
    assert same == [True, True], same
"""

_PROGRAMS = {
    "attribute of an object of the standard library": """
import queue
jobs, counts = queue.Queue(), []
def worker(name):
    jobs.put(name)
    count = jobs.unfinished_tasks
    counts.append(count)
def invariant():
    assert sorted(counts) == [1, 2], counts
""",
    "attribute that a function has set": """
class Owner: pass
owner, same = Owner(), []
def worker(name):
    object.__setattr__(owner, "name", name)
    found = owner.name
    same.append(found == name)
"""
    + _INVARIANT_OF_SAME_NAME,
    "item of an array": """
import array
letters, same = array.array("i", [0]), []
def worker(name):
    letters[0] = ord(name)
    found = letters[0]
    same.append(found == ord(name))
"""
    + _INVARIANT_OF_SAME_NAME,
    "item of another mapping": """
from collections import UserDict
names, same = UserDict(), []
def worker(name):
    names["last"] = name
    found = names["last"]
    same.append(found == name)
"""
    + _INVARIANT_OF_SAME_NAME,
    "attribute in a pattern": """
class Owner: pass
owner, same = Owner(), []
def worker(name):
    owner.name = name
    match owner:
        case Owner(name=found):
            same.append(found == name)
"""
    + _INVARIANT_OF_SAME_NAME,
    "generator": """
def numbers():
    number = 0
    while True:
        number += 1
        yield number
shared, found = numbers(), []
def worker(name):
    found.append(next(shared))
def invariant():
    assert sorted(found) == [1, 2], found
""",
}


@pytest.mark.parametrize("program", _PROGRAMS.values(), ids=list(_PROGRAMS))
def test_a_switch_between_two_statements_is_found(program: str, tmp_path: Path) -> None:
    assert _is_found_broken(program, tmp_path)


@pytest.mark.parametrize(
    ("work", "invariant"),
    [
        ("own_module.add_one()", "own_module.value == 2"),
        ("own_module.add_one(); found.append(own_module.value)", "sorted(found) == [1, 2]"),
        (
            "own_module.value = name; from own_module import value; found.append(value == name)",
            "found == [True, True]",
        ),
    ],
)
def test_a_module_next_to_the_file_is_stepped_too(
    work: str, invariant: str, tmp_path: Path
) -> None:
    (tmp_path / "own_module.py").write_text(
        "value = 0\ndef add_one():\n    global value\n    value += 1\n"
    )
    program = f"""
import own_module
found = []
def worker(name):
    {work}
def invariant():
    assert {invariant}
"""

    assert _is_found_broken(program, tmp_path)


@pytest.mark.parametrize("call", ["exec('pass')", "eval('1')", "sys.settrace(None)"])
def test_code_that_cannot_be_stopped_is_refused(call: str, tmp_path: Path) -> None:
    program = f"""
import sys
def worker(name):
    {call}
def invariant():
    assert sys
"""

    with pytest.raises(CannotTry, match="runs code that the lab cannot stop"):
        _is_found_broken(program, tmp_path)


def _is_found_broken(program: str, directory: Path) -> bool:
    file = directory / "mine.py"
    file.write_text(_HEAD + program)
    with trying(file, shared_fork_server()) as tried_file, closing(tried_file.runs()) as runs:
        return any(played.recording.is_broken for played in runs)
