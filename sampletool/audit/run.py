"""One run of the audited command, which can be watched, stopped, continued and killed.

Each run leads a process group of its own, so that a signal also reaches the processes that the run
has started. But the run stays in our session. If we are killed while a run is stopped, the kernel
sends SIGHUP and SIGCONT to its group, because the group is orphaned and has a stopped member. So no
stopped process stays behind.
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
"""How long to wait for the effect of a signal.

The effect is immediate, unless we are not allowed to send a signal to the process.
"""

_POLL_SECONDS = 0.001


class Run:
    """A process group that runs the audited command, and what is known about its leader.

    The attributes change only when `poll` looks at the process, or when one of the methods sends a
    signal.
    """

    def __init__(
        self,
        words: list[str],
        environ: Mapping[str, str],
        directory: Path,
        output_path: Path,
    ) -> None:
        """Start the command `words` in this directory, with these environment variables.

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
        # When Popen returns, the program has been loaded.
        self.running_since = time.monotonic()
        """When the program was loaded, or when it was last continued after a stop."""
        self.last_seen_running_at: float | None = None
        """When `poll` last saw the program running. It may have exited at any time after that."""
        self.exited_at: float | None = None
        self.exit_code: int | None = None
        """The exit code, or the negative number of the signal that killed the program.

        It is None until `poll` has seen that the program has exited.
        """
        self.is_stopped = False

    def poll(self) -> bool:
        """Update the attributes to the current state of the program, without waiting.

        Return whether the program has exited.
        """
        if self.exit_code is not None:
            return True
        # Take the time before waitpid(): afterwards, the program may have exited already.
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
        # Tell Popen that the process was reaped, so that it does not wait for the process, too.
        self._process.returncode = self.exit_code
        return True

    @property
    def elapsed_seconds(self) -> float:
        """How long the program has been running since its start, or since it was continued."""
        if self.exited_at is not None:
            return self.exited_at - self.running_since
        return time.monotonic() - self.running_since

    def send(self, signal_number: signal.Signals) -> None:
        """Send a signal to all processes of the group, unless the run has exited."""
        # After an exit, the system may give the number of this group to an unrelated group.
        if self.exit_code is None:
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(self.pid, signal_number)

    def stop(self, signals: Signals) -> bool:
        """Pause the run with SIGSTOP, and wait until it has stopped.

        Return False if it has exited before, or if it does not stop in time.
        """
        self.send(signal.SIGSTOP)
        give_up_at = time.monotonic() + _END_SECONDS
        while not self.poll() and not self.is_stopped and time.monotonic() < give_up_at:
            signals.check()
            signals.wait(_POLL_SECONDS)
        return self.is_stopped

    def resume(self) -> None:
        """Continue a run that was stopped.

        Its running time begins again, because a stopped run does not overlap with other runs.
        """
        self.send(signal.SIGCONT)
        self.is_stopped = False
        self.running_since = time.monotonic()
        self.last_seen_running_at = None

    def kill(self) -> None:
        """Kill the run, even if it is stopped, and wait until it has exited."""
        self.send(signal.SIGKILL)
        give_up_at = time.monotonic() + _END_SECONDS
        while not self.poll() and time.monotonic() < give_up_at:
            time.sleep(_POLL_SECONDS)

    @property
    def stdout(self) -> str:
        """The last 64 KiB that the run has written to stdout."""
        return _read_end(self._stdout_path)

    @property
    def stderr(self) -> str:
        """The last 64 KiB that the run has written to stderr."""
        return _read_end(self._stderr_path)


def max_concurrent(runs: list[Run]) -> int:
    """Return how many of the runs were certainly running at the same moment.

    A run counts from its start to the last `poll` that saw it running. It may have exited directly
    after that.
    """
    periods = []
    for run in runs:
        if run.last_seen_running_at is not None:
            periods.append((run.running_since, run.last_seen_running_at))
    maximum = 0
    # Look only at the starts: the number of running programs grows only when one of them starts.
    for moment, _end in periods:
        running = sum(start <= moment <= end for start, end in periods)
        maximum = max(maximum, running)
    return maximum


def _read_end(path: Path) -> str:
    """Return the end of a file as text, at most 64 KiB."""
    with path.open("rb") as file:
        size = os.fstat(file.fileno()).st_size
        file.seek(max(0, size - _MAX_OUTPUT_BYTES))
        # The limit is for a file that grows between seek() and read().
        return file.read(_MAX_OUTPUT_BYTES).decode(errors="replace")
