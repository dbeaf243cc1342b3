"""Work spread over forks of this process that cannot outlive it; their results come in the order of the tasks.

A fork begins at once and shares what is in memory already. It does one task, hands over the result through a pipe and
ends. A signal is recorded there as in this process, and does nothing: this process ends the workers. When it is gone,
kill -9 included, each ends at its next `check`, which `work` calls often, or when it hands over.
"""

import os
import pickle
import signal
import time
import traceback
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from itertools import islice
from typing import NamedTuple, NoReturn, TypeVar

from sampletool.kit.safety.atomic_file import write_all
from sampletool.kit.safety.signals import Signals
from sampletool.sample.errors import WorkerLost

_READ_BYTES = 1024 * 1024
_TICK_SECONDS = 0.2
_REAP_SECONDS = 2.0

Task = TypeVar("Task")
Out = TypeVar("Out")
Check = Callable[[], None]


class _Worker(NamedTuple):
    pid: int
    pipe: int


@contextmanager
def workers(
    tasks: Sequence[Task], work: Callable[[Task, Check], Out], jobs: int, signals: Signals, check: Check
) -> Iterator[Iterator[Out]]:
    """The result of each task. `check` is called while we wait, and may raise. Leaving ends every worker."""
    crew: deque[_Worker] = deque()
    left = iter(tasks)

    def start() -> None:
        crew.extend(_fork(task, work) for task in islice(left, jobs - len(crew)))

    def results() -> Iterator[Out]:
        while crew:
            result: Out = _receive(crew[0], signals, check)
            _end(crew.popleft())
            start()
            yield result

    try:
        start()
        yield results()
    finally:
        for worker in crew:
            _end(worker)


def _fork(task: Task, work: Callable[[Task, Check], object]) -> _Worker:
    parent = os.getpid()
    read_end, write_end = os.pipe()
    try:
        pid = os.fork()
    except OSError as error:
        os.close(read_end)
        reason = os.strerror(error.errno or 0).lower()
        raise WorkerLost(f"A worker process could not be started: {reason}.") from error
    else:
        if pid == 0:
            os.close(read_end)  # or writing would not fail when the reader is gone
            _work(task, work, parent, write_end)
    finally:
        os.close(write_end)
    return _Worker(pid, read_end)


def _work(task: Task, work: Callable[[Task, Check], object], parent: int, pipe: int) -> NoReturn:
    """Never returns: what this process has opened is its own to close."""

    def check() -> None:
        if os.getppid() != parent:
            os._exit(1)

    try:
        try:
            content = pickle.dumps((work(task, check), None), pickle.HIGHEST_PROTOCOL)
        except Exception:
            content = pickle.dumps((None, traceback.format_exc()))
        write_all(pipe, content)
    finally:
        os._exit(0)


def _receive(worker: _Worker, signals: Signals, check: Check) -> Out:  # type: ignore[type-var]
    content, is_over = bytearray(), False
    while not is_over:
        check()
        if signals.wait(_TICK_SECONDS, [worker.pipe]):
            piece = os.read(worker.pipe, _READ_BYTES)
            content += piece
            is_over = not piece
    try:
        result, failure = pickle.loads(content)  # noqa: S301 - from a fork of ours, through a pipe that nobody else has
    except (EOFError, pickle.UnpicklingError):
        raise WorkerLost(pid=worker.pid) from None
    if failure:
        raise RuntimeError(f"a worker process failed:\n{failure}")
    return result  # type: ignore[no-any-return]


def _end(worker: _Worker) -> None:
    """Kill and reap. A worker that does not die, in a system call that cannot be interrupted, is left to the system."""
    with suppress(ProcessLookupError):
        os.kill(worker.pid, signal.SIGKILL)
    os.close(worker.pipe)
    deadline = time.monotonic() + _REAP_SECONDS
    with suppress(ChildProcessError):
        while not os.waitpid(worker.pid, os.WNOHANG)[0] and time.monotonic() < deadline:
            time.sleep(0.001)
