"""The threads of this process, stepped: only one runs at a time, and the lab decides which.

A thread stops before each access to shared memory, see memory_access.py, and before it takes or
releases a lock. It continues when the lab sends a command:

* `go A`: let A make the access before which it has stopped, and run to its next access.
* `run invariant`: run this function in the main thread, while all workers stand still.

The lab reads one line of JSON after each command, see stepped_threads.py. The program is
learner_threads.py or scenario_threads.py.

Python's own locks would block a thread where the lab cannot see it. So threading.Lock is replaced
by a lock that stops instead, and all that the standard library builds on it (RLock, Condition,
Event, Semaphore, Barrier, Queue) stops with it.
"""

import _thread
import json
import queue
import socket
import sys
import threading
import time
import types
from collections.abc import Callable
from types import FrameType
from typing import Any, Protocol

from ..kit.stepping.effects import READ, TAKE, WRITE, Effects
from .memory_access import NO_ACCESS, AccessFinder
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
_DEEPEST_SEARCH = 3
"""The number of objects inside of each other in which the name of a lock is searched."""

# The lab's own locks and its clock, which stay as they are.
_new_real_lock = _thread.allocate_lock
_process_time = time.process_time


class Program(Protocol):
    """The program that the threads run: a learner's file, or a variant of a scenario."""

    def work(self, letter: str) -> Outcome:
        """Run a worker in the current thread. Return how it ended."""
        ...

    def run(self, part: str) -> Outcome:
        """Run another function of the program in the main thread. Return how it ended."""
        ...

    def look(self) -> str:
        """Return the state that the threads share, as text for the lab."""
        ...

    def describe(self, frame: FrameType) -> dict[str, Any]:
        """Return facts about the position of a thread for the lab."""
        ...


class Worker:
    """One thread."""

    def __init__(self, letter: str, work: Callable[[str], Outcome]) -> None:
        self.letter = letter
        self.stop: dict[str, Any] | None = None
        """The facts about its stop, for the lab. None before it starts and after its end."""
        self.effects: Effects = {}
        """The resources that it has read or changed since it continued."""
        self.outcome: Outcome | None = None
        """The outcome of the worker. None while it runs."""
        self.locks_created = 0
        self.loaded_object_at: tuple[FrameType, int] | None = None
        """The frame and line in which it has loaded an object that other threads may change."""
        self.instructions = 0
        """The number of instructions since its last stop."""
        self._work = work
        self._turn = _new_real_lock()
        self._turn.acquire()

    def main(self, threads: "Threads") -> None:
        """Wait for the first turn, and run the worker."""
        self._turn.acquire()
        sys.settrace(threads.trace)
        try:
            self.outcome = self._work(self.letter)
        except SystemExit:
            # As in any thread, sys.exit() only ends this one.
            self.outcome = Outcome()
        sys.settrace(None)
        threads.return_to_main_thread(self)

    def resume(self) -> None:
        """Let the thread continue. Called in the main thread."""
        self.effects = {}
        self.instructions = 0
        self._turn.release()

    def pause(self) -> None:
        """Stop the thread until it may continue. Called in the thread itself."""
        self._turn.acquire()


class Threads:
    """Controls which thread of this process runs."""

    def __init__(
        self, finder: AccessFinder, describe: Callable[[FrameType], dict[str, Any]]
    ) -> None:
        self.finder = finder
        self.current: Worker | None = None
        """The worker that runs now. None if the main thread runs."""
        self.locks_created = 0
        self.locks_held: set[str] = set()
        self._describe = describe
        self._main_turn = _new_real_lock()
        self._main_turn.acquire()

    def start(self, worker: Worker) -> None:
        """Start the thread of a worker, and let it run to its first stop."""
        _thread.start_new_thread(worker.main, (self,))
        self.resume(worker)

    def resume(self, worker: Worker) -> None:
        """Let a worker run to its next stop, while all other threads stand still."""
        self.current = worker
        worker.stop = None
        worker.resume()
        cpu_seconds = _process_time()
        while not self._main_turn.acquire(timeout=_PATIENCE_SECONDS):
            previous_cpu_seconds = cpu_seconds
            cpu_seconds = _process_time()
            if cpu_seconds - previous_cpu_seconds < _LEAST_CPU_SECONDS:
                refuse("waits for something other than a lock of `threading`")
        self.current = None

    def return_to_main_thread(self, worker: Worker) -> None:
        """Let the main thread continue. Called in the thread of the worker."""
        assert self.current is worker
        self._main_turn.release()

    def trace(self, frame: FrameType, event: str, _argument: object) -> Any:
        """Stop before an access. Python calls this before each instruction of a traced frame."""
        if not self.finder.has_file(frame.f_code.co_filename):
            return None
        frame.f_trace_opcodes = True
        frame.f_trace_lines = False
        if event == "opcode":
            self._stop_before_access(frame)
        return self.trace

    def stop(
        self,
        frame: FrameType,
        event: str,
        name: str,
        effects: Effects,
        **facts: Any,
    ) -> None:
        """Stop the current worker before an event, until the lab lets it continue."""
        worker = self.current
        assert worker is not None
        worker.stop = {"event": event, "name": name, **self._describe(frame), **facts}
        self.return_to_main_thread(worker)
        worker.pause()
        worker.effects = effects
        # Python 3.11 and 3.12 write the variables of a traced frame back after this, also those
        # that it shares with other functions. Reading them again undoes that another thread's
        # assignment is lost (https://github.com/python/cpython/issues/74929).
        _ = frame.f_locals

    def _stop_before_access(self, frame: FrameType) -> None:
        """Stop the current worker if its next instruction uses shared memory."""
        worker = self.current
        if worker is None:
            return
        worker.instructions += 1
        if worker.instructions > _MOST_INSTRUCTIONS:
            refuse(f"does not end: line {frame.f_lineno} is in a loop that uses nothing shared")
        access = self.finder.find(frame)
        if access is None:
            return
        effects = dict(access.effects)
        here = (frame, frame.f_lineno)
        if access.reads_objects:
            worker.loaded_object_at = here
        elif worker.loaded_object_at == here:
            # An instruction that follows may look into what the line has loaded before.
            effects["objects"] = READ
        self.stop(frame, access.event, access.name, effects, verb=access.verb)


class SteppedLock:
    """A lock like threading.Lock, at which a worker stops."""

    _threads: Threads
    """The threads of this process. It is set before any lock exists."""
    _globals: dict[str, Any]

    def __init__(self) -> None:
        creator = self._threads.current
        if creator is None:
            self._threads.locks_created += 1
            self._resource = f"lock {self._threads.locks_created}"
        else:
            # A number that does not depend on the schedule.
            creator.locks_created += 1
            self._resource = f"lock {creator.letter}{creator.locks_created}"
        self.holder: str | None = None

    def acquire(self, blocking: bool = True, timeout: float = -1) -> bool:
        """Take the lock. Stop while another thread has it. Return whether the lock was taken."""
        worker = self._threads.current
        if worker is None:
            return self._acquire_in_main_thread(blocking)
        if timeout > 0:
            refuse("waits for a lock with a time limit; leave the limit out")
        frame = sys._getframe(1)
        if not blocking:
            self._stop(frame, "lock.try", "try", {self._resource: READ})
            if self.holder is not None:
                return False
        else:
            self._stop(frame, "lock.acquire", "acquire", {self._resource: TAKE})
            while self.holder is not None:
                self._stop(frame, "blocked", "acquire", {self._resource: TAKE})
        worker.effects = {self._resource: TAKE}
        self.holder = worker.letter
        self._threads.locks_held.add(self._resource)
        return True

    def release(self) -> None:
        """Release the lock. As in Python, any thread may do this."""
        if self._threads.current is not None:
            effects = {self._resource: WRITE}
            self._stop(sys._getframe(1), "lock.release", "release", effects)
        if self.holder is None:
            raise RuntimeError("release unlocked lock")
        self.holder = None
        self._threads.locks_held.discard(self._resource)

    def locked(self) -> bool:
        """Return whether a thread has the lock."""
        if self._threads.current is not None:
            effects = {self._resource: READ}
            self._stop(sys._getframe(1), "lock.look", "look at", effects)
        return self.holder is not None

    def __enter__(self) -> bool:
        return self.acquire()

    def __exit__(self, *_error: object) -> None:
        self.release()

    def __repr__(self) -> str:
        if self.holder is None:
            return "free"
        return f"held by {self.holder}"

    # threading.Condition asks for these two.
    def _is_owned(self) -> bool:
        return self.holder is not None

    def _at_fork_reinit(self) -> None:
        self.holder = None

    def name(self) -> str:
        """Return the name of this lock in the file."""
        return _find_name(self, self._globals, _DEEPEST_SEARCH) or "a lock"

    def _acquire_in_main_thread(self, blocking: bool) -> bool:
        """Take the lock for the main thread. Return False or raise an error if it is taken."""
        if self.holder is not None:
            if not blocking:
                return False
            raise RuntimeError(f"{self.name()} was never released by {self.holder}")
        self.holder = "the main thread"
        self._threads.locks_held.add(self._resource)
        return True

    def _stop(self, frame: FrameType, event: str, verb: str, effects: Effects) -> None:
        """Stop the current worker before an event of this lock."""
        name = self.name()
        self._threads.stop(frame, event, name, effects, verb=verb, lock=self._resource)


setattr(SteppedLock, NO_ACCESS, True)
for _method in (SteppedLock.acquire, SteppedLock.release, SteppedLock.locked):
    setattr(_method, NO_ACCESS, True)


def _find_name(wanted: object, names: dict[Any, Any], depth: int) -> str | None:
    """Return the variable that holds the object, or an object around it, such as `account.lock`."""
    for name, value in names.items():
        if value is wanted:
            return str(name)
    if depth == 0:
        return None
    for name, value in names.items():
        if isinstance(value, types.ModuleType | type) or str(name).startswith("__"):
            continue
        inner = _find_name(wanted, _parts_of(value), depth - 1)
        if inner is None:
            continue
        if isinstance(value, list | tuple | dict):
            return f"{name}[{inner}]"
        # An attribute such as _block of an RLock means nothing to a learner.
        return str(name) if inner.startswith("_") else f"{name}.{inner}"
    return None


def _parts_of(value: object) -> dict[Any, Any]:
    """Return the items or the attributes of an object, by index, key or name."""
    if isinstance(value, dict):
        return value
    if isinstance(value, list | tuple):
        return dict(enumerate(value))
    return getattr(value, "__dict__", {})


def replace_locks(threads: Threads, names: dict[str, Any]) -> None:
    """Replace the locks of `threading` with locks at which a worker stops.

    This affects only locks that are created from now on. `names` are the variables of the file, in
    which a lock finds its name.
    """
    SteppedLock._threads = threads
    SteppedLock._globals = names
    module: Any = threading
    module.Lock = SteppedLock
    module._allocate_lock = SteppedLock
    # Without it, threading.RLock() is written in Python, and uses the lock above.
    module._CRLock = None
    for method in ("acquire", "release", "__enter__", "__exit__"):
        # Only the lock inside of an RLock is shared.
        setattr(getattr(module._PyRLock, method), NO_ACCESS, True)
    # The one that is written in C would wait in C.
    queue.SimpleQueue = queue._PySimpleQueue  # type: ignore[attr-defined,misc]


def serve(socket_descriptor: int, program: Program, threads: Threads, letters: str) -> None:
    """Start a thread for each letter, then follow the commands of the lab until it hangs up."""
    connection = socket.socket(fileno=socket_descriptor)
    workers = {letter: Worker(letter, program.work) for letter in letters}

    def send(message: dict[str, Any]) -> None:
        """Send a message to the lab as a line of JSON."""
        connection.sendall(json.dumps(message).encode() + b"\n")

    outcome = program.run("prepare")
    if outcome.exit_code != 0:
        send({"problem": f"prepare() failed, {outcome.reason}"})
        return
    for worker in workers.values():
        threads.start(worker)
    reports = {}
    for letter, worker in workers.items():
        reports[letter] = _report_on_worker(worker, program, threads)
    send(reports)
    for line in connection.makefile():
        command, _, argument = line.strip().partition(" ")
        if command == "go":
            worker = workers[argument]
            threads.resume(worker)
            send(_report_on_worker(worker, program, threads))
        else:
            outcome = program.run(argument)
            send({**_report(program, threads), "outcome": outcome.as_json()})


def _report(program: Program, threads: Threads) -> dict[str, Any]:
    """Return the state that the threads share, for the lab."""
    return {"shared": program.look(), "locks_held": sorted(threads.locks_held)}


def _report_on_worker(worker: Worker, program: Program, threads: Threads) -> dict[str, Any]:
    """Return the shared state, and the facts about the last step of a worker, for the lab."""
    report = _report(program, threads)
    report["stop"] = worker.stop
    report["effects"] = worker.effects
    if worker.outcome is not None:
        report["outcome"] = worker.outcome.as_json()
    return report
