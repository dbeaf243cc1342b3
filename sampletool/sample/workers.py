"""Work spread over forks of this process that cannot outlive it; their results come in the order of the tasks.

Forks begin at once and share what is in memory already. They only compute and hand over, so one that ends early loses
nothing but time. Which worker does which task is fixed, and a worker that is ahead waits in its pipe, so memory stays
bounded. A signal is recorded here as in this process, and does nothing: this process ends the workers. When it is
gone, kill -9 included, each ends at its next `check`, which `work` calls often, or when it hands over.
"""

import os
import pickle
import signal
import struct
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import NamedTuple, NoReturn, TypeVar

from sampletool.kit.safety.atomic_file import write_all
from sampletool.kit.safety.signals import Signals
from sampletool.sample.errors import WorkerLost

_HEADER = struct.Struct("<?Q")
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
    crew: list[_Worker] = []
    count = min(jobs, len(tasks))
    try:
        for number in range(count):
            crew.append(_fork(tasks[number::count], work))
        yield (_receive(crew[number % count], signals, check) for number in range(len(tasks)))
    finally:
        _end(crew)


def _fork(tasks: Sequence[Task], work: Callable[[Task, Check], Out]) -> _Worker:
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
            _work(tasks, work, parent, write_end)
    finally:
        os.close(write_end)
    return _Worker(pid, read_end)


def _work(tasks: Sequence[Task], work: Callable[[Task, Check], Out], parent: int, pipe: int) -> NoReturn:
    """Never returns: what this process has opened is its own to close."""

    def check() -> None:
        if os.getppid() != parent:
            os._exit(1)

    def send(is_result: bool, content: bytes) -> None:
        write_all(pipe, _HEADER.pack(is_result, len(content)) + content)

    try:
        for task in tasks:
            send(True, pickle.dumps(work(task, check), pickle.HIGHEST_PROTOCOL))
    except Exception:
        send(False, traceback.format_exc().encode("utf-8", "backslashreplace"))
    finally:
        os._exit(0)


def _receive(worker: _Worker, signals: Signals, check: Check) -> Out:  # type: ignore[type-var]
    is_result, size = _HEADER.unpack(_read(worker, _HEADER.size, signals, check))
    content = _read(worker, size, signals, check)
    if not is_result:
        raise RuntimeError(f"a worker process failed:\n{content.decode()}")
    result: Out = pickle.loads(content)  # noqa: S301 - from a fork of ours, through a pipe that nobody else has
    return result


def _read(worker: _Worker, size: int, signals: Signals, check: Check) -> bytes:
    content = bytearray()
    while len(content) < size:
        check()
        if signals.wait(_TICK_SECONDS, [worker.pipe]):
            if not (piece := os.read(worker.pipe, min(_READ_BYTES, size - len(content)))):
                raise _lost(worker)
            content += piece
    return bytes(content)


def _lost(worker: _Worker) -> WorkerLost:
    how = "ended"
    with suppress(ChildProcessError):  # SIGCHLD is ignored: how it ended is lost
        end = os.waitid(os.P_PID, worker.pid, os.WEXITED | os.WNOWAIT)
        if end is not None and end.si_code != os.CLD_EXITED:
            how = f"was killed by {signal.Signals(end.si_status).name}"
    return WorkerLost(pid=worker.pid, end=how)


def _end(crew: list[_Worker]) -> None:
    """Kill and reap. A worker that does not die, in a system call that cannot be interrupted, is left to the system."""
    for worker in crew:
        with suppress(ProcessLookupError):
            os.kill(worker.pid, signal.SIGKILL)
        os.close(worker.pipe)
    deadline = time.monotonic() + _REAP_SECONDS
    for worker in crew:
        with suppress(ChildProcessError):
            while not os.waitpid(worker.pid, os.WNOHANG)[0] and time.monotonic() < deadline:
                time.sleep(0.001)
