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
from collections.abc import Callable, Generator, Sequence
from contextlib import suppress
from itertools import islice
from typing import Any, NamedTuple

from sampletool.kit.safety.atomic_file import write_all
from sampletool.kit.safety.signals import Signals
from sampletool.sample.errors import WorkerLost

_READ_BYTES = 1024 * 1024
_TICK_SECONDS = 0.2
_REAP_SECONDS = 2.0

Check = Callable[[], None]
Work = Callable[[Any, Check], Any]


class _Worker(NamedTuple):
    pid: int
    pipe: int


def results_of(
    tasks: Sequence[Any], work: Work, jobs: int, signals: Signals, check: Check
) -> Generator[Any, None, None]:
    """The result of each task. `check` is called while we wait, and may raise. Closing the generator ends them all."""
    left = iter(tasks)
    crew: deque[_Worker] = deque()
    try:
        crew.extend(_fork(task, work) for task in islice(left, jobs))
        while crew:
            result = _receive(crew[0], signals, check)
            _end(crew.popleft())
            crew.extend(_fork(task, work) for task in islice(left, 1))
            yield result
    finally:
        for worker in crew:
            _end(worker)


def _fork(task: Any, work: Work) -> _Worker:
    """A child never returns from here: what this process has opened is its own to close."""
    parent, (read_end, write_end) = os.getpid(), os.pipe()

    def check() -> None:
        if os.getppid() != parent:
            os._exit(1)

    try:
        pid = os.fork()
    except OSError as error:
        raise WorkerLost(f"A worker process could not be started: {os.strerror(error.errno or 0).lower()}.") from error
    if pid:
        os.close(write_end)
        return _Worker(pid, read_end)
    try:
        os.close(read_end)  # or writing would not fail when the reader is gone
        try:
            result = work(task, check)
        except Exception as error:
            error.add_note(traceback.format_exc())
            result = error
        write_all(write_end, pickle.dumps(result, pickle.HIGHEST_PROTOCOL))
    finally:
        os._exit(0)


def _receive(worker: _Worker, signals: Signals, check: Check) -> Any:
    content, is_over = bytearray(), False
    while not is_over:
        check()
        if signals.wait(_TICK_SECONDS, [worker.pipe]):
            piece = os.read(worker.pipe, _READ_BYTES)
            content += piece
            is_over = not piece
    try:
        result = pickle.loads(content)  # noqa: S301 - from a fork of ours, through a pipe that nobody else has
    except (EOFError, pickle.UnpicklingError):
        raise WorkerLost(pid=worker.pid) from None
    if isinstance(result, Exception):
        raise result
    return result


def _end(worker: _Worker) -> None:
    """Kill and reap. A worker that does not die, in a system call that cannot be interrupted, is left to the system."""
    os.close(worker.pipe)
    deadline = time.monotonic() + _REAP_SECONDS
    with suppress(ProcessLookupError, ChildProcessError):
        os.kill(worker.pid, signal.SIGKILL)
        while not os.waitpid(worker.pid, os.WNOHANG)[0] and time.monotonic() < deadline:
            time.sleep(0.001)
