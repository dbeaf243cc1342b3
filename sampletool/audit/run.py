"""One run of the audited command: started, observed, stopped, continued, ended.

Each run leads a process group of its own, so that what it starts is stopped and ended with it. But
it stays in our session. If we are killed while a run is stopped, the kernel finds an orphaned group
with a stopped member, and ends it with HUP and CONT.
"""

import os
import signal
import subprocess
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from ..kit.safety.signals import Signals

_MAX_OUTPUT_BYTES = 64 * 1024

_END_SECONDS = 2.0
"""A signal takes effect at once, unless it goes to a process that is not ours to signal."""

_POLL_SECONDS = 0.001


class Run:
    """A process group, and what was seen of it."""

    def __init__(
        self,
        words: list[str],
        environ: Mapping[str, str],
        cwd: Path,
        output: Path,
    ) -> None:
        """Start the program. Its output goes to two files with the path `output` and a suffix."""
        self._stdout = output.with_suffix(".out")
        self._stderr = output.with_suffix(".err")
        with self._stdout.open("xb") as stdout, self._stderr.open("xb") as stderr:
            self._process = subprocess.Popen(
                words,
                cwd=cwd,
                env=environ,
                stdin=subprocess.DEVNULL,
                stdout=stdout,
                stderr=stderr,
                process_group=0,
            )
        self.pid = self._process.pid
        self.began_at = time.monotonic()
        """When it certainly ran: the program had been loaded, or was continued."""
        self.last_seen_at: float | None = None
        """When it was last seen running. How much later it exited is unknown."""
        self.ended_at: float | None = None
        self.status: int | None = None
        """The exit code, negative after a signal. It is None while the program runs."""
        self.is_stopped = False

    def is_over(self) -> bool:
        """Return whether the program has exited. Note what was seen."""
        if self.status is not None:
            return True
        asked_at = time.monotonic()
        pid, status = os.waitpid(self.pid, os.WNOHANG | os.WUNTRACED)
        if pid == 0:
            self.last_seen_at = asked_at
        elif os.WIFSTOPPED(status):
            self.is_stopped = True
        else:
            self.status = os.waitstatus_to_exitcode(status)
            # Popen must not wait for a process that was already reaped.
            self._process.returncode = self.status
            self.ended_at = time.monotonic()
        return self.status is not None

    @property
    def lasted_seconds(self) -> float:
        """How long it has run, or did run."""
        if self.ended_at is not None:
            return self.ended_at - self.began_at
        return time.monotonic() - self.began_at

    def send(self, signal_number: signal.Signals) -> None:
        """Send a signal to the whole group."""
        # After its leader is reaped, the number of the group may belong to others.
        if self.status is None:
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(self.pid, signal_number)

    def stop(self, signals: Signals) -> bool:
        """Stop the run where it is. Return whether it is stopped: it may have exited before."""
        self.send(signal.SIGSTOP)
        give_up_at = time.monotonic() + _END_SECONDS
        while not self.is_over() and not self.is_stopped and time.monotonic() < give_up_at:
            signals.check()
            signals.wait(_POLL_SECONDS)
        return self.is_stopped

    def let_go(self) -> None:
        """Continue the run. What was seen of it before does not count as running."""
        self.send(signal.SIGCONT)
        self.is_stopped = False
        self.began_at = time.monotonic()
        self.last_seen_at = None

    def end(self) -> None:
        """Kill the run, stopped or not, and wait until it has exited."""
        self.send(signal.SIGKILL)
        give_up_at = time.monotonic() + _END_SECONDS
        while not self.is_over() and time.monotonic() < give_up_at:
            time.sleep(_POLL_SECONDS)

    @property
    def stdout(self) -> str:
        """The end of its stdout."""
        return _tail(self._stdout)

    @property
    def stderr(self) -> str:
        """The end of its stderr."""
        return _tail(self._stderr)


def most_at_once(runs: list[Run]) -> int:
    """Return how many runs were certainly running at the same moment."""
    seen = []
    for run in runs:
        if run.last_seen_at is not None:
            seen.append((run.began_at, run.last_seen_at))
    most = 0
    # The largest number is reached when a run begins.
    for moment, _last in seen:
        running = sum(began <= moment <= last for began, last in seen)
        most = max(most, running)
    return most


def _tail(path: Path) -> str:
    with path.open("rb") as file:
        size = os.fstat(file.fileno()).st_size
        file.seek(max(0, size - _MAX_OUTPUT_BYTES))
        return file.read(_MAX_OUTPUT_BYTES).decode(errors="replace")
