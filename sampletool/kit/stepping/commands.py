"""The commands with which the tracer answers a stop of the tracee. tracee.py explains them."""

from enum import StrEnum


class Command(StrEnum):
    """The first word of a command line. RAISE and SIGNAL are followed by a number."""

    GO = "go"
    RAISE = "raise"
    SIGNAL = "signal"
    PROBE = "probe"
    FREE = "free"
