"""The value of every constant of the server, and why it is this value."""

from sampletool.kit.testing.constants import Constant, differences
from sampletool.mcp.tools import LONGEST

CONSTANTS = (
    Constant("calls.NO_WAIT_SECONDS", 32, "more: the machine has no processes left; less: calls wait for nothing"),
    Constant("calls._END_SECONDS", (0.6, 0.3), "more: the end takes more than a second; less: no time to clean up"),
    Constant("calls._READ_SECONDS", 1.0, "more: one slow read holds up all; less: each read costs a process"),
    Constant("resources._FILES", 200, "more: a list fills the context of an agent"),
    Constant("resources._LONGEST_BYTES", 1_048_576, "more: one file fills the context of an agent"),
    Constant("tools._LONGEST_BYTES", 130_816, "more: a process cannot be started, E2BIG"),
)

SERVER = (
    Constant("server._FLUSH_SECONDS", 0.1, "more: the end takes more than a second; less: the last output is lost"),
    Constant("server._LONGEST_LINE", 16_777_216, "more: one line fills the memory; less: a large value is refused"),
)


def test_every_constant_of_the_part_has_the_value_that_the_table_says() -> None:
    assert differences("mcp", CONSTANTS, ("server.",)) == []


def test_every_constant_of_the_protocol_has_the_value_that_the_table_says() -> None:
    others = tuple(row.name for row in CONSTANTS)

    assert differences("mcp", SERVER, others) == []


def test_a_call_ends_after_ten_minutes_where_nobody_says_how_long() -> None:
    assert LONGEST == "10m"
