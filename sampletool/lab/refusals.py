"""Refuse calls that the lab cannot step. Otherwise it could judge a wrong program to be right.

Every call of a worker that uses files is an event, see kit/stepping/tracee.py. This module refuses
calls that share data without an event, such as shared memory. It also refuses calls that depend on
the clock or on chance, because the lab could not follow a schedule twice.

It refuses only calls of the learner's file. Code of the kit may use the clock, for example, even if
the file has called this code.
"""

import _thread
import datetime
import fcntl
import json
import os
import random
import secrets
import sys
import tempfile
import threading
import time
import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import FrameType
from typing import Any, ClassVar, NoReturn

from ..kit.stepping import open_files, reported_calls, tracee
from . import place, worker
from .outcome import REFUSED
from .scenario import PACKAGE

_CHANGED_FILES: Mapping[str, Sequence[int]] = {
    "os.chmod": [0],
    "os.chown": [0],
    "os.link": [0, 1],
    "os.mkdir": [0],
    "os.remove": [0],
    "os.removexattr": [0],
    "os.rename": [0, 1],
    "os.rmdir": [0],
    "os.setxattr": [0],
    # The first argument is only the text of the link.
    "os.symlink": [1],
    "os.truncate": [0],
    "os.utime": [0],
}
"""The audit events that change files, and the positions of the arguments that name these files."""

_CANNOT_BE_STEPPED = {
    "ctypes": "calls C code (ctypes)",
    "mmap.__new__": "uses memory that processes share (mmap)",
    "os.exec": "starts another program",
    "os.fork": "forks a process (os.fork)",
    "os.forkpty": "forks a process (os.forkpty)",
    "os.killpg": "sends a signal (os.killpg)",
    "os.posix_spawn": "starts another program",
    "os.system": "starts another program (os.system)",
    "pty.spawn": "starts another program",
    "signal.pthread_kill": "sends a signal",
    "socket": "uses a socket",
    "sqlite3.connect": "uses SQLite, whose waiting cannot be stepped; keep what is shared in files",
    "subprocess.Popen": "starts another program (subprocess)",
}
"""The refused audit events and the reasons. A key is an event, or its part before the dot."""

_STARTS_A_THREAD = (
    'starts a thread. To try threads, write WORKERS = "threads" in the file: then the lab starts '
    "a thread for each worker"
)
_STARTS_ANOTHER_THREAD = "starts a thread, but the lab starts the threads: one for each worker"

_INSTEAD_OF_THE_CLOCK = "leave the time out, or use a fixed number such as 0"
_INSTEAD_OF_CHANCE = "use the name of the worker or a fixed value instead"

_CLOCKS = ("monotonic", "monotonic_ns", "perf_counter", "perf_counter_ns", "time", "time_ns")
_CLOCK_READERS = ("asctime", "ctime", "gmtime", "localtime", "strftime")
_RANDOM_FUNCTIONS = (
    "betavariate",
    "choice",
    "choices",
    "expovariate",
    "gauss",
    "getrandbits",
    "normalvariate",
    "randbytes",
    "randint",
    "random",
    "randrange",
    "sample",
    "shuffle",
    "triangular",
    "uniform",
)
_SECRETS = ("choice", "randbelow", "randbits", "token_bytes", "token_hex", "token_urlsafe")
_TEMPORARY_FILES = (
    "NamedTemporaryFile",
    "SpooledTemporaryFile",
    "TemporaryDirectory",
    "TemporaryFile",
    "mkdtemp",
    "mkstemp",
    "mktemp",
)
_RECORD_LOCKS = tuple(
    getattr(fcntl, name)
    for name in ("F_SETLK", "F_SETLKW", "F_OFD_SETLK", "F_OFD_SETLKW")
    if hasattr(fcntl, name)
)
_DEVICES = ("/dev/null", "/dev/stderr", "/dev/stdout", "/dev/tty")
_LAB_MODULES = (
    __file__,
    open_files.__file__,
    place.__file__,
    reported_calls.__file__,
    tracee.__file__,
    worker.__file__,
)
"""The modules of the lab that may be on the stack of a call that the learner's file has made."""


@dataclass(frozen=True)
class _RefusedFunction:
    """A function that a worker may not call."""

    module: Any
    name: str
    problem: str
    """The reason, as the rest of a sentence that begins with `worker()`."""


class Refusals:
    """Refuses calls of the functions of a learner's file."""

    def __init__(self, path: str, *, workers_are_threads: bool = False) -> None:
        self.current_function = ""
        """The function of the file that runs: worker, prepare, always or invariant.

        The program that calls the functions sets it, because only workers are refused most calls.
        """
        self._path = path
        self._directory = f"{os.path.dirname(path)}/"
        # The functions run in a subdirectory of their scratch directory.
        self._scratch_directory = f"{os.path.dirname(os.getcwd())}/"
        """The file may only change files in this directory."""
        self._workers_are_threads = workers_are_threads

    def start(self) -> None:
        """Begin to refuse calls that cannot be stepped. Call this before the file is run."""
        sys.addaudithook(self._handle_audit_event)
        for function in self._refused_functions():
            self._replace(function)
        self._replace_sleep()
        Datetime.refusals = self
        datetime.datetime = Datetime  # type: ignore[misc]

    def refuse_call_of_worker(self, problem: str) -> None:
        """Exit with an error if worker() in the learner's file has made the current call.

        The error names the line of the call. Do nothing if other code has made the call, such as
        another function of the file.
        """
        frame = self._frame_of_worker_call()
        if frame is None:
            return
        position = f"line {frame.f_lineno}"
        path = frame.f_code.co_filename
        if path != self._path:
            # The file imports another one, and the line is in that one.
            position = f"{position} of {os.path.basename(path)}"
        exit_with(f"{position}: worker() {problem}", REFUSED)

    def _refused_functions(self) -> Iterator[_RefusedFunction]:
        """Yield the functions that have no audit event and that a worker may not call."""
        for name in (*_CLOCKS, *_CLOCK_READERS):
            problem = f"reads the clock (time.{name}); {_INSTEAD_OF_THE_CLOCK}"
            yield _RefusedFunction(time, name, problem)
        for name in _TEMPORARY_FILES:
            problem = f"creates a file with a random name (tempfile.{name})"
            instead = "use a fixed name such as data.tmp"
            yield _RefusedFunction(tempfile, name, f"{problem}; {instead}")
        yield from _functions_of_chance()
        for name in ("mkfifo", "mknod"):
            yield _RefusedFunction(os, name, f"uses a special file (os.{name})")
        # Before Python 3.13, the start of a thread is no audit event.
        yield _RefusedFunction(_thread, "start_new_thread", self._thread_problem())
        for name in ("_start_new_thread", "_start_joinable_thread"):
            if hasattr(threading, name):
                yield _RefusedFunction(threading, name, self._thread_problem())

    def _thread_problem(self) -> str:
        """Return the reason to refuse a thread."""
        if self._workers_are_threads:
            return _STARTS_ANOTHER_THREAD
        return _STARTS_A_THREAD

    def _replace(self, function: _RefusedFunction) -> None:
        """Replace a function with one that refuses calls of a worker."""
        original = getattr(function.module, function.name)

        def refuse_or_call(*arguments: Any, **keywords: Any) -> Any:
            """Refuse the call if a worker makes it. Otherwise make it."""
            self.refuse_call_of_worker(function.problem)
            return original(*arguments, **keywords)

        setattr(function.module, function.name, refuse_or_call)

    def _replace_sleep(self) -> None:
        """Replace time.sleep(). Workers do not sleep: the schedule decides when they run."""
        original = time.sleep

        def sleep(seconds: Any) -> None:
            """Sleep, unless a worker calls this."""
            if self._frame_of_worker_call() is None:
                original(seconds)

        time.sleep = sleep

    def _handle_audit_event(self, event: str, arguments: tuple[Any, ...]) -> None:
        """Refuse an audit event that cannot be stepped, or that changes a file elsewhere."""
        problem = self._find_problem(event, arguments)
        if problem is not None:
            self.refuse_call_of_worker(problem)
        for path in _changed_paths(event, arguments):
            if isinstance(path, int):
                # A descriptor. The opening of its file was checked.
                continue
            absolute = os.path.abspath(os.fsdecode(path))
            if not absolute.startswith(self._scratch_directory) and absolute not in _DEVICES:
                refuse(f"changes {absolute}, outside of its own directory", self.current_function)

    def _find_problem(self, event: str, arguments: tuple[Any, ...]) -> str | None:
        """Return the reason why the event cannot be stepped, or None if it can."""
        if event == "_thread.start_joinable_thread":
            return self._thread_problem()
        if event == "os.kill":
            _pid, signal_number = arguments
            if signal_number == 0:
                return None
            return (
                f"sends a signal (os.kill with signal {int(signal_number)}; only 0 can be stepped)"
            )
        if _is_record_lock(event, arguments):
            return "takes a record lock (lockf), which cannot be stepped; use fcntl.flock"
        if event == "fcntl.flock" and self._workers_are_threads:
            return "locks a file (flock), but its workers are threads; use threading.Lock"
        family = event.partition(".")[0]
        return _CANNOT_BE_STEPPED.get(event, _CANNOT_BE_STEPPED.get(family))

    def _frame_of_worker_call(self) -> FrameType | None:
        """Return the frame in the learner's files that has made the current call.

        Return None if worker() does not run, or if code of the tool has made the call. This is
        true even if the file has called this code.
        """
        if self.current_function != "worker":
            return None
        frame: FrameType | None = sys._getframe(1)
        while frame is not None:
            path = frame.f_code.co_filename
            if path.startswith(self._directory):
                return frame
            if path.startswith(f"{PACKAGE}/") and path not in _LAB_MODULES:
                return None
            if path == "<frozen importlib._bootstrap>":
                # Calls during an import do not count: for example, ctypes then loads a library.
                return None
            frame = frame.f_back
        return None


class Datetime(datetime.datetime):
    """A datetime that refuses to return the present time to a worker."""

    refusals: ClassVar[Refusals]

    @classmethod
    def now(cls, tz: Any = None) -> Any:
        """Return the present time, like datetime.now()."""
        cls.refusals.refuse_call_of_worker(
            f"reads the clock (datetime.now); {_INSTEAD_OF_THE_CLOCK}"
        )
        return super().now(tz)

    @classmethod
    def utcnow(cls) -> Any:
        """Return the present time, like datetime.utcnow()."""
        problem = f"reads the clock (datetime.utcnow); {_INSTEAD_OF_THE_CLOCK}"
        cls.refusals.refuse_call_of_worker(problem)
        return super().utcnow()

    @classmethod
    def today(cls) -> Any:
        """Return the present time, like datetime.today()."""
        problem = f"reads the clock (datetime.today); {_INSTEAD_OF_THE_CLOCK}"
        cls.refusals.refuse_call_of_worker(problem)
        return super().today()


def _functions_of_chance() -> Iterator[_RefusedFunction]:
    """Yield the functions that return random values."""
    names_by_module: list[tuple[Any, Sequence[str]]] = [
        (random, (*_RANDOM_FUNCTIONS, "Random", "SystemRandom")),
        (secrets, _SECRETS),
        (os, ("urandom", "getrandom")),
        (uuid, ("uuid1", "uuid4")),
    ]
    for module, names in names_by_module:
        for name in names:
            problem = f"depends on chance ({module.__name__}.{name}); {_INSTEAD_OF_CHANCE}"
            yield _RefusedFunction(module, name, problem)


def _is_record_lock(event: str, arguments: tuple[Any, ...]) -> bool:
    """Return whether the event takes or releases a lock other than that of flock()."""
    if event == "fcntl.fcntl":
        _descriptor, command, *_ = arguments
        return command in _RECORD_LOCKS
    return event in ("fcntl.lockf", "os.lockf")


def _changed_paths(event: str, arguments: tuple[Any, ...]) -> list[Any]:
    """Return the paths and descriptors of the files that the event changes."""
    if event == "open":
        path, _mode, flags = arguments
        if flags & (os.O_WRONLY | os.O_RDWR):
            return [path]
        return []
    return [arguments[position] for position in _CHANGED_FILES.get(event, [])]


def refuse(problem: str, function_name: str = "worker") -> NoReturn:
    """Exit at once, and report what cannot be stepped. The file cannot catch this."""
    exit_with(f"{function_name}() {problem}", REFUSED)


def exit_with(reason: str, exit_code: int) -> NoReturn:
    """Exit at once. Print the reason to stderr as text, and to stdout as JSON."""
    reason = " ".join(reason.split())
    os.write(2, f"\n{reason}\n".encode())
    os.write(1, json.dumps(reason).encode())
    # sys.exit() would raise an exception, which the file could catch.
    os._exit(exit_code)
