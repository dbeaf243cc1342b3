"""Run a function for many tasks at the same time, in processes that cannot outlive this one.

Use threads or `context.blocking` to wait for something. Use this to compute something: Python runs
the code of only one thread at a time, but each process has a processor of its own.

* The *coordinator* is the process that calls `running_workers`.
* A *worker* is a fork of the coordinator. It runs the function for one task, sends the result
  through a pipe, and exits. A fork starts at once, and has everything that is in memory already.

The results arrive in the order of the tasks. So they do not depend on the number of workers.

No worker outlives the coordinator, even if the coordinator is killed with SIGKILL. A thread in each
worker checks several times in a second whether the coordinator is still its parent. The kernel
could send a signal instead (PR_SET_PDEATHSIG). But only Linux has that, and the signal also comes
when just the thread that has forked the worker ends.
"""

import os
import pickle
import signal
import time
import traceback
from collections import deque
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from threading import Thread
from typing import Any, Generic, NoReturn, TypeVar

from ..contract.errors import WorkerLost
from ..safety.atomic_file import write_all
from ..safety.signals import HANDLED, Signals

Task = TypeVar("Task")
Result = TypeVar("Result")

_READ_BYTES = 1024 * 1024

_LONGEST_WAIT_SECONDS = 0.2
"""How long to wait for a result before calling `while_waiting` again."""

_SECONDS_BETWEEN_LOOKS = 0.2
"""How long a worker may run after the coordinator was killed."""


def _do_nothing() -> None:
    """Do nothing while waiting."""


@contextmanager
def running_workers(
    function: Callable[[Task], Result],
    tasks: Sequence[Task],
    jobs: int,
    signals: Signals,
    while_waiting: Callable[[], None] = _do_nothing,
) -> Iterator[Iterator[Result]]:
    """Yield an iterator over the results of the function, in the order of the tasks.

    Up to `jobs` workers run at the same time. Leaving the block kills those that still run.

    The iterator raises what the function raises, WorkerLost if a worker exits without a result or
    cannot be started, and Interrupted or DeadlineExceeded. While it waits for a result, it calls
    `while_waiting`, which may raise an error too.

    The function must not take locks or start children. It changes only its own copy of what is in
    memory, so it has to return everything that it finds out. Results are pickled.
    """
    workers: deque[_Worker[Result]] = deque()
    results = _results_in_order(workers, function, tasks, jobs, signals, while_waiting)
    try:
        yield results
    finally:
        results.close()
        for worker in workers:
            worker.end()


def _results_in_order(
    workers: "deque[_Worker[Result]]",
    function: Callable[[Task], Result],
    tasks: Sequence[Task],
    jobs: int,
    signals: Signals,
    while_waiting: Callable[[], None],
) -> Generator[Result, None, None]:
    """Yield the results in the order of the tasks, and start a worker for each task.

    `workers` has the workers that were not ended yet, oldest first. It is a parameter because the
    caller ends them if it stops reading results.
    """
    started = 0
    while True:
        # A worker that has its result ready keeps its place until the results before it are read.
        # So at most `jobs` results are in memory at the same time.
        while started < len(tasks) and len(workers) < jobs:
            try:
                workers.append(_start_worker(function, tasks[started]))
            except OSError as error:
                if workers:
                    # Too many processes or open files. There is room when a worker has ended.
                    break
                raise _cannot_start(error) from error
            started += 1
        if not workers:
            return
        result = workers[0].receive(signals, while_waiting)
        workers.popleft().end()
        yield result


def _cannot_start(error: OSError) -> WorkerLost:
    """Return the error for a worker that could not be started, although none is running."""
    reason = os.strerror(error.errno or 0)
    return WorkerLost(f"No worker process could be started: {reason}.", reason=reason)


def _start_worker(function: Callable[[Task], Result], task: Task) -> "_Worker[Result]":
    """Fork a worker for this task. Raise OSError if that fails."""
    coordinator_pid = os.getpid()
    read_end, write_end = os.pipe()
    try:
        pid = os.fork()
    except OSError:
        os.close(read_end)
        os.close(write_end)
        raise
    if pid == 0:
        os.close(read_end)
        _run_as_worker(function, task, write_end, coordinator_pid)
    os.close(write_end)
    return _Worker(pid, read_end)


def _run_as_worker(
    function: Callable[[Task], Result],
    task: Task,
    write_end: int,
    coordinator_pid: int,
) -> NoReturn:
    """Send what the function returns or raises to `write_end`, and exit.

    A process that was just forked calls this. It never returns.
    """
    # Whatever happens, the worker must not return from here: it would do the coordinator's work a
    # second time. os._exit() also skips the clean-up that the coordinator has registered.
    try:
        _ignore_signals()
        Thread(target=_exit_after, args=(coordinator_pid,), daemon=True).start()
        try:
            message = pickle.dumps(function(task))
        except BaseException as error:
            message = _failure_message(error)
        write_all(write_end, message)
    finally:
        os._exit(0)


def _ignore_signals() -> None:
    """Ignore the signals that ask a process to stop. The coordinator ends its workers.

    Ctrl-C sends SIGINT to the workers as well. If they exited by themselves, the coordinator could
    notice that before its own signal, and report lost workers instead of the signal. The handlers
    of the coordinator would be wrong here, too: a signal to one worker would write to the pipe that
    wakes up the coordinator, which would never sleep again.
    """
    for number in HANDLED:
        signal.signal(number, signal.SIG_IGN)


def _exit_after(coordinator_pid: int) -> None:
    """Exit as soon as the coordinator has exited. A thread of each worker runs this."""
    # When a parent exits, the system gives its children another parent.
    while os.getppid() == coordinator_pid:
        time.sleep(_SECONDS_BETWEEN_LOOKS)
    os._exit(1)


@dataclass(frozen=True)
class _Failure:
    """What a worker sends instead of a result if the function has raised an error."""

    error: BaseException


def _failure_message(error: BaseException) -> bytes:
    """Return the message that makes the coordinator raise this error, with its traceback."""
    note = f"Raised in a worker process:\n{''.join(traceback.format_exception(error))}"
    error.add_note(note)
    try:
        message = pickle.dumps(_Failure(error))
        # An error whose class has an __init__ of its own may be pickled, but not restored.
        pickle.loads(message)  # noqa: S301 (it was pickled in the line above)
    except Exception:
        stand_in = RuntimeError(f"{type(error).__name__}: {error}")
        stand_in.add_note(note)
        message = pickle.dumps(_Failure(stand_in))
    return message


@dataclass(frozen=True)
class _Worker(Generic[Result]):
    """A worker, as the coordinator sees it."""

    pid: int
    read_end: int
    """The end of the pipe from which the coordinator reads the result."""

    def receive(self, signals: Signals, while_waiting: Callable[[], None]) -> Result:
        """Wait for the result, and return it.

        Raise what the function has raised in the worker, or WorkerLost if the worker exited before
        it had sent everything. While waiting, `while_waiting` is called again and again.
        """
        message = bytearray()
        while True:
            signals.check()
            while_waiting()
            is_readable = signals.wait(_LONGEST_WAIT_SECONDS, [self.read_end])
            if not is_readable:
                continue
            piece = os.read(self.read_end, _READ_BYTES)
            if not piece:
                # The worker has exited, so its end of the pipe is closed.
                break
            message += piece
        try:
            received: Any = pickle.loads(message)  # noqa: S301 (only the worker has the other end)
        except (EOFError, pickle.UnpicklingError):
            # The message is empty or incomplete: the worker was killed.
            raise WorkerLost(pid=self.pid) from None
        if isinstance(received, _Failure):
            raise received.error
        result: Result = received
        return result

    def end(self) -> None:
        """Kill the worker if it still runs, and release what the system keeps for it."""
        os.close(self.read_end)
        # This cannot kill another process: the system does not reuse the pid of an exited child
        # before waitpid() is called. If SIGCHLD is ignored, it does not keep the pid, so an exited
        # worker is missing in both calls.
        with suppress(ProcessLookupError):
            os.kill(self.pid, signal.SIGKILL)
        with suppress(ChildProcessError):
            os.waitpid(self.pid, 0)
