"""The exit statuses, once. Scripts branch on these numbers: changing one is a breaking change."""


class ExitStatus:
    """Plain numbers: making an enumeration of them would cost each call a quarter of a millisecond."""

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


def category(status: int) -> str:
    """The name callers read in the manifest; four statuses share INTERRUPTED."""
    return "INTERRUPTED" if status > 128 else next(name for name, one in vars(ExitStatus).items() if one == status)


INTERRUPTED = (ExitStatus.HANGUP, ExitStatus.INTERRUPT, ExitStatus.QUIT, ExitStatus.TERMINATE)
