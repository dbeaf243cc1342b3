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
from collections.abc import Callable, Mapping, Sequence
from types import FrameType
from typing import Any, NoReturn

from ..kit.stepping import tracee
from .outcome import BAD_FILE, BROKEN, CANNOT_JUDGE, FAILED, Outcome
from .place import place_of_this_process
from .refusals import Refusals, exit_with, refuse
from .scenario import PACKAGE
from .source_line import line_in_file
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

    def call(self, function_name: str, arguments: Sequence[str]) -> Outcome:
        """Run a function of the file, and return how it ended.

        `arguments` are those of the command line, see the docstring of this module.
        """
        try:
            return self._run(function_name, arguments)
        except AssertionError as error:
            if function_name in _JUDGES:
                return Outcome(BROKEN, self._describe_assertion(error))
            return Outcome(FAILED, self._describe(error))
        except Exception as error:
            if function_name in _JUDGES:
                return Outcome(CANNOT_JUDGE, self._describe(error))
            return Outcome(FAILED, self._describe(error))

    def _run(self, function_name: str, arguments: Sequence[str]) -> Outcome:
        """Run a function of the file. Return its verdict if it judges, or else a success."""
        if function_name in _JUDGES:
            return _judge(self._functions[function_name], arguments)
        if function_name == "worker":
            rounds, name = arguments
            self._work(int(rounds), name)
        else:
            self._prepare()
        return Outcome()

    def _work(self, rounds: int, name: str) -> None:
        """Call worker() with this name, once for each round."""
        _restart_cpu_limit()
        for _ in range(rounds):
            self._functions["worker"](name)

    def _prepare(self) -> None:
        """Call prepare() if the file has it."""
        prepare = self._functions.get("prepare")
        if prepare is not None:
            prepare()

    def describe_worker(self) -> dict[str, Any]:
        """Return the line of the file that runs now, and the place of this process.

        The tracee calls this before each step. So the limit for the CPU time of a step begins here.
        """
        _restart_cpu_limit()
        line = line_in_file(self.path, sys._getframe())
        place = place_of_this_process((f"{os.path.dirname(self.path)}/", f"{PACKAGE}/kit/"))
        return {"at": f"{os.path.basename(self.path)}:{line}", "place": place}

    def refuse_endless_loop(self, _number: int, frame: FrameType | None) -> NoReturn:
        """Refuse a worker that has used too much CPU time. This is a signal handler."""
        line = line_in_file(self.path, frame)
        refuse(f"does not end: line {line} is in a loop that does nothing with files")

    def _describe(self, error: Exception) -> str:
        """Return the message of an error, with its line in the file if it has one."""
        message = "".join(traceback.format_exception_only(error)).splitlines()[-1]
        line = self._line_of(error)
        if line is None:
            return message
        return f"line {line}: {message}"

    def _describe_assertion(self, error: AssertionError) -> str:
        """Return the message of a failed assertion, or its line if it has no message."""
        if str(error):
            return str(error)
        return f"line {self._line_of(error)}: the assertion does not hold"

    def _line_of(self, error: Exception) -> int | None:
        """Return the line of the file that raised the error, or None if it is elsewhere."""
        if isinstance(error, SyntaxError):
            return error.lineno
        line = None
        # The innermost frame comes last.
        for frame in traceback.extract_tb(error.__traceback__):
            if frame.filename == self.path:
                line = frame.lineno
        return line


def _judge(function: Callable[..., object], arguments: Sequence[str]) -> Outcome:
    """Run a function that judges, and return its verdict.

    If the function takes an argument, pass the name of the killed worker, or None. For
    after_power_cut(), this is the name of the worker that finished before the power cut.
    """
    if takes_argument(function):
        name = None
        if arguments:
            name = arguments[0]
        verdict = function(name)
    else:
        verdict = function()
    if verdict is None or verdict is True:
        return Outcome()
    if verdict is False or str(verdict) == "":
        return Outcome(BROKEN, f"{function.__name__}() returned {verdict!r}")
    return Outcome(BROKEN, str(verdict))


def takes_argument(function: Callable[..., object]) -> bool:
    """Return whether the function can be called with one argument."""
    return bool(inspect.signature(function).parameters)


def _restart_cpu_limit() -> None:
    """Let the timer begin again that sends SIGVTALRM if this process uses too much CPU time.

    Only CPU time counts, so a busy machine makes no difference.
    """
    signal.setitimer(signal.ITIMER_VIRTUAL, _MOST_CPU_SECONDS)


def main() -> None:
    """Run the function that the command line names."""
    path, function_name, *arguments = sys.argv[1:]
    # The file may print, but stdout carries the response.
    sys.stdout = sys.stderr
    sys.dont_write_bytecode = True
    # The file may import other files of its directory.
    sys.path.insert(0, os.path.dirname(path))
    learners_file = LearnersFile(path)
    learners_file.refusals.current_function = function_name
    if function_name == "worker":
        tracee.describe = learners_file.describe_worker
        report_every_call()
        signal.signal(signal.SIGVTALRM, learners_file.refuse_endless_loop)
    outcome = learners_file.load(lambda: runpy.run_path(path, run_name="tried"))
    if outcome.exit_code == 0:
        outcome = learners_file.call(function_name, arguments)
    if outcome.exit_code != 0:
        exit_with(outcome.reason, outcome.exit_code)


if __name__ == "__main__":
    main()
