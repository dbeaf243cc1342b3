"""Ends the processes that still hold a lock for a holder that has ended, or is about to. No other process is harmed.

Only a process whose descriptor carries this very lock, taken by a process that no longer runs (or by this one), is
ended: the kernel says both. Having the file open is no proof, and where the kernel does not say, nothing is ended. It
is ended through a pid descriptor: opened, looked at again, then signalled, so that a reused pid is never hit.
"""

import os
import signal
import time
from collections.abc import Callable
from contextlib import ExitStack, suppress
from functools import partial
from pathlib import Path
from select import POLLIN, poll

from .lock_owners import carriers_of, orphans_of
from .signals import Signals

_PATIENCE_SECONDS = 2.0
_TURN_SECONDS = 0.02


def end_orphans(lock_path: Path, signals: Signals) -> list[int]:
    """The children of dead holders that were ended."""
    return end_all(partial(orphans_of, lock_path), signals)


def end_strays(descriptor: int, signals: Signals) -> list[int]:
    """Descendants of this process that left their group, and so still carry the lock after the group was ended."""
    file, me = os.fstat(descriptor), os.getpid()
    return end_all(lambda: [pid for pid, locker in carriers_of(file) if locker == me != pid], signals)


def end_all(find: Callable[[], list[int]], signals: Signals) -> list[int]:
    """Those that `find` names, and names again when nobody else can have got their number.

    They get a moment to clean up, unless a second signal comes. Then they are killed, and what they have started.
    """
    ended: set[int] = set()
    for number in (signal.SIGTERM, signal.SIGKILL, signal.SIGKILL) if hasattr(signal, "pidfd_send_signal") else ():
        with ExitStack() as opened:
            descriptors = {}
            for pid in find():
                with suppress(ProcessLookupError):
                    descriptors[pid] = os.pidfd_open(pid)
                    opened.callback(os.close, descriptors[pid])
            watched, living = poll(), set()
            for pid in descriptors.keys() & find():
                with suppress(ProcessLookupError, PermissionError):
                    signal.pidfd_send_signal(descriptors[pid], number)
                    watched.register(descriptors[pid], POLLIN)
                    living.add(descriptors[pid])
                    ended.add(pid)
            deadline = time.monotonic() + _PATIENCE_SECONDS
            while living and time.monotonic() < deadline and not (signals.is_repeated and number == signal.SIGTERM):
                for descriptor, _ in watched.poll(1000 * _TURN_SECONDS):
                    watched.unregister(descriptor)
                    living.remove(descriptor)
        if not descriptors:
            break
    return sorted(ended)
