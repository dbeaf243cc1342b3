"""How far a long run has come, for a person who waits at a terminal."""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from time import monotonic

from sampletool.kit.context import Context, in_ci, write_stderr

_PAUSE_SECONDS = 0.2


@contextmanager
def checking(context: Context, what: str) -> Iterator[Callable[[], None]]:
    """What long work has to call now and then: it ends the call where a signal asks for it, and shows the time.

    In place of what it showed before, at a terminal that can do that.
    """
    is_live = os.isatty(2) and os.environ.get("TERM") != "dumb" and not in_ci() and not context.options.get("quiet")
    began = shown = monotonic()

    def check() -> None:
        nonlocal shown
        context.signals.check()
        if is_live and (now := monotonic()) - shown > _PAUSE_SECONDS:
            shown = now
            write_stderr(f"\r\x1b[K{what}: {now - began:.0f} s")

    try:
        yield check
    finally:
        write_stderr("\r\x1b[K" * is_live)
