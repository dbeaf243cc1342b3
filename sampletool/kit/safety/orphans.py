"""Ends what still holds a lock for a holder that has ended, or is about to. Nobody else is ever harmed.

Only a process whose descriptor carries this very lock, taken by a process that no longer runs (or by ours), is ended:
the kernel tells both. Having the file open is no proof, and where the kernel does not tell, nothing is ended. It is
ended through a pid descriptor: opened, looked at again, then signalled, so that a reused pid is never hit.
"""

import os
import signal
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path

from .lock_owners import carriers_of, orphans_of
from .signals import Signals

_PATIENCE_SECONDS = 2.0


def end_orphans(lock_path: Path, signals: Signals) -> list[int]:
    """The children of dead holders that were ended."""
    return _end(partial(orphans_of, lock_path), signals)


def end_strays(descriptor: int, signals: Signals) -> list[int]:
    """The descendants of ours that carry our lock although their group has been ended: they had left it."""
    file, me = os.fstat(descriptor), os.getpid()
    return _end(lambda: [pid for pid, locker in carriers_of(file) if locker == me != pid], signals)


def _end(find: Callable[[], list[int]], signals: Signals) -> list[int]:
    """They get to clean up for a moment; then they are killed."""
    if not hasattr(signal, "pidfd_send_signal"):
        return []
    ended = []
    for pid in find():
        with suppress(ProcessLookupError, PermissionError):
            descriptor = os.pidfd_open(pid)
            try:
                if pid in find():
                    signal.pidfd_send_signal(descriptor, signal.SIGTERM)
                    if not signals.wait(_PATIENCE_SECONDS, [descriptor]):
                        signal.pidfd_send_signal(descriptor, signal.SIGKILL)
                        signals.wait(_PATIENCE_SECONDS, [descriptor])
                    ended.append(pid)
            finally:
                os.close(descriptor)
    return ended
