"""Run child processes, and leave none of them running.

Use a `with Children(...)` block. Start children in it, wait for them with `next_exit`, and look at
the exit code of each. Leaving the block ends the children that still run, also after an error.

A child gets a list of arguments (no shell is involved) and an empty stdin. Its output goes to a
pipe that this process reads. These terms describe the rest:

* The *group* of a child is its process group. It has the child's pid as its number, and contains
  the child and everything that the child starts. Signals are sent to the whole group. Killing the
  child alone was rejected: if the child is a shell, the programs that it has started keep running.
* A *zombie* is a process that has exited, but whose parent has not asked for its exit code yet.
  *Reaping* it means asking. Until then, no other process gets its pid, and no other group gets
  its number.
* The *grace* period is the time between the request to exit and SIGKILL. A child can use it to
  clean up. A second signal to this process ends it early.
* A *survivor* is a process that keeps running after SIGKILL, because it is inside a system call
  that cannot be interrupted. Every wait has a limit, so a survivor is reported, not waited for.
* A *stray* is a process that has left its group, for example with setsid, but that still has an
  inherited lock of this process.
* An *orphan* is a child that keeps running because this process was killed with SIGKILL.
* The *tail* is the last part of a child's output.

A child inherits the descriptors of the locks that this process holds. So an orphan keeps the locks
until it exits, and no other process works at the same time. For the same reason, leave the block
before you release a lock: releasing it here would release it for the children, too.

Because each child has a group of its own, the terminal does not send it Ctrl-C or Ctrl-Z. Leaving
the block passes Ctrl-C on. Nothing passes Ctrl-Z on: it stops this process, and the children keep
running.
"""

import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import IO

from .child_log import ChildLog
from .errors import Interrupted
from .lock import ANCESTORS_LOCKS
from .orphans import end_strays
from .processes import can_see_processes, members_of_group
from .signals import Signals

GRACE_SECONDS = 5.0
"""The usual length of the grace period. If it is longer, Ctrl-C seems to have no effect."""

TAIL_BYTES = 4096
"""The usual length of the tail."""

LOST_EXIT_CODE = 255
"""The exit code of a child whose real exit code is unknown.

If SIGCHLD is ignored, the kernel reaps children itself and discards their exit codes. A process
inherits this setting from its parent. Work with an unknown result must not count as a success, so
this is not 0. asyncio uses the same number.
"""

_DEATH_SECONDS = 2.0
"""How long to wait for a group to exit after SIGKILL."""

_POLL_SECONDS = 0.02
"""The time between two looks at a child where nothing announces its exit."""

_RECHECK_SECONDS = 1.0
"""The longest time that `next_exit` sleeps. Then it looks at the children and the signals again.

Usually the exit of a child or a signal ends the sleep earlier. But if `Signals` is not installed,
a signal cannot do that.
"""

_CHUNK_BYTES = 65536

_MAX_CHUNKS = 16
"""How many chunks to read from one child before the other children get a turn.

Without a limit, a child that writes all the time would keep this process busy permanently. The
limit, 1 MiB, is the largest size that a pipe usually has on Linux. So one turn is enough to empty
the pipe of a child that has exited.
"""


@dataclass(frozen=True)
class ChildExit:
    """How a child exited. An exit code other than 0 is not an error here: the caller decides."""

    name: str
    """The name that was given to `Children.start`."""

    exit_code: int
    """The exit code, or -N if signal N killed the child, or LOST_EXIT_CODE.

    It is -SIGKILL, too, if the child itself is a survivor.
    """

    output_tail: str
    r"""The tail of the output. Bytes that are not UTF-8 are escaped, for example as \xff."""

    log_path: Path | None
    """The file with the output. None if no log was requested or the child wrote nothing."""

    survivors: tuple[int, ...]
    """The pids of the processes in the child's group that SIGKILL did not end in time."""

    dropped_bytes: int = 0
    """How much is missing in the middle of the log, because it has a limit. See child_log.py."""

    output_bytes: int | None = None
    """How many bytes the child wrote. None if the tail has all of them."""


class Children:
    """The child processes of one `with` block.

    Children inherit `lock_descriptors`, so they keep these locks if this process is killed. They
    learn `lock_paths` from an environment variable: a child that asks for one of these locks fails
    at once, instead of waiting for its own parent. `grace_seconds` is the time that children have
    to clean up before they are killed. `tail_bytes` is how much of the end of their output is kept.
    """

    def __init__(
        self,
        signals: Signals,
        lock_descriptors: Sequence[int] = (),
        lock_paths: Iterable[Path] = (),
        *,
        grace_seconds: float = GRACE_SECONDS,
        tail_bytes: int = TAIL_BYTES,
    ) -> None:
        self.has_started = False
        """Whether at least one child was started."""

        self.strays: list[int] = []
        """The pids of the strays that were ended: processes that had left their groups.

        The list is complete when the block has been left.
        """

        self._signals = signals
        self._lock_descriptors = tuple(lock_descriptors)
        # A child may run in another directory, where a relative path would mean another lock.
        self._lock_paths = [os.path.abspath(path) for path in lock_paths]
        self._grace_seconds = grace_seconds
        self._tail_bytes = tail_bytes

        self._running: dict[str, _Child] = {}
        """The children that are not reaped yet, by name."""

    def __enter__(self) -> "Children":
        return self

    def __exit__(
        self,
        _type: type[BaseException] | None,
        error: BaseException | None,
        _traceback: TracebackType | None,
    ) -> None:
        """End all children that still run: ask them to exit, wait for a while, then kill them.

        Signals raise no error here, and neither does a log that cannot be written. So nothing can
        skip the later steps.
        """
        exit_request: int = signal.SIGTERM
        if isinstance(error, Interrupted):
            # Pass on the same signal: a child may handle Ctrl-C differently from SIGTERM.
            exit_request = error.signal_number
        children = list(self._running.values())
        for child in children:
            _signal_group(child.group, exit_request)
        self._wait_for_grace_period(children)
        for child in children:
            self._kill_and_reap(child)
        self._end_strays()

    def start(
        self,
        name: str,
        argv: Sequence[str],
        *,
        cwd: Path,
        env: Mapping[str, str],
        make_log_path: Callable[[], Path] | None = None,
        stdin: int = subprocess.DEVNULL,
        stdout: int | None = None,
    ) -> None:
        """Start a child that runs a program: `argv` is the program and its arguments.

        The name identifies the child in the other methods, and must be unique among the children
        that run. The child gets no environment variables other than `env`, except for the one with
        the paths of the locks.

        If `make_log_path` is given, the output is appended to the file that it returns. It is
        called when there is something to write, so a silent child leaves neither a file nor a
        directory. If the file grows to 64 MiB, its middle is dropped (see child_log.py).

        By default, stdin is empty, and the output is stdout and stderr together. If `stdout` is
        given, stdout goes to that descriptor instead, and only stderr counts as the output.

        Raise Interrupted or DeadlineExceeded if this process has to stop, and OSError if the child
        cannot be started.
        """
        if stdout is None:
            # One pipe for both keeps the order in which the child has written.
            stdout_target, stderr_target = subprocess.PIPE, subprocess.STDOUT
        else:
            stdout_target, stderr_target = stdout, subprocess.PIPE

        self._signals.check()
        # From here on, no signal can raise an error (see signals.py). So it cannot happen that a
        # child runs, but is missing in self._running.
        process = subprocess.Popen(
            argv,
            cwd=cwd,
            env=self._environment_of_child(env),
            stdin=stdin,
            stdout=stdout_target,
            stderr=stderr_target,
            # Create a group for the child.
            process_group=0,
            pass_fds=self._lock_descriptors,
        )
        pipe = process.stdout if stdout is None else process.stderr
        assert pipe is not None
        self._running[name] = _Child(
            name=name,
            process=process,
            exit_descriptor=_open_exit_descriptor(process.pid),
            output=_Output(pipe, self._tail_bytes, ChildLog(make_log_path)),
        )
        self.has_started = True

    def next_exit(self, within_seconds: float | None = None) -> ChildExit | None:
        """Wait until a child exits, and return how it exited.

        Return None if no child runs, or if none exits within this time. With a time of 0, only
        look. By default, wait until a child exits or this process has to stop.

        Whatever the child has left running in its group is killed first.

        Raise Interrupted or DeadlineExceeded if this process has to stop. If a log could not be
        written, raise that error: OSError, or what `make_log_path` has raised. In all these cases,
        leave the `with` block of this object, which ends the other children.
        """
        give_up_at = None
        if within_seconds is not None:
            give_up_at = time.monotonic() + within_seconds
        while self._running:
            child_exit = self._look_for_exit()
            if child_exit is not None:
                return child_exit
            self._signals.check()
            seconds = _RECHECK_SECONDS
            if give_up_at is not None:
                seconds_left = give_up_at - time.monotonic()
                if seconds_left <= 0:
                    return None
                seconds = min(seconds, seconds_left)
            self._wait_for_event(seconds)
        return None

    def send_signal(self, name: str, number: int) -> None:
        """Send a signal to the group of a child. Do nothing if no child of this name runs.

        If that makes the child exit, `next_exit` returns it, as always.
        """
        child = self._running.get(name)
        if child is not None:
            _signal_group(child.group, number)

    def _environment_of_child(self, env: Mapping[str, str]) -> dict[str, str]:
        """Return the environment with the paths of the locks that are held while the child runs."""
        lock_paths = list(self._lock_paths)
        # This process may be a child itself, and its parent holds locks, too. The variable has one
        # path per line.
        inherited = os.environ.get(ANCESTORS_LOCKS)
        if inherited:
            lock_paths = [*inherited.split("\n"), *lock_paths]
        environment = dict(env)
        if lock_paths:
            environment[ANCESTORS_LOCKS] = "\n".join(lock_paths)
        return environment

    def _look_for_exit(self) -> ChildExit | None:
        """Read the output of all children until one is found that has exited. Reap that one."""
        for child in list(self._running.values()):
            # Ask whether it has exited before reading its output. In the other order, it could
            # write and exit in between. _kill_and_reap() would then log its last output, after the
            # check for a failure of the log.
            has_exited = _has_exited(child.process)
            child.output.read()
            if child.output.log.failure is not None:
                raise child.output.log.failure
            if has_exited:
                # Its group may have processes that still run. They are killed here.
                return self._kill_and_reap(child)
        return None

    def _wait_for_event(self, max_seconds: float) -> None:
        """Sleep until a child writes or exits, a signal arrives, or the time is over."""
        seconds = max_seconds
        watched = []
        for child in self._running.values():
            # A closed pipe is always readable: watching it would keep the processor busy.
            if not child.output.is_closed:
                watched.append(child.output.descriptor)
            if child.exit_descriptor is not None:
                watched.append(child.exit_descriptor)
            else:
                # Nothing announces the exit of this child, so return soon to look at it.
                seconds = min(seconds, _POLL_SECONDS)
        self._signals.wait(seconds, watched)

    def _wait_for_grace_period(self, children: Sequence["_Child"]) -> None:
        """Wait until all children have exited, the grace period is over, or a second signal came.

        This calls time.sleep(), because `Signals.wait` returns at once after a first signal.
        """
        deadline = time.monotonic() + self._grace_seconds
        while time.monotonic() < deadline and not self._signals.is_repeated:
            for child in children:
                # A child with a full pipe would block, and could not clean up.
                child.output.read()
            if all(_has_exited(child.process) for child in children):
                return
            time.sleep(_POLL_SECONDS)

    def _kill_and_reap(self, child: "_Child") -> ChildExit:
        """Kill what runs in the child's group, reap the child, and return how it exited."""
        # Kill before reaping. While the child is a zombie, the number of its group is reserved.
        # Afterwards the number may belong to processes that have nothing to do with this one.
        _signal_group(child.group, signal.SIGKILL)
        deadline = time.monotonic() + _DEATH_SECONDS
        while not _has_exited(child.process) and time.monotonic() < deadline:
            time.sleep(_POLL_SECONDS)

        survivors: tuple[int, ...]
        exit_code = _reap(child.process)
        if exit_code is None:
            # The child itself has survived SIGKILL, so it has no exit code. Report the signal.
            exit_code = -signal.SIGKILL
            survivors = (child.process.pid,)
            # If Popen had no exit code, Python would warn that the child still runs.
            child.process.returncode = exit_code
        else:
            survivors = _wait_for_group(child.group, deadline)

        # Only now is the output complete: no process of the group can write to the pipe any more.
        child.output.read()
        del self._running[child.name]
        child.close()
        return ChildExit(
            name=child.name,
            exit_code=exit_code,
            output_tail=bytes(child.output.tail).decode("utf-8", "backslashreplace"),
            log_path=child.output.log.path,
            survivors=survivors,
            dropped_bytes=child.output.log.dropped_bytes,
            output_bytes=child.output.bytes_unless_in_tail(),
        )

    def _end_strays(self) -> None:
        """End the strays: processes that were started here, but have left their groups.

        The kernel says which processes inherited a lock from this one. Without a lock, a process
        that left its group could not be told from one that was never started here.
        """
        # Each child inherits all of the locks, so asking about the first one is enough.
        if self.has_started and self._lock_descriptors:
            self.strays = end_strays(self._lock_descriptors[0], self._signals)


@dataclass(frozen=True)
class _Child:
    """A child that is not reaped yet."""

    name: str
    process: subprocess.Popen[bytes]
    exit_descriptor: int | None
    """A descriptor that becomes readable when the child exits. None if the system has no such."""

    output: "_Output"

    @property
    def group(self) -> int:
        """The number of the child's process group. The child is the leader of its group."""
        return self.process.pid

    def close(self) -> None:
        """Close all descriptors that belong to this child."""
        self.output.close()
        if self.exit_descriptor is not None:
            os.close(self.exit_descriptor)


class _Output:
    """The output of a child: the pipe that it arrives in, its tail, and its log."""

    def __init__(self, pipe: IO[bytes], max_tail_bytes: int, log: ChildLog) -> None:
        # A read() from an empty pipe would block until the child writes something.
        os.set_blocking(pipe.fileno(), False)
        self.tail = bytearray()
        self.log = log
        self.is_closed = False
        """Whether the child has closed its end of the pipe. It may still run."""

        self._pipe = pipe
        self._max_tail_bytes = max_tail_bytes
        self._total_bytes = 0

    @property
    def descriptor(self) -> int:
        """A descriptor that is readable if the child has written something."""
        return self._pipe.fileno()

    def read(self) -> None:
        """Read what the child has written so far. Keep the tail of it, and append it to the log.

        Stop after _MAX_CHUNKS (1 MiB), so that a child that writes all the time cannot keep this
        process here.
        """
        for _ in range(_MAX_CHUNKS):
            try:
                chunk = os.read(self._pipe.fileno(), _CHUNK_BYTES)
            except BlockingIOError:
                # The pipe is empty, but the child may write more.
                return
            if not chunk:
                self.is_closed = True
                return
            self._total_bytes += len(chunk)
            self._append_to_tail(chunk)
            self.log.append(chunk)

    def _append_to_tail(self, chunk: bytes) -> None:
        self.tail += chunk
        excess_bytes = len(self.tail) - self._max_tail_bytes
        if excess_bytes > 0:
            del self.tail[:excess_bytes]

    def bytes_unless_in_tail(self) -> int | None:
        """Return how many bytes were read, or None if the tail has all of them."""
        if self._total_bytes == len(self.tail):
            return None
        return self._total_bytes

    def close(self) -> None:
        self._pipe.close()
        self.log.close()


def _open_exit_descriptor(pid: int) -> int | None:
    """Return a descriptor that becomes readable when this process exits.

    Return None where the system has no pid descriptors: on macOS, on Linux before 5.3, and in
    some sandboxes.
    """
    with suppress(OSError, AttributeError):
        return os.pidfd_open(pid)
    return None


def _has_exited(process: subprocess.Popen[bytes]) -> bool:
    """Return whether the child has exited. Leave it a zombie if the system can do that.

    As long as it is a zombie, no other process gets its pid. Where it has to be reaped, its exit
    code is kept, and `_reap` returns it later.
    """
    if not hasattr(os, "waitid"):
        # macOS, with Python before 3.13 (CPython issue 113536). There, the child has to be reaped
        # at once. So for a moment its pid could be reused before its group is killed.
        return _reap(process) is not None
    # WNOWAIT leaves the zombie. WNOHANG makes waitid() return None if the child still runs.
    flags = os.WEXITED | os.WNOWAIT | os.WNOHANG
    try:
        return os.waitid(os.P_PID, process.pid, flags) is not None
    except ChildProcessError:
        # There is no zombie, because this process has reaped the child before, or because SIGCHLD
        # is ignored. _reap() returns the exit code that was kept, or else LOST_EXIT_CODE.
        return _reap(process) is not None


def _reap(process: subprocess.Popen[bytes]) -> int | None:
    """Return the exit code of the child, or None if it still runs. Calling this twice is safe.

    `Popen.poll` is not used: it returns 0 if the kernel has discarded the exit code (CPython issue
    15756).
    """
    if process.returncode is not None:
        return process.returncode
    try:
        pid, wait_status = os.waitpid(process.pid, os.WNOHANG)
    except ChildProcessError:
        process.returncode = LOST_EXIT_CODE
        return LOST_EXIT_CODE
    if pid == 0:
        return None
    process.returncode = os.waitstatus_to_exitcode(wait_status)
    return process.returncode


def _signal_group(group: int, number: int) -> None:
    """Send a signal to all processes of a group, as far as they exist and permit it."""
    # PermissionError: all of them belong to another user. On macOS also: all of them are zombies.
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(group, number)


def _wait_for_group(group: int, deadline: float) -> tuple[int, ...]:
    """Wait until no process of the group runs, at most until the deadline.

    Return the pids of the processes that still run then.
    """
    while True:
        running = _find_running_members(group)
        if not running or time.monotonic() >= deadline:
            return running
        time.sleep(_POLL_SECONDS)


def _find_running_members(group: int) -> tuple[int, ...]:
    """Return the pids of the processes of this group that run.

    Zombies do not count: it may happen that their parent never reaps them. But where /proc cannot
    be used, zombies are not recognized and pids are not known. Then return the number of the group,
    which is the pid of its first process, if there is any process or zombie in it.
    """
    try:
        # Signal 0 is not sent. The kernel only checks whether the group has processes.
        os.killpg(group, 0)
    except ProcessLookupError:
        return ()
    except PermissionError:
        # The group has processes, although this one may not send signals to them. So continue.
        pass
    if can_see_processes():
        return members_of_group(group)
    return (group,)
