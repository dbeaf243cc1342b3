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
        directory: Path,
        output_path: Path,
    ) -> None:
        """Start the program in a directory.

        Its stdout and stderr go to two new files: `output_path` with the suffixes .out and .err.
        """
        self._stdout_path = output_path.with_suffix(".out")
        self._stderr_path = output_path.with_suffix(".err")
        with self._stdout_path.open("xb") as stdout, self._stderr_path.open("xb") as stderr:
            self._process = subprocess.Popen(
                words,
                cwd=directory,
                env=environ,
                stdin=subprocess.DEVNULL,
                stdout=stdout,
                stderr=stderr,
                process_group=0,
            )
        self.pid = self._process.pid
        # Popen returns when the program has been loaded.
        self.running_since = time.monotonic()
        """The moment when the program was loaded, or when it was continued after a stop."""
        self.last_seen_running_at: float | None = None
        """When `poll` last saw it running. It may have exited at any time after that."""
        self.exited_at: float | None = None
        self.exit_code: int | None = None
        """The exit code, negative after a signal. It is None until `poll` sees the exit."""
        self.is_stopped = False

    def poll(self) -> bool:
        """Look at the program, and note what it does. Return whether it has exited."""
        if self.exit_code is not None:
            return True
        # The program may exit before waitpid() returns: it is only known to have run until here.
        polled_at = time.monotonic()
        pid, status = os.waitpid(self.pid, os.WNOHANG | os.WUNTRACED)
        if pid == 0:
            self.last_seen_running_at = polled_at
            return False
        if os.WIFSTOPPED(status):
            self.is_stopped = True
            return False
        self.exit_code = os.waitstatus_to_exitcode(status)
        self.exited_at = time.monotonic()
        # Popen must not wait for a process that was already reaped.
        self._process.returncode = self.exit_code
        return True

    @property
    def elapsed_seconds(self) -> float:
        """How long the program has been running, or how long it ran."""
        if self.exited_at is not None:
            return self.exited_at - self.running_since
        return time.monotonic() - self.running_since

    def send(self, signal_number: signal.Signals) -> None:
        """Send a signal to the whole group."""
        # After its leader is reaped, the number of the group may belong to others.
        if self.exit_code is None:
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(self.pid, signal_number)

    def stop(self, signals: Signals) -> bool:
        """Stop the run where it is. Return whether it is stopped: it may have exited before."""
        self.send(signal.SIGSTOP)
        give_up_at = time.monotonic() + _END_SECONDS
        while not self.poll() and not self.is_stopped and time.monotonic() < give_up_at:
            signals.check()
            signals.wait(_POLL_SECONDS)
        return self.is_stopped

    def resume(self) -> None:
        """Continue a run that was stopped. The time before does not count as running."""
        self.send(signal.SIGCONT)
        self.is_stopped = False
        self.running_since = time.monotonic()
        self.last_seen_running_at = None

    def kill(self) -> None:
        """Kill the run, stopped or not, and wait until it has exited."""
        self.send(signal.SIGKILL)
        give_up_at = time.monotonic() + _END_SECONDS
        while not self.poll() and time.monotonic() < give_up_at:
            time.sleep(_POLL_SECONDS)

    @property
    def stdout(self) -> str:
        """The end of its stdout."""
        return _read_end(self._stdout_path)

    @property
    def stderr(self) -> str:
        """The end of its stderr."""
        return _read_end(self._stderr_path)


def max_concurrent(runs: list[Run]) -> int:
    """Return how many of the runs were certainly running at the same moment."""
    periods = []
    for run in runs:
        if run.last_seen_running_at is not None:
            periods.append((run.running_since, run.last_seen_running_at))
    maximum = 0
    # The number of running programs only grows when one starts, so looking at the starts is enough.
    for moment, _end in periods:
        running = sum(start <= moment <= end for start, end in periods)
        maximum = max(maximum, running)
    return maximum


def _read_end(path: Path) -> str:
    """Return the last bytes of a file as text."""
    with path.open("rb") as file:
        size = os.fstat(file.fileno()).st_size
        file.seek(max(0, size - _MAX_OUTPUT_BYTES))
        # The file may still grow.
        return file.read(_MAX_OUTPUT_BYTES).decode(errors="replace")
