"""Work spread over processes of ours that cannot outlive us; one coordinator gets their results, in the order of tasks.

Workers are forked: they begin at once and share what is in memory already. They only compute and hand over, so one
that ends early loses nothing but time. Who works on which task is fixed, and the coordinator reads in order: a worker
that is ahead waits in its pipe, so memory stays bounded. Workers ignore signals, it is the coordinator that decides;
when it is gone, kill -9 included, each ends at its next `check`, which `work` calls often, or its next hand-over.
Garbage collection stays off in them, as the door left it: work that makes cycles has to collect for itself.
"""

import os
import pickle
import signal
import struct
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from typing import Any, NoReturn, TypeVar

from sampletool.kit.safety.atomic_file import write_all
from sampletool.kit.safety.signals import HANDLED, Signals
from sampletool.sample.errors import WorkerLost

_HEADER = struct.Struct("<cQ")
_RESULT, _END, _CRASH = b"r", b"e", b"c"
_READ_BYTES = 1024 * 1024
_TICK_SECONDS = 0.2
_REAP_SECONDS = 2.0

T = TypeVar("T")
Check = Callable[[], None]
Send = Callable[[bytes, bytes], None]
Work = Callable[[T, Check], Iterator[Any]]
"""From one task to any number of results; has to call the check every now and then."""


@contextmanager
def workers(
    tasks: Sequence[T], work: Work[T], jobs: int, signals: Signals
) -> Iterator[Iterator[tuple[T, Iterator[Any]]]]:
    """Each task with its results, which have to be used up before the next task. Leaving ends every worker."""
    crew = _Crew(signals)
    try:
        count = min(jobs, len(tasks))
        for number in range(count):
            crew.fork(partial(_work_on, tasks[number::count], work))
        yield ((task, crew.results(number % count)) for number, task in enumerate(tasks))
    finally:
        crew.end()


def _work_on(tasks: Sequence[T], work: Work[T], send: Send, check: Check) -> None:
    for task in tasks:
        for result in work(task, check):
            send(_RESULT, pickle.dumps(result, pickle.HIGHEST_PROTOCOL))
        send(_END, b"")


class _Crew:
    def __init__(self, signals: Signals) -> None:
        self._signals = signals
        self._pids: list[int] = []
        self._pipes: list[int] = []

    def fork(self, run: Callable[[Send, Check], None]) -> None:
        parent = os.getpid()
        read_end, write_end = os.pipe()
        # Nothing may come between forking and knowing the pid, or between being forked and ignoring signals.
        blocked = signal.pthread_sigmask(signal.SIG_BLOCK, HANDLED)
        try:
            pid = os.fork()
            if pid == 0:
                _be_worker(run, parent, write_end, [*self._pipes, read_end], blocked)
            self._pids.append(pid)
            self._pipes.append(read_end)
        finally:
            os.close(write_end)
            signal.pthread_sigmask(signal.SIG_SETMASK, blocked)

    def results(self, number: int) -> Iterator[Any]:
        while True:
            kind, size = _HEADER.unpack(self._read(number, _HEADER.size))
            content = self._read(number, size)
            if kind == _CRASH:
                raise RuntimeError(f"a worker process failed:\n{content.decode()}")
            if kind == _END:
                return
            yield pickle.loads(content)  # noqa: S301 - from a fork of ourselves, through a pipe that nobody else has

    def _read(self, number: int, size: int) -> bytes:
        content = bytearray()
        while len(content) < size:
            self._signals.check()
            if self._signals.wait(_TICK_SECONDS, [self._pipes[number]]):
                if not (piece := os.read(self._pipes[number], min(_READ_BYTES, size - len(content)))):
                    raise self._lost(number)
                content += piece
        return bytes(content)

    def _lost(self, number: int) -> WorkerLost:
        pid, status = self._pids.pop(number), 255 << 8
        with suppress(ChildProcessError):
            _, status = os.waitpid(pid, 0)
        code = os.waitstatus_to_exitcode(status)
        end = f"was killed by {signal.Signals(-code).name}" if code < 0 else f"ended with {code}"
        return WorkerLost(pid=pid, end=end)

    def end(self) -> None:
        """Kill and reap; safe twice."""
        for pid in self._pids:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        deadline = time.monotonic() + _REAP_SECONDS
        while self._pids and time.monotonic() < deadline:
            with suppress(ChildProcessError):  # SIGCHLD is ignored: it has been reaped
                if not os.waitpid(self._pids[-1], os.WNOHANG)[0]:
                    time.sleep(0.001)
                    continue
            self._pids.pop()
        while self._pipes:
            os.close(self._pipes.pop())


def _be_worker(
    run: Callable[[Send, Check], None],
    parent: int,
    pipe: int,
    others: list[int],
    mask: set[Any],
) -> NoReturn:
    """Never returns: what the coordinator has opened is the coordinator's to close."""

    def check() -> None:
        if os.getppid() != parent:
            os._exit(1)

    def send(kind: bytes, content: bytes) -> None:
        write_all(pipe, _HEADER.pack(kind, len(content)) + content)

    try:
        signal.set_wakeup_fd(-1)
        for number in HANDLED:
            signal.signal(number, signal.SIG_IGN)
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        for descriptor in others:
            os.close(descriptor)
        try:
            run(send, check)
        except BrokenPipeError:
            os._exit(1)
        except Exception:
            send(_CRASH, traceback.format_exc().encode("utf-8", "backslashreplace"))
    finally:
        os._exit(0)
