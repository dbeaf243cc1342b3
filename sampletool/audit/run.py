"""One run of the audited command: started, looked at, stopped, let go, ended.

It leads a process group of its own, so that what it starts is stopped and ended with it, but stays in our session:
if we are killed while a run is stopped, the kernel sees an orphaned group and ends it with HUP and CONT.
"""

import os
import signal
import subprocess
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from ..kit.safety.signals import Signals

_OUTPUT_LIMIT_BYTES = 64 * 1024
_END_SECONDS = 2.0
"""A signal works at once, unless it goes to a process that is not ours to signal."""
_POLL_SECONDS = 0.001


class Run:
    def __init__(self, words: list[str], environ: Mapping[str, str], cwd: Path, output: Path) -> None:
        self._stdout, self._stderr = output.with_suffix(".out"), output.with_suffix(".err")
        with self._stdout.open("xb") as stdout, self._stderr.open("xb") as stderr:
            self._process = subprocess.Popen(
                words, cwd=cwd, env=environ, stdin=subprocess.DEVNULL, stdout=stdout, stderr=stderr, process_group=0
            )
        self.pid = self._process.pid
        self.began_at = time.monotonic()
        """It was running at this moment: the program has been loaded, or let go again."""
        self.last_seen_at: float | None = None
        """It was still running at this moment. The real end came later; how much later nobody knows."""
        self.ended_at: float | None = None
        self.status: int | None = None
        self.is_stopped = False

    def is_over(self) -> bool:
        """Look once, and remember what was seen."""
        if self.status is None:
            asked_at = time.monotonic()
            pid, status = os.waitpid(self.pid, os.WNOHANG | os.WUNTRACED)
            if pid == 0:
                self.last_seen_at = asked_at
            elif os.WIFSTOPPED(status):
                self.is_stopped = True
            else:
                self.status = self._process.returncode = os.waitstatus_to_exitcode(status)
                self.ended_at = time.monotonic()
        return self.status is not None

    @property
    def lasted_seconds(self) -> float:
        return (self.ended_at or time.monotonic()) - self.began_at

    def send(self, number: signal.Signals) -> None:
        """To the whole group, and only while its leader is not reaped: afterwards its number may be another's."""
        if self.status is None:
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(self.pid, number)

    def stop(self, signals: Signals) -> bool:
        """Stop it where it is; False if it was over before, or cannot be stopped."""
        self.send(signal.SIGSTOP)
        give_up_at = time.monotonic() + _END_SECONDS
        while not self.is_over() and not self.is_stopped and time.monotonic() < give_up_at:
            signals.check()
            signals.wait(_POLL_SECONDS)
        return self.is_stopped

    def let_go(self) -> None:
        """Let it go on: what was seen of it before does not count as running."""
        self.send(signal.SIGCONT)
        self.is_stopped = False
        self.began_at, self.last_seen_at = time.monotonic(), None

    def end(self) -> None:
        """Kill it, stopped or not, and wait for its death. Harmless when it is over."""
        self.send(signal.SIGKILL)
        give_up_at = time.monotonic() + _END_SECONDS
        while not self.is_over() and time.monotonic() < give_up_at:
            time.sleep(_POLL_SECONDS)

    @property
    def stdout(self) -> str:
        return _tail(self._stdout)

    @property
    def stderr(self) -> str:
        return _tail(self._stderr)


def most_at_once(runs: list[Run]) -> int:
    """How many were certainly running at the same moment, from when each was seen to run."""
    seen = [(run.began_at, run.last_seen_at) for run in runs if run.last_seen_at is not None]
    return max((sum(began <= moment <= last for began, last in seen) for moment, _ in seen), default=0)


def _tail(path: Path) -> str:
    with path.open("rb") as file:
        file.seek(max(0, os.fstat(file.fileno()).st_size - _OUTPUT_LIMIT_BYTES))
        return file.read(_OUTPUT_LIMIT_BYTES).decode(errors="replace")
