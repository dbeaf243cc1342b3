"""The exit statuses, once. Scripts branch on these numbers: changing one is a breaking change."""

from enum import IntEnum


class ExitStatus(IntEnum):
    OK = 0
    INTERNAL = 1
    USAGE = 2
    PARTIAL = 3
    PRECONDITION = 4
    NOT_FOUND = 5
    CONFLICT = 6
    PERMISSION = 7
    AUTH = 8
    TIMEOUT = 10
    UNAVAILABLE = 12
    LOCK_HELD = 75
    """EX_TEMPFAIL of sysexits.h: the shell's word for "try again"."""

    HANGUP = 129
    INTERRUPT = 130
    QUIT = 131
    TERMINATE = 143

    @property
    def category(self) -> str:
        """The name callers read in the manifest; four statuses share INTERRUPTED."""
        return "INTERRUPTED" if self > 128 else self.name


INTERRUPTED = (ExitStatus.HANGUP, ExitStatus.INTERRUPT, ExitStatus.QUIT, ExitStatus.TERMINATE)
