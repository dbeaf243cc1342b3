"""Child processes that can neither outlive nor outwrite us.

Each runs in a process group of its own, with an argument list (never a shell), the null device as stdin, and the
descriptors of our locks: after kill -9 of this process an orphan keeps the lock until it ends, so that nobody works
beside it. Leave the `with` block before releasing the lock: releasing would free it for the children too. When a child
ends, the rest of its group is ended as well; an interrupt is passed on, and after a grace, which a second signal ends,
the group is killed. Dead means gone or zombie (nobody may ever reap it), and every wait is bounded: what survives
SIGKILL is named.
"""

import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, NamedTuple

from .atomic_file import write_all
from .errors import Interrupted
from .lock import ANCESTORS_LOCKS
from .orphans import end_strays
from .processes import can_see, members_of_group
from .signals import Signals

GRACE_SECONDS = 5.0
_DEATH_SECONDS = 2.0
_POLL_SECONDS = 0.02
_CHUNK_BYTES = 65536
_CHUNKS_AT_ONCE = 16
"""A child that writes without end must not starve the others; a pipe holds no more than this."""
TAIL_BYTES = 4096
LOST_STATUS = 255
"""A failure, as in asyncio: where SIGCHLD is ignored the kernel throws away how a child ended."""
_APPEND = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC


class Ended(NamedTuple):
    """How one child ended. `survivors` are processes of its group that even SIGKILL did not end in time."""

    name: str
    status: int
    tail: str
    log: Path | None
    survivors: tuple[int, ...]


@dataclass
class _Running:
    name: str
    process: subprocess.Popen[bytes]
    output: IO[bytes]
    exit_descriptor: int | None
    log: Callable[[], Path] | None
    tail: bytearray = field(default_factory=bytearray)
    log_path: Path | None = None
    log_file: int | None = None
    output_ended: bool = False


class Children:
    """The children of one call. Leaving the block ends them all, whatever happened."""

    def __init__(self, signals: Signals, lock_descriptors: Sequence[int] = (), locks: Iterable[Path] = ()) -> None:
        self._signals = signals
        self._descriptors = tuple(lock_descriptors)
        self._locks = [os.environ.get(ANCESTORS_LOCKS, ""), *map(str, locks)]
        self._running: dict[str, _Running] = {}
        self.has_started = False
        """Whether there was anything to do for a child."""
        self._log_failure: OSError | None = None
        self.strays: list[int] = []
        """What had left its group and kept our lock; it was ended, for it might have outlived and outwritten us."""

    def __enter__(self) -> "Children":
        return self

    def __exit__(self, _kind: object, error: object, _trace: object) -> None:
        number = error.signal_number if isinstance(error, Interrupted) else signal.SIGTERM
        children = list(self._running.values())
        for child in children:
            _signal_group(child, number)
        self._await_exits(children)
        for child in children:
            self._bury(child)
        if self.has_started and self._descriptors:
            self.strays = end_strays(self._descriptors[0], self._signals)

    def start(
        self,
        name: str,
        argv: Sequence[str],
        *,
        cwd: Path,
        env: Mapping[str, str],
        log: Callable[[], Path] | None = None,
        stdout: int | None = None,
    ) -> None:
        """Start one; `log` is asked for a path when there is something to write. OSError if it cannot be started.

        With `stdout` that is where its stdout goes, and log and tail are of its stderr alone.
        """
        self._signals.check()
        locks = "\n".join(filter(None, self._locks))
        process = subprocess.Popen(
            argv,
            cwd=cwd,
            env={**env, ANCESTORS_LOCKS: locks} if locks else env,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE if stdout is None else stdout,
            stderr=subprocess.STDOUT if stdout is None else subprocess.PIPE,
            process_group=0,
            pass_fds=self._descriptors,
        )
        output = process.stdout or process.stderr
        assert output is not None
        self.has_started = True
        self._running[name] = _Running(name, process, output, _open_pid(process.pid), log)
        os.set_blocking(output.fileno(), False)

    def next_ended(self, within_seconds: float | None = None) -> Ended | None:
        """Wait for the next child to end. None if none runs, or none has ended in that time.

        An interrupt or the end of --timeout is raised from here; leaving the block then ends the others.
        """
        deadline = None if within_seconds is None else time.monotonic() + within_seconds
        while self._running:
            for child in list(self._running.values()):
                has_exited = _has_exited(child.process)
                self._read(child)  # after looking: its last words too have to be in the log
                if self._log_failure is not None:
                    raise self._log_failure
                if has_exited:
                    return self._bury(child)
            self._signals.check()
            left = 1.0 if deadline is None else deadline - time.monotonic()
            if left <= 0:
                return None
            exits = [child.exit_descriptor for child in self._running.values() if child.exit_descriptor is not None]
            outputs = [child.output.fileno() for child in self._running.values() if not child.output_ended]
            self._signals.wait(left if len(exits) == len(self._running) else min(left, _POLL_SECONDS), exits + outputs)
        return None

    def signal(self, name: str, number: int) -> None:
        """Send a signal to one child and its group; `next_ended` returns it when it has ended."""
        if name in self._running:
            _signal_group(self._running[name], number)

    def _await_exits(self, children: list[_Running]) -> None:
        """Give them time to end, unless a second signal says that there is none."""
        deadline = time.monotonic() + GRACE_SECONDS
        while time.monotonic() < deadline and not self._signals.is_repeated:
            for child in children:
                self._read(child)
            if all(_has_exited(child.process) for child in children):
                return
            time.sleep(_POLL_SECONDS)

    def _bury(self, child: _Running) -> Ended:
        """Kill what is left of the group while the zombie still reserves its number, then reap, read the rest."""
        _signal_group(child, signal.SIGKILL)
        deadline = time.monotonic() + _DEATH_SECONDS
        while not _has_exited(child.process) and time.monotonic() < deadline:
            time.sleep(_POLL_SECONDS)
        status = _reap(child.process)
        child.process.returncode = -signal.SIGKILL if status is None else status
        survivors = (child.process.pid,) if status is None else _await_group(child.process.pid, deadline)
        self._read(child)
        del self._running[child.name]
        child.output.close()
        for descriptor in (child.exit_descriptor, child.log_file):
            if descriptor is not None:
                os.close(descriptor)
        tail = bytes(child.tail).decode("utf-8", "backslashreplace")
        return Ended(child.name, child.process.returncode, tail, child.log_path, survivors)

    def _read(self, child: _Running) -> None:
        """Take what the child has written so far: the end of it for the answer, all of it for the log."""
        with suppress(BlockingIOError):
            for _ in range(_CHUNKS_AT_ONCE):
                if not (chunk := os.read(child.output.fileno(), _CHUNK_BYTES)):
                    child.output_ended = True
                    return
                child.tail += chunk
                del child.tail[:-TAIL_BYTES]
                if child.log is not None and self._log_failure is None:
                    try:
                        if child.log_file is None:
                            child.log_path = child.log()
                            child.log_file = os.open(child.log_path, _APPEND, 0o600)
                        write_all(child.log_file, chunk)
                    except OSError as error:  # raised by the wait: ending the children must go on
                        self._log_failure = error


def _open_pid(pid: int) -> int | None:
    """A descriptor that becomes readable when the process ends, where the system has one."""
    with suppress(OSError, AttributeError):
        return os.pidfd_open(pid)
    return None


def _has_exited(process: subprocess.Popen[bytes]) -> bool:
    """Whether our child has ended. It stays a zombie, so that its number stays taken, where there is waitid."""
    if hasattr(os, "waitid"):  # not on macOS before Python 3.13
        with suppress(ChildProcessError):
            return os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT | os.WNOHANG) is not None
    return _reap(process) is not None


def _reap(process: subprocess.Popen[bytes]) -> int | None:
    """How our child ended, if it has."""
    if process.returncode is None:
        try:
            pid, status = os.waitpid(process.pid, os.WNOHANG)
            process.returncode = os.waitstatus_to_exitcode(status) if pid else None
        except ChildProcessError:
            process.returncode = LOST_STATUS
    return process.returncode


def _signal_group(child: _Running, number: int) -> None:
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(child.process.pid, number)


def _await_group(group: int, deadline: float) -> tuple[int, ...]:
    """Wait until no member of the group lives. The pids of those that are left when the time is over."""
    while True:
        try:
            os.killpg(group, 0)
        except ProcessLookupError:
            return ()
        except PermissionError:
            pass
        alive = members_of_group(group) if can_see() else (group,)
        if not alive or time.monotonic() >= deadline:
            return alive
        time.sleep(_POLL_SECONDS)
