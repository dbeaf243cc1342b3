"""The threads of this process, stepped: only one runs at a time, and the lab decides which.

A thread stops before each access to shared memory, see memory_access.py, and before it uses a lock,
see stepped_lock.py. The *main thread* runs no worker. It follows the commands of the lab, see
thread_server.py, and waits while a worker runs.

Python calls the trace function before each instruction of a worker. So the worker itself finds out
that its next instruction is an access. Then it lets the main thread continue, and waits for a real
lock until it may make the access.
"""

import _thread
import sys
import time
from collections.abc import Callable
from types import FrameType
from typing import Any

from ..kit.stepping.effects import READ, Effects
from .memory_access import OBJECTS, AccessFinder
from .outcome import Outcome
from .refusals import refuse

_MOST_INSTRUCTIONS = 100_000
"""A worker that runs so many instructions without an access is in an endless loop.

To trace them takes about one second.
"""
_PATIENCE_SECONDS = 10
"""The time limit of a worker that waits for something other than a lock of `threading`."""
_LEAST_CPU_SECONDS = 0.1
"""A worker that has computed less than this in that time waits. On a busy machine, it is slow."""

# The lab's own locks and its clock, which stay as they are.
_new_real_lock = _thread.allocate_lock
_process_time = time.process_time


class _Turn:
    """The permission of one thread to run. Another thread gives it, and it lasts until a stop."""

    def __init__(self) -> None:
        # The lock is free only from give() until the thread continues.
        self._lock = _new_real_lock()
        self._lock.acquire()

    def give(self) -> None:
        """Let the thread continue. Another thread calls this, then waits for its own turn."""
        self._lock.release()

    def wait(self) -> None:
        """Stop until it is the turn of the thread. The thread itself calls this."""
        self._lock.acquire()

    def wait_at_most(self, seconds: float) -> bool:
        """Stop like `wait`, but not longer than this. Return whether it is the thread's turn."""
        return self._lock.acquire(timeout=seconds)


class WorkerThread:
    """One worker, which runs in a thread of its own."""

    def __init__(self, name: str, work: Callable[[str], Outcome]) -> None:
        self.name = name
        """The name of the worker: A, B and so on."""
        self.next_stop: dict[str, Any] | None = None
        """The facts about the event before which it has stopped, for the lab.

        None before the worker starts and after its end.
        """
        self.effects: Effects = {}
        """The resources that it has read or changed since it continued."""
        self.outcome: Outcome | None = None
        """The outcome of the worker. None while it runs."""
        self.locks_created = 0
        """The number of locks that the worker has created."""
        self.line_with_loaded_object: tuple[FrameType, int] | None = None
        """The frame and line in which it has loaded an object that other threads may change."""
        self.instructions_since_stop = 0
        self._work = work
        self._turn = _Turn()

    def main(self, threads: "Threads") -> None:
        """Wait until the worker may start, and run it. This is the function of the thread."""
        self.wait_for_turn()
        sys.settrace(threads.trace)
        try:
            self.outcome = self._work(self.name)
        except SystemExit:
            # As in any thread, sys.exit() only ends this one.
            self.outcome = Outcome()
        sys.settrace(None)
        threads.return_to_main_thread(self)

    def give_turn(self) -> None:
        """Let the thread continue. The main thread calls this."""
        self.next_stop = None
        self.effects = {}
        self.instructions_since_stop = 0
        self._turn.give()

    def wait_for_turn(self) -> None:
        """Stop the thread until it may continue. The thread itself calls this."""
        self._turn.wait()


class Threads:
    """Controls which thread of this process runs."""

    def __init__(
        self, finder: AccessFinder, describe: Callable[[FrameType], dict[str, Any]]
    ) -> None:
        self.finder = finder
        self.current: WorkerThread | None = None
        """The worker that runs now. None if the main thread runs."""
        self.locks_held: set[str] = set()
        """The locks that are taken, by their names in the effects of a step."""
        self._locks_created = 0
        """The number of locks that the main thread has created."""
        self._describe = describe
        self._turn_of_main_thread = _Turn()

    def start(self, worker: WorkerThread) -> None:
        """Start the thread of a worker, and let it run to its first stop."""
        _thread.start_new_thread(worker.main, (self,))
        self.resume(worker)

    def resume(self, worker: WorkerThread) -> None:
        """Let a worker run to its next stop, while all other threads stand still.

        The main thread calls this, and waits here until the worker returns control to it.
        """
        self.current = worker
        worker.give_turn()
        self._wait_for_worker()
        self.current = None

    def _wait_for_worker(self) -> None:
        """Wait until the current worker stops. Refuse the file if the worker only waits."""
        cpu_seconds_before = _process_time()
        while not self._turn_of_main_thread.wait_at_most(_PATIENCE_SECONDS):
            cpu_seconds_now = _process_time()
            only_waits = cpu_seconds_now - cpu_seconds_before < _LEAST_CPU_SECONDS
            if only_waits:
                refuse("waits for something other than a lock of `threading`")
            cpu_seconds_before = cpu_seconds_now

    def return_to_main_thread(self, worker: WorkerThread) -> None:
        """Let the main thread continue, which waits in `resume`. The worker's thread calls this."""
        assert self.current is worker
        self._turn_of_main_thread.give()

    def next_lock_number(self) -> str:
        """Return a number for a lock that the current thread creates.

        A worker's lock has the name of the worker in it, so the number does not depend on the
        schedule.
        """
        if self.current is None:
            self._locks_created += 1
            return str(self._locks_created)
        self.current.locks_created += 1
        return f"{self.current.name}{self.current.locks_created}"

    def trace(self, frame: FrameType, event: str, _argument: object) -> Any:
        """Stop before an access. Python calls this before each instruction of a traced frame."""
        if not self.finder.has_file(frame.f_code.co_filename):
            return None
        # Python then calls this before each instruction of the frame, and not before each line.
        frame.f_trace_opcodes = True
        frame.f_trace_lines = False
        is_before_instruction = event == "opcode"
        if is_before_instruction and self.current is not None:
            self._count_instruction(self.current, frame)
            self._stop_before_access(self.current, frame)
        return self.trace

    def stop(
        self,
        frame: FrameType,
        event: str,
        name: str,
        effects: Effects,
        **facts: Any,
    ) -> None:
        """Stop the current worker before an event, until the lab lets it continue.

        `name` is what the event uses, such as a variable. `facts` are reported to the lab.
        """
        worker = self.current
        assert worker is not None
        worker.next_stop = {"event": event, "name": name, **self._describe(frame), **facts}
        # The main thread has waited since it resumed this worker. Now it reports the stop to the
        # lab, and this thread waits until the main thread resumes the worker again.
        self.return_to_main_thread(worker)
        worker.wait_for_turn()
        # The event happens as soon as this function returns.
        worker.effects = effects
        _read_variables_again(frame)

    def _count_instruction(self, worker: WorkerThread, frame: FrameType) -> None:
        """Count an instruction of a worker. Refuse the file if it is in an endless loop."""
        worker.instructions_since_stop += 1
        if worker.instructions_since_stop > _MOST_INSTRUCTIONS:
            refuse(f"does not end: line {frame.f_lineno} is in a loop that uses nothing shared")

    def _stop_before_access(self, worker: WorkerThread, frame: FrameType) -> None:
        """Stop the current worker if its next instruction uses shared memory."""
        access = self.finder.find(frame)
        if access is None:
            return
        effects = dict(access.effects)
        current_line = (frame, frame.f_lineno)
        if access.reads_objects:
            worker.line_with_loaded_object = current_line
        elif worker.line_with_loaded_object == current_line:
            # The line has loaded an object before, and may look into it at any instruction. For
            # example, `items == other` loads both names, and then compares what is in them.
            effects[OBJECTS] = READ
        self.stop(
            frame=frame,
            event=access.event,
            name=access.name,
            effects=effects,
            verb=access.verb,
        )


def _read_variables_again(frame: FrameType) -> None:
    """Read the variables of a traced frame, so that no assignment of another thread is lost.

    After the trace function, Python 3.11 and 3.12 write back the variables that the frame shares
    with other functions. They write the values that they have read last. During the stop, another
    thread may have assigned newer values (https://github.com/python/cpython/issues/74929).
    """
    # Reading this attribute reads all variables.
    _ = frame.f_locals
