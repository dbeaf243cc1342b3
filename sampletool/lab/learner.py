"""The program for a learner's file: run one of its functions in the current directory.

    python -m sampletool.lab.learner FILE prepare|always|invariant [KILLED]
    python -m sampletool.lab.learner FILE after_power_cut [FINISHED]
    python -m sampletool.lab.learner FILE worker ROUNDS NAME

The last line on stderr is the reason for a failure. outcome.py lists the exit codes. If the workers
are threads, the lab runs learner_threads.py instead.
"""

import inspect
import os
import runpy
import signal
import sys
import traceback
from collections.abc import Callable, Iterable, Mapping, Sequence
from types import FrameType
from typing import Any, NoReturn

from ..kit.stepping import tracee
from .outcome import BAD_FILE, BROKEN, CANNOT_JUDGE, FAILED, Outcome
from .place import place_of_this_process
from .refusals import Refusals, exit_with, refuse
from .scenario import PACKAGE
from .worker import report_every_call

_JUDGES = ("after_power_cut", "always", "invariant")
"""The functions that judge the result."""
_MOST_CPU_SECONDS = 1
"""The CPU time that a worker may use between two steps. Only an endless loop takes longer."""


class LearnersFile:
    """A file with the functions prepare(), worker(), invariant(), always(), after_power_cut()."""

    def __init__(self, path: str, *, workers_are_threads: bool = False) -> None:
        self.path = path
        self.refusals = Refusals(path, workers_are_threads=workers_are_threads)
        self._functions: Mapping[str, Any] = {}

    def load(self, execute: Callable[[], Mapping[str, Any]]) -> Outcome:
        """Run the file by calling `execute`, which returns its variables. Return how it ended."""
        self.refusals.start()
        try:
            self._functions = execute()
        except Exception as error:
            return Outcome(BAD_FILE, self._describe(error))
        for name in ("worker", "invariant"):
            if not callable(self._functions.get(name)):
                return Outcome(BAD_FILE, f"it has no function {name}()")
        return Outcome()

    def call(self, part: str, arguments: Sequence[str]) -> Outcome:
        """Run a function of the file, and return how it ended."""
        try:
            if part in _JUDGES:
                return _judge(self._functions[part], arguments)
            if part == "worker":
                rounds, name = arguments
                self._work(int(rounds), name)
            else:
                self._prepare()
            return Outcome()
        except AssertionError as error:
            if part not in _JUDGES:
                return Outcome(FAILED, self._describe(error))
            line = self._line_of(error)
            return Outcome(BROKEN, str(error) or f"line {line}: the assertion does not hold")
        except Exception as error:
            exit_code = CANNOT_JUDGE if part in _JUDGES else FAILED
            return Outcome(exit_code, self._describe(error))

    def _work(self, rounds: int, name: str) -> None:
        """Call worker() with this name, once for each round."""
        _limit_cpu_time()
        for _ in range(rounds):
            self._functions["worker"](name)

    def _prepare(self) -> None:
        """Call prepare() if the file has it."""
        prepare = self._functions.get("prepare")
        if prepare is not None:
            prepare()

    def describe_worker(self) -> dict[str, Any]:
        """Return the line of the file that runs now, and the place of this process."""
        _limit_cpu_time()
        line = None
        for frame, number in traceback.walk_stack(None):
            if frame.f_code.co_filename == self.path:
                line = number
                break
        place = place_of_this_process((f"{os.path.dirname(self.path)}/", f"{PACKAGE}/kit/"))
        return {"at": f"{os.path.basename(self.path)}:{line}", "place": place}

    def refuse_endless_loop(self, _number: int, frame: FrameType | None) -> NoReturn:
        """Refuse a worker that has used too much CPU time. This is a signal handler."""
        line = None
        while frame is not None and line is None:
            if frame.f_code.co_filename == self.path:
                line = frame.f_lineno
            frame = frame.f_back
        refuse(f"does not end: line {line} is in a loop that does nothing with files")

    def _describe(self, error: Exception) -> str:
        """Return the message of an error, with its line in the file if it has one."""
        message = "".join(traceback.format_exception_only(error)).splitlines()[-1]
        line = self._line_of(error)
        if line is None:
            return message
        return f"line {line}: {message}"

    def _line_of(self, error: Exception) -> int | None:
        """Return the line of the file that raised the error, or None if it is elsewhere."""
        if isinstance(error, SyntaxError):
            return error.lineno
        return self._innermost_line(traceback.extract_tb(error.__traceback__))

    def _innermost_line(self, frames: Iterable[traceback.FrameSummary]) -> int | None:
        """Return the line of the innermost frame that runs the file, or None."""
        innermost = None
        for frame in frames:
            if frame.filename == self.path:
                innermost = frame.lineno
        return innermost


def _judge(function: Callable[..., object], arguments: Sequence[str]) -> Outcome:
    """Run a function that judges, and return its verdict.

    If the function takes an argument, pass the name of the killed worker, or None. For
    after_power_cut(), this is the name of the worker that finished before the power cut.
    """
    if takes_argument(function):
        name = arguments[0] if arguments else None
        verdict = function(name)
    else:
        verdict = function()
    if verdict is None or verdict is True:
        return Outcome()
    if verdict is False:
        return Outcome(BROKEN, f"{function.__name__}() returned False")
    return Outcome(BROKEN, str(verdict) or f"{function.__name__}() returned {verdict!r}")


def takes_argument(function: Callable[..., object]) -> bool:
    """Return whether the function can be called with one argument."""
    return bool(inspect.signature(function).parameters)


def _limit_cpu_time() -> None:
    """Start a timer that sends a signal if this process uses too much CPU time from now on.

    Only CPU time counts, so a busy machine makes no difference.
    """
    signal.setitimer(signal.ITIMER_VIRTUAL, _MOST_CPU_SECONDS)


def main() -> None:
    """Run the function that the command line names."""
    path, part, *arguments = sys.argv[1:]
    # The file may print, but stdout carries the response.
    sys.stdout = sys.stderr
    sys.dont_write_bytecode = True
    sys.path.insert(0, os.path.dirname(path))
    learners_file = LearnersFile(path)
    learners_file.refusals.part = part
    if part == "worker":
        tracee.describe = learners_file.describe_worker
        report_every_call()
        signal.signal(signal.SIGVTALRM, learners_file.refuse_endless_loop)
    outcome = learners_file.load(lambda: runpy.run_path(path, run_name="tried"))
    if outcome.exit_code == 0:
        outcome = learners_file.call(part, arguments)
    if outcome.exit_code != 0:
        exit_with(outcome.reason, outcome.exit_code)


if __name__ == "__main__":
    main()
