"""The words of the protocol between tracer and tracee. tracee.py explains them."""

from enum import StrEnum

BLOCKED = "blocked"
"""The event of a process that has asked for a lock, which is not free."""


class Command(StrEnum):
    """The first word of a line of the tracer. A number follows RAISE and SIGNAL."""

    GO = "go"
    RAISE = "raise"
    SIGNAL = "signal"
    PROBE = "probe"
    FREE = "free"
