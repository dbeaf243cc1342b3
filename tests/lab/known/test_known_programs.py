"""Programs of which it is known whether they are right: what `lab try` says about each.

The programs are text files, because they are written as a learner would write them.
"""

from contextlib import closing
from pathlib import Path

import pytest

from sampletool.kit.testing.scale import SOAK
from sampletool.kit.testing.tool import Ran, Tool
from sampletool.lab.fewest_switches import count_switches
from sampletool.lab.tried import Bound, trying
from tests.lab.support import shared_fork_server

PROGRAMS = Path(__file__).parent / "programs"

WRONG = [
    ("counter", (), "the file says 1."),
    ("fstat_ticket", (), "both have ticket 2"),
    ("utime", (), "both in"),
    ("shutil_copy", (), "the reader saw ''"),
    ("double_checked", (), "FileNotFoundError"),
    ("exclusive_file", ("--kill",), "B waits for ever."),
]
"""A program, the options with which the mistake is found, and a part of the reason."""

RIGHT = ["append", "claim_by_rename", "peterson", "two_locks", "wait_for_file"]
if SOAK:
    RIGHT.append("editing_toml")

REFUSED = [
    ("chance", "worker() depends on chance (random.random)"),
    ("threads", "worker() does nothing with files"),
]


def copied(tmp_path: Path, name: str) -> Path:
    file = tmp_path / "own" / f"{name}.py"
    file.parent.mkdir()
    file.write_text((PROGRAMS / f"{name}.txt").read_text())
    return file


def try_program(tool: Tool, name: str, *options: str) -> Ran:
    source = (PROGRAMS / f"{name}.txt").read_text()
    (tool.cwd / f"{name}.py").write_text(source)
    return tool("lab", "try", f"{name}.py", *options)


@pytest.mark.parametrize(("name", "options", "reason"), WRONG, ids=[name for name, *_ in WRONG])
def test_a_wrong_program_is_broken_on_a_schedule_that_can_be_replayed(
    tool: Tool, name: str, options: tuple[str, ...], reason: str
) -> None:
    found = try_program(tool, name, *options)

    assert found.code == "RACE_FOUND"
    assert any(reason in each for each in found.response["data"]["reasons"])
    schedule = found.error["context"]["schedule"]
    replayed = tool("lab", "try", f"{name}.py", *options, "--schedule", schedule)
    assert replayed.response["data"]["run"]["schedule"] == schedule
    assert replayed.error["context"]["reason"] == found.error["context"]["reason"]


@pytest.mark.parametrize("name", RIGHT)
def test_a_right_program_holds_on_every_schedule_within_the_bound(
    tmp_path: Path, name: str
) -> None:
    # Not with the command: on a busy machine, it could take longer than a command may in tests.
    with (
        trying(copied(tmp_path, name), shared_fork_server()) as tried_file,
        closing(tried_file.runs()) as runs,
    ):
        broken = [played.recording.schedule for played in runs if played.recording.is_broken]

    assert broken == []


@pytest.mark.parametrize(("name", "problem"), REFUSED)
def test_a_program_that_cannot_be_stepped_is_refused_by_name(
    tool: Tool, name: str, problem: str
) -> None:
    refused = try_program(tool, name)

    assert refused.code == "CANNOT_TRY"
    assert problem in refused.error["message"]


def test_threads_are_named_where_a_worker_shares_only_variables(tool: Tool) -> None:
    assert "threads" in try_program(tool, "threads").error["message"]


def test_an_invariant_that_cannot_fail_is_a_finding(tool: Tool) -> None:
    assert try_program(tool, "no_assert").code == "INVARIANT_CANNOT_FAIL"


def test_the_schedule_that_is_drawn_has_as_few_switches_as_possible(tool: Tool) -> None:
    found = try_program(tool, "counter")

    assert count_switches(found.error["context"]["schedule"].split()) == 2


@pytest.mark.parametrize("bound", [Bound(workers=3), Bound(rounds=2)], ids=str)
def test_a_removed_lock_file_is_noticed_with_three_workers_or_two_rounds(
    tmp_path: Path, bound: Bound
) -> None:
    file = copied(tmp_path, "unlinked_lock")
    with trying(file, shared_fork_server()) as tried_file, closing(tried_file.runs()) as runs:
        broken_with_two = [each for each in runs if each.recording.is_broken]
    # The count that is right within the bound.
    file.write_text(file.read_text().replace('== "2"', f'== "{bound.workers * bound.rounds}"'))

    with (
        trying(file, shared_fork_server(), bound) as tried_file,
        closing(tried_file.runs()) as runs,
    ):
        is_broken = any(each.recording.is_broken for each in runs)

    assert broken_with_two == []
    assert is_broken
