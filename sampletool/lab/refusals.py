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
from types import FrameType
from typing import Any, NoReturn

from ..kit.stepping import open_files, reported_calls, tracee
from . import place, worker
from .outcome import REFUSED
from .scenario import PACKAGE

_CHANGES = {
    "os.chmod": 1,
    "os.chown": 1,
    "os.link": 2,
    "os.mkdir": 1,
    "os.remove": 1,
    "os.removexattr": 1,
    "os.rename": 2,
    "os.rmdir": 1,
    "os.setxattr": 1,
    "os.truncate": 1,
    "os.utime": 1,
}
"""The events that change files, and for each the number of its first arguments that are paths."""

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


class Refusals:
    """Refuses calls of the functions of a learner's file."""

    def __init__(self, file: str, *, workers_are_threads: bool = False) -> None:
        self.part = ""
        """The name of the function of the file that runs now."""
        self._directory = f"{os.path.dirname(file)}/"
        # The functions run in a subdirectory of their scratch directory.
        self._scratch = f"{os.path.dirname(os.getcwd())}/"
        self._workers_are_threads = workers_are_threads

    def start(self) -> None:
        """Begin to refuse calls that cannot be stepped. Call this before the file is run."""
        sys.addaudithook(self._handle_audit_event)
        for name in (*_CLOCKS, *_CLOCK_READERS):
            self._refuse_call(time, name, f"reads the clock (time.{name})")
        self._refuse_datetime()
        self._skip_sleep()
        for name in _TEMPORARY_FILES:
            problem = f"creates a file with a random name (tempfile.{name})"
            self._refuse_call(tempfile, name, f"{problem}; use a fixed name such as data.tmp")
        self._refuse_chance()
        for name in ("mkfifo", "mknod"):
            self._refuse_call(os, name, f"uses a special file (os.{name})")
        # Before Python 3.13, the start of a thread is no audit event.
        self._refuse_call(_thread, "start_new_thread", self._thread_problem())
        for name in ("_start_new_thread", "_start_joinable_thread"):
            if hasattr(threading, name):
                self._refuse_call(threading, name, self._thread_problem())

    def _refuse_chance(self) -> None:
        """Refuse functions that return random values."""
        for name in _RANDOM_FUNCTIONS:
            self._refuse_call(random, name, f"depends on chance (random.{name})")
        for name in ("Random", "SystemRandom"):
            self._refuse_call(random, name, f"depends on chance (random.{name})")
        for name in _SECRETS:
            self._refuse_call(secrets, name, f"depends on chance (secrets.{name})")
        for name in ("urandom", "getrandom"):
            self._refuse_call(os, name, f"depends on chance (os.{name})")
        for name in ("uuid1", "uuid4"):
            problem = f"depends on chance (uuid.{name})"
            self._refuse_call(uuid, name, f"{problem}; for a file name, use the name of the worker")

    def _thread_problem(self) -> str:
        """Return the reason to refuse a thread."""
        if self._workers_are_threads:
            return _STARTS_ANOTHER_THREAD
        return _STARTS_A_THREAD

    def _skip_sleep(self) -> None:
        """Replace time.sleep(). Workers do not sleep: the schedule decides when they run."""
        original = time.sleep

        def sleep(seconds: Any) -> None:
            if not self._is_working():
                original(seconds)

        time.sleep = sleep

    def _refuse_call(self, module: Any, name: str, problem: str) -> None:
        """Replace a function with one that refuses calls of a worker, with this problem."""
        original = getattr(module, name)

        def refusing(*args: Any, **named: Any) -> Any:
            if self._is_working():
                refuse(problem)
            return original(*args, **named)

        setattr(module, name, refusing)

    def _refuse_datetime(self) -> None:
        """Replace datetime.datetime with a class that refuses to return the present time."""
        refusals = self

        class Datetime(datetime.datetime):
            """A datetime that refuses to return the present time to a worker."""

            @classmethod
            def now(cls, tz: Any = None) -> Any:
                if refusals._is_working():
                    refuse("reads the clock (datetime.now)")
                return super().now(tz)

            @classmethod
            def utcnow(cls) -> Any:
                if refusals._is_working():
                    refuse("reads the clock (datetime.utcnow)")
                return super().utcnow()

            @classmethod
            def today(cls) -> Any:
                if refusals._is_working():
                    refuse("reads the clock (datetime.today)")
                return super().today()

        datetime.datetime = Datetime  # type: ignore[misc]

    def _handle_audit_event(self, event: str, args: tuple[Any, ...]) -> None:
        """Refuse an audit event that cannot be stepped, or that changes a file elsewhere."""
        problem = self._find_problem(event, args)
        if problem is not None and self._is_working():
            refuse(problem)
        for path in _changed_paths(event, args):
            if isinstance(path, int):
                continue
            absolute = os.path.abspath(os.fsdecode(path))
            if not absolute.startswith(self._scratch) and absolute not in _DEVICES:
                refuse(f"changes {absolute}, outside of its own directory", self.part)

    def _find_problem(self, event: str, args: tuple[Any, ...]) -> str | None:
        """Return the reason why the event cannot be stepped, or None if it can."""
        if event == "_thread.start_joinable_thread":
            return self._thread_problem()
        if event == "os.kill" and args[1] != 0:
            return f"sends a signal (os.kill with signal {int(args[1])}; only 0 can be stepped)"
        is_record_lock = event in ("fcntl.lockf", "os.lockf")
        if event == "fcntl.fcntl" and args[1] in _RECORD_LOCKS:
            is_record_lock = True
        if is_record_lock:
            return "takes a record lock (lockf), which cannot be stepped; use fcntl.flock"
        if event == "fcntl.flock" and self._workers_are_threads:
            return "locks a file (flock), but its workers are threads; use threading.Lock"
        family = event.partition(".")[0]
        return _CANNOT_BE_STEPPED.get(event, _CANNOT_BE_STEPPED.get(family))

    def _is_working(self) -> bool:
        """Return whether the current call comes from a worker of the file.

        A call of the tool's own code does not count, even if the file has called this code.
        """
        if self.part != "worker":
            return False
        frame: FrameType | None = sys._getframe(1)
        while frame is not None:
            path = frame.f_code.co_filename
            if path.startswith(self._directory):
                return True
            if path.startswith(f"{PACKAGE}/") and path not in _LAB_MODULES:
                return False
            if path == "<frozen importlib._bootstrap>":
                # Calls during an import do not count: for example, ctypes then loads a library.
                return False
            frame = frame.f_back
        return False


def _changed_paths(event: str, args: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return the paths and descriptors of the files that the event changes."""
    if event == "open":
        if args[2] & (os.O_WRONLY | os.O_RDWR):
            return args[:1]
        return ()
    if event == "os.symlink":
        # The first argument is only the text of the link.
        return args[1:2]
    return args[: _CHANGES.get(event, 0)]


def refuse(problem: str, part: str = "worker") -> NoReturn:
    """Exit at once, and report what cannot be stepped. The file cannot catch this."""
    exit_with(f"{part}() {problem}", REFUSED)


def exit_with(reason: str, exit_code: int) -> NoReturn:
    """Exit at once. Print the reason to stderr as text, and to stdout as JSON."""
    reason = " ".join(reason.split())
    os.write(2, f"\n{reason}\n".encode())
    os.write(1, json.dumps(reason).encode())
    # sys.exit() would raise an exception, which the file could catch.
    os._exit(exit_code)
