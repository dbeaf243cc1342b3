"""The side of a learner's file: run one of its functions in the current directory, in a process.

    python -m sampletool.lab.learner FILE prepare|always|invariant [KILLED]
    python -m sampletool.lab.learner FILE worker ROUNDS NAME

The last line on stderr says what went wrong. The exit code is BROKEN if the invariant does not hold,
CANNOT_JUDGE if the invariant itself fails, REFUSED if the function does something that cannot be
stepped, and 1 after any other error.

Whatever a worker does with files is an event, see kit/stepping/tracee.py. What is no event, such as
memory that is shared between processes, is refused: otherwise the lab would call a wrong program
right. The same is true of choices that depend on the clock or on chance, because a schedule could
not be followed twice.
"""

import _thread
import datetime
import fcntl
import inspect
import json
import os
import random
import runpy
import secrets
import sys
import threading
import time
import traceback
import uuid
from collections.abc import Callable, Iterable
from functools import partial
from types import FrameType
from typing import Any, NoReturn

from ..kit.stepping import tracee
from .place import place_of_this_process
from .scenario import PACKAGE
from .worker import report_every_call

BROKEN = 3
REFUSED = 4
CANNOT_JUDGE = 5

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
"""The events that change files, and the number of paths that their arguments begin with."""

_CANNOT_BE_STEPPED = {
    "_thread.start_joinable_thread": "starts a thread; the lab steps processes",
    "ctypes": "calls C code (ctypes)",
    "mmap.__new__": "uses memory that processes share (mmap)",
    "os.exec": "starts another program",
    "os.fork": "forks a process (os.fork)",
    "os.forkpty": "forks a process (os.forkpty)",
    "os.kill": "sends a signal (os.kill)",
    "os.killpg": "sends a signal (os.killpg)",
    "os.posix_spawn": "starts another program",
    "os.system": "starts another program (os.system)",
    "pty.spawn": "starts another program",
    "signal.pthread_kill": "sends a signal",
    "socket": "uses a socket",
    "sqlite3.connect": "uses SQLite, whose waiting cannot be stepped; keep what is shared in files",
    "subprocess.Popen": "starts another program (subprocess)",
}
"""The audit events that are refused: their names, or the part of them before the dot."""

_CLOCKS = ("monotonic", "monotonic_ns", "perf_counter", "perf_counter_ns", "time", "time_ns")
_CLOCK_READERS = ("asctime", "ctime", "gmtime", "localtime", "strftime")
_CHANCES = (
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
_RECORD_LOCKS = tuple(
    getattr(fcntl, name) for name in ("F_SETLK", "F_SETLKW", "F_OFD_SETLK", "F_OFD_SETLKW") if hasattr(fcntl, name)
)
_DEVICES = ("/dev/null", "/dev/stderr", "/dev/stdout", "/dev/tty")
_LAB_MODULES = (__file__, tracee.__file__)


class LearnersFile:
    """A file with the functions prepare(), worker(), always() and invariant()."""

    def __init__(self, path: str) -> None:
        self.path = path
        self._directory = f"{os.path.dirname(path)}/"
        # The worker runs in a subdirectory of its scratch directory.
        self._scratch = f"{os.path.dirname(os.getcwd())}/"

    def run(self, part: str, arguments: list[str]) -> None:
        """Run this function of the file, and exit with its verdict unless all is well."""
        self._refuse_what_cannot_be_stepped(part)
        try:
            functions = runpy.run_path(self.path, run_name="tried")
            for name in ("worker", "invariant"):
                if not callable(functions.get(name)):
                    _exit(f"it has no function {name}()")
            if part == "worker":
                rounds, name = arguments
                for _ in range(int(rounds)):
                    functions[part](name)
            elif part == "prepare":
                functions.get(part, lambda: None)()
            else:
                _judge(functions[part], arguments)
        except Exception as error:
            self._exit_after(error, part)

    def describe(self) -> dict[str, Any]:
        """Return where the file stands, for the tracer."""
        line = None
        for frame, number in traceback.walk_stack(None):
            if frame.f_code.co_filename == self.path:
                line = number
                break
        place = place_of_this_process((self._directory, f"{PACKAGE}/kit/"))
        return {"at": f"{os.path.basename(self.path)}:{line}", "place": place}

    def _refuse_what_cannot_be_stepped(self, part: str) -> None:
        sys.addaudithook(partial(self._see, is_worker=part == "worker"))
        if part != "worker":
            return
        for name in _CLOCKS:
            self._refuse_call(time, name, f"reads the clock (time.{name})")
        for name in _CLOCK_READERS:
            self._refuse_call(time, name, f"reads the clock (time.{name})")
        for name in _CHANCES:
            self._refuse_call(random, name, f"depends on chance (random.{name})")
        for name in ("Random", "SystemRandom"):
            self._refuse_call(random, name, f"depends on chance (random.{name})")
        for name in _SECRETS:
            self._refuse_call(secrets, name, f"depends on chance (secrets.{name})")
        for name in ("urandom", "getrandom"):
            self._refuse_call(os, name, f"depends on chance (os.{name})")
        for name in ("uuid1", "uuid4"):
            self._refuse_call(uuid, name, f"depends on chance (uuid.{name})")
        for name in ("mkfifo", "mknod"):
            self._refuse_call(os, name, f"uses a special file (os.{name})")
        # Before Python 3.13, a thread that is started is no audit event.
        for module, name in ((_thread, "start_new_thread"), (threading, "_start_new_thread")):
            self._refuse_call(module, name, "starts a thread; the lab steps processes")
        self._refuse_datetime()
        # The schedule decides who goes next, so there is nothing to sleep for.
        sleep = time.sleep
        time.sleep = lambda seconds: None if self._is_calling() else sleep(seconds)

    def _refuse_call(self, module: Any, name: str, problem: str) -> None:
        """Refuse this function if the file calls it. Code of the kit may call it."""
        original = getattr(module, name)

        def refusing(*args: Any, **named: Any) -> Any:
            if self._is_calling():
                _refuse(problem)
            return original(*args, **named)

        setattr(module, name, refusing)

    def _refuse_datetime(self) -> None:
        learners_file = self

        class Datetime(datetime.datetime):
            """A datetime that does not know the present."""

            @classmethod
            def now(cls, tz: Any = None) -> Any:
                if learners_file._is_calling():
                    _refuse("reads the clock (datetime.now)")
                return super().now(tz)

            @classmethod
            def utcnow(cls) -> Any:
                if learners_file._is_calling():
                    _refuse("reads the clock (datetime.utcnow)")
                return super().utcnow()

            @classmethod
            def today(cls) -> Any:
                if learners_file._is_calling():
                    _refuse("reads the clock (datetime.today)")
                return super().today()

        datetime.datetime = Datetime  # type: ignore[misc]

    def _see(self, event: str, args: tuple[Any, ...], is_worker: bool) -> None:
        """Refuse an audit event that cannot be stepped, or that changes something elsewhere."""
        if is_worker:
            problem = _CANNOT_BE_STEPPED.get(event, _CANNOT_BE_STEPPED.get(event.partition(".")[0]))
            if problem is not None and self._is_calling():
                _refuse(problem)
            is_record_lock = event in ("fcntl.lockf", "os.lockf")
            if event == "fcntl.fcntl" and args[1] in _RECORD_LOCKS:
                is_record_lock = True
            if is_record_lock and self._is_calling():
                _refuse("takes a record lock (lockf), which cannot be stepped; use fcntl.flock")
        changed = args[: _CHANGES.get(event, 0)]
        if event == "open" and args[2] & (os.O_WRONLY | os.O_RDWR):
            changed = args[:1]
        if event == "os.symlink":
            # The first argument is only the text of the link.
            changed = args[1:2]
        for path in changed:
            if isinstance(path, int):
                continue
            place = os.path.abspath(os.fsdecode(path))
            if not place.startswith(self._scratch) and place not in _DEVICES:
                _refuse(f"changes {place}, outside of its own directory")

    def _is_calling(self) -> bool:
        """Return whether the code that runs was called by the file, not by code of the tool."""
        frame: FrameType | None = sys._getframe(1)
        while frame is not None:
            name = frame.f_code.co_filename
            if name.startswith(self._directory):
                return True
            if name.startswith(f"{PACKAGE}/") and name not in _LAB_MODULES:
                return False
            if name == "<frozen importlib._bootstrap>":
                # Importing a module is no step: for example, ctypes loads a library when imported.
                return False
            frame = frame.f_back
        return False

    def _exit_after(self, error: Exception, part: str) -> NoReturn:
        """Exit, and say where in the file the error is."""
        judges = part in ("always", "invariant")
        line = getattr(error, "lineno", None)
        if line is None:
            line = self._line(traceback.extract_tb(error.__traceback__))
        if judges and isinstance(error, AssertionError):
            _exit(str(error) or f"line {line}: the assertion does not hold", BROKEN)
        message = "".join(traceback.format_exception_only(error)).splitlines()[-1]
        if line is not None:
            message = f"line {line}: {message}"
        _exit(message, CANNOT_JUDGE if judges else 1)

    def _line(self, frames: Iterable[traceback.FrameSummary]) -> int | None:
        """Return the innermost line of the file in these frames."""
        innermost = None
        for frame in frames:
            if frame.filename == self.path:
                innermost = frame.lineno
        return innermost


def _judge(function: Callable[..., object], arguments: list[str]) -> None:
    """Run invariant() or always(), and exit if it says that something is broken.

    Pass the name of the killed worker, or None, to a function that takes an argument.
    """
    if takes_argument(function):
        killed = arguments[0] if arguments else None
        verdict = function(killed)
    else:
        verdict = function()
    if verdict is None or verdict is True:
        return
    if verdict is False:
        _exit(f"{function.__name__}() returned False", BROKEN)
    _exit(str(verdict) or f"{function.__name__}() returned {verdict!r}", BROKEN)


def takes_argument(function: Callable[..., object]) -> bool:
    """Return whether the function can be called with one argument."""
    return bool(inspect.signature(function).parameters)


def _refuse(problem: str) -> NoReturn:
    _exit(f"worker() {problem}", REFUSED)


def _exit(reason: str, exit_code: int = 1) -> NoReturn:
    """Exit at once, whatever the file catches. Print the reason for people, and as the response."""
    reason = " ".join(reason.split())
    os.write(2, f"\n{reason}\n".encode())
    os.write(1, json.dumps(reason).encode())
    os._exit(exit_code)


def main() -> None:
    """Run the function that the command line names."""
    path, part, *arguments = sys.argv[1:]
    # The file may print, but stdout carries the response.
    sys.stdout = sys.stderr
    sys.dont_write_bytecode = True
    sys.path.insert(0, os.path.dirname(path))
    learners_file = LearnersFile(path)
    if part == "worker":
        tracee.describe = learners_file.describe
        report_every_call()
    learners_file.run(part, arguments)


if __name__ == "__main__":
    main()
