"""Work spread over forks of this process that cannot outlive it; their results come in the order of the tasks.

A fork begins at once and shares what is in memory already. It does one task, hands over the result through a pipe and
ends. A signal is recorded there as in this process, and does nothing: this process ends the workers. When it is gone,
kill -9 included, each ends at its next `check`, which `work` calls often, or when it hands over.
"""

import os
import pickle
import signal
import traceback
from collections import deque
from collections.abc import Callable, Generator
from contextlib import suppress
from itertools import islice
from typing import Any, NamedTuple

from ..kit.safety.atomic_file import write_all
from ..kit.safety.signals import Signals
from .errors import WorkerLost

_READ_BYTES = 1024 * 1024
_TICK_SECONDS = 0.2

Check = Callable[[], None]
Work = Callable[[Any, Check], Any]


class _Worker(NamedTuple):
    pid: int
    pipe: int


def results_of(tasks: list[Any], work: Work, jobs: int, signals: Signals, check: Check) -> Generator[Any, None, None]:
    """The result of each task. `check` is called while we wait, and may raise. Closing the generator ends them all."""
    left = iter(tasks)
    crew: deque[_Worker] = deque()
    try:
        for _ in tasks:
            crew.extend(_fork(task, work) for task in islice(left, jobs - len(crew)))
            result = _receive(crew[0], signals, check)
            _end(crew.popleft())
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
        os.close(read_end)
        os.close(write_end)
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
    content = bytearray()
    while True:
        check()
        if signals.wait(_TICK_SECONDS, [worker.pipe]):
            if not (piece := os.read(worker.pipe, _READ_BYTES)):
                break
            content += piece
    try:
        result = pickle.loads(content)  # noqa: S301 - from a fork of ours, through a pipe that nobody else has
    except (EOFError, pickle.UnpicklingError):
        raise WorkerLost(pid=worker.pid) from None
    if isinstance(result, Exception):
        raise result
    return result


def _end(worker: _Worker) -> None:
    os.close(worker.pipe)
    with suppress(ProcessLookupError, ChildProcessError):
        os.kill(worker.pid, signal.SIGKILL)
        os.waitpid(worker.pid, 0)
