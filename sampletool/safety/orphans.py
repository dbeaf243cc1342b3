"""Ends what a dead holder's children still hold. Nobody living is ever harmed.

Only a process whose descriptor carries this very lock, taken by a pid that no longer runs, is an orphan: the kernel
tells both. Having the file open is no proof, and where the kernel does not tell, nothing is ended. It is ended through
a pid descriptor: opened, looked at again, then signalled, so that a reused pid is never hit.
"""

import os
import signal
from contextlib import suppress
from pathlib import Path

from sampletool.safety.signals import Signals
from sampletool.safety.witness import carriers_of, is_running

_PATIENCE_SECONDS = 2.0


def end_orphans(lock_path: Path, signals: Signals) -> list[int]:
    """The orphans that were ended. They get to clean up for a moment; then they are killed."""
    if not hasattr(signal, "pidfd_send_signal"):
        return []
    try:
        file = lock_path.stat()
    except FileNotFoundError:
        return []
    ended = []
    for pid, _ in _orphans(file):
        with suppress(ProcessLookupError, PermissionError):
            descriptor = os.pidfd_open(pid)
            try:
                if any(pid == again for again, _ in _orphans(file)):
                    signal.pidfd_send_signal(descriptor, signal.SIGTERM)
                    if not signals.wait(_PATIENCE_SECONDS, [descriptor]):
                        signal.pidfd_send_signal(descriptor, signal.SIGKILL)
                        signals.wait(_PATIENCE_SECONDS, [descriptor])
                    ended.append(pid)
            finally:
                os.close(descriptor)
    return ended


def _orphans(file: os.stat_result) -> list[tuple[int, int]]:
    return [(pid, locker) for pid, locker in carriers_of(file) if pid != locker and not is_running(locker)]
