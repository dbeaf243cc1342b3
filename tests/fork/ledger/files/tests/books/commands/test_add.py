"""ledger add"""

import tomllib
from pathlib import Path

import pytest

from ledger.kit.testing.stopping import interrupt_at_each_step, kill_at_each_step
from ledger.kit.testing.tool import Tool

ADD = ["add", "tea-1", "2026-01-31", "cash", "350", "Tea"]


@pytest.fixture
def books(workspace: Path) -> Path:
    """Return the path of the file with the bookings."""
    return workspace / "bookings.toml"


def test_a_booking_is_stored_once_if_it_is_added_twice(tool: Tool, books: Path) -> None:
    first = tool(*ADD).data
    second = tool(*ADD).data

    assert (first["effect"], second["effect"]) == ("created", "unchanged")
    assert tomllib.loads(books.read_text()) == {
        "tea-1": {"date": "2026-01-31", "account": "cash", "cents": 350, "text": "Tea"}
    }


@pytest.mark.usefixtures("workspace")
def test_another_booking_with_the_same_reference_is_refused(tool: Tool) -> None:
    tool(*ADD)

    ran = tool("add", "tea-1", "2026-02-01", "cash", "350", "Tea")

    assert (ran.status, ran.code) == (6, "DUPLICATE_BOOKING")


def test_eight_commands_at_once_lose_no_booking(tool: Tool, books: Path) -> None:
    commands = [["add", f"tea-{n}", "2026-01-31", "cash", "350", "Tea"] for n in range(8)]

    tool.together(commands)

    assert len(tomllib.loads(books.read_text())) == 8


@pytest.mark.leaves_litter
def test_kill_9_at_each_step_leaves_no_booking_or_all_of_it(tool: Tool, books: Path) -> None:
    stopped = kill_at_each_step(tool, *ADD, file=books)

    tool(*ADD)
    assert {each.text for each in stopped} == {None, books.read_text()}


def test_ctrl_c_at_each_step_releases_the_lock(tool: Tool, books: Path) -> None:
    stopped = interrupt_at_each_step(tool, *ADD, file=books)

    assert {each.next_run.status for each in stopped} == {0}


@pytest.mark.usefixtures("workspace")
@pytest.mark.parametrize("date", ["31.1.2026", "20260131", "2026-02-30"])
def test_a_text_that_is_not_a_date_is_refused(tool: Tool, date: str) -> None:
    ran = tool("add", "tea-1", date, "cash", "350", "Tea")

    assert (ran.status, ran.code) == (2, "VALIDATION_ERROR")
