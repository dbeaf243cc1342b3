"""ledger balance"""

import pytest

from ledger.kit.testing.tool import Tool


@pytest.mark.usefixtures("workspace")
def test_the_balance_is_exact_for_amounts_that_fractions_cannot_represent(tool: Tool) -> None:
    tool("add", "a", "2026-01-01", "bank", "1000000000000", "Sale")
    tool("add", "b", "2026-01-02", "bank", "1", "Interest")
    tool("add", "c", "2026-01-03", "cash", "--", "-350", "Tea")

    assert tool("balance").data["balances"] == [
        {"account": "bank", "cents": 1000000000001, "rounded_cents": 1000000000001},
        {"account": "cash", "cents": -350, "rounded_cents": -350},
    ]


@pytest.mark.usefixtures("workspace")
@pytest.mark.parametrize(
    ("rounding", "shown"),
    [("exact", b"-3.50"), ("nearest", b"-3.00"), ("down", b"-4.00")],
)
def test_the_setting_decides_what_people_see(tool: Tool, rounding: str, shown: bytes) -> None:
    tool("add", "a", "2026-01-01", "cash", "--", "-350", "Tea")

    tool("config", "set", "rounding", rounding)

    assert shown in tool("balance", "--format", "text").stdout
    assert tool("balance").data["balances"][0]["cents"] == -350


@pytest.mark.usefixtures("workspace")
def test_a_wrong_rounding_is_refused_when_it_is_set(tool: Tool) -> None:
    error = tool("config", "set", "rounding", "sideways").error

    assert error["code"] == "VALIDATION_ERROR"
    assert "Use exact, nearest or down." in error["suggestion"]
