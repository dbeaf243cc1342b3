"""The value of every constant of the server, and why it is this value."""

from sampletool.kit.testing.constants import Constant, differences
from sampletool.mcp.parameters import DEFAULT_TIMEOUT

CONSTANTS = (
    Constant(
        "arguments.MAX_ARGUMENT_BYTES",
        130_816,
        "more: a process cannot be started, E2BIG",
    ),
    Constant(
        "arguments.MAX_TOTAL_BYTES",
        1_048_576,
        "more: with a large environment, a process cannot be started, E2BIG",
    ),
    Constant("http_address.MIN_TOKEN_CHARACTERS", 16, "less: a token can be guessed"),
    Constant("resources._MAX_LISTED_OUTPUTS", 200, "more: a list fills the context of an agent"),
    Constant(
        "resources._MAX_OUTPUT_BYTES",
        1_048_576,
        "more: one file fills the context of an agent",
    ),
    Constant(
        "runner.MAX_PROCESSES",
        32,
        "more: the machine has no processes left; less: commands wait for nothing",
    ),
    Constant(
        "runner._STOP_SECONDS",
        (0.6, 0.3),
        "more: the end takes more than a second; less: no time to clean up",
    ),
    Constant(
        "runner._READ_SECONDS",
        1.0,
        "more: one slow read holds up all; less: each read costs a process",
    ),
    Constant(
        "tools._MAX_DESCRIPTION_CHARACTERS",
        330,
        "more: the list of tools costs more tokens; less: agents guess what a tool does",
    ),
)

SERVER = (
    Constant(
        "http_server._SHUTDOWN_SECONDS",
        0.3,
        "more: the end takes longer; less: the last response is lost",
    ),
    Constant(
        "stdio._FLUSH_SECONDS",
        0.1,
        "more: the end takes more than a second; less: the last response is lost",
    ),
    Constant(
        "stdio._MAX_LINE_BYTES",
        16_777_216,
        "more: one line fills the memory; less: a large value is refused",
    ),
    Constant(
        "stdio._MAX_WAITING_MESSAGES",
        64,
        "more: a client can fill the memory; less: reading waits for nothing",
    ),
)

_WITHOUT_SDK = tuple(row.name for row in CONSTANTS)


def test_every_constant_of_the_part_has_the_value_in_the_table() -> None:
    assert differences("mcp", CONSTANTS, ("stdio.", "http_server.", "protocol.")) == []


def test_every_constant_of_the_protocol_has_the_value_in_the_table() -> None:
    assert differences("mcp", SERVER, _WITHOUT_SDK) == []


def test_a_tool_stops_after_ten_minutes_unless_it_gets_another_limit() -> None:
    assert DEFAULT_TIMEOUT == "10m"
