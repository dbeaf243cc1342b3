"""ledger list"""

from pathlib import Path

import pytest

from ledger.kit.testing.tool import Tool


@pytest.mark.usefixtures("workspace")
def test_the_pages_are_sorted_by_date(tool: Tool) -> None:
    for reference, date in (("c", "2026-01-01"), ("a", "2026-01-31"), ("b", "2026-01-01")):
        tool("add", reference, date, "cash", "350", "Tea")

    first = tool("list", "--limit", "2")
    second = tool("list", "--limit", "2", "--after", first.meta["next_cursor"])

    assert [booking["reference"] for booking in first.data["bookings"]] == ["b", "c"]
    assert [booking["reference"] for booking in second.data["bookings"]] == ["a"]


def test_a_booking_that_was_damaged_by_hand_is_named(tool: Tool, workspace: Path) -> None:
    (workspace / "bookings.toml").write_text('tea-1 = {date = "2026-01-31", cents = true}\n')

    error = tool("list").error

    assert error["code"] == "INVALID_TOML"
    assert "tea-1 is not a booking" in error["message"]
