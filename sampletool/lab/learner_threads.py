"""The program for a learner's file whose workers are threads: run its functions in this process.

    python -m sampletool.lab.learner_threads SOCKET FILE ROUNDS WORKERS

prepare(), always() and invariant() run in the main thread, and see the variables of the threads.
threads.py explains how the lab steps them.
"""

import linecache
import os
import sys
import time
import types
from pathlib import Path
from types import FrameType
from typing import Any

from .learner import LearnersFile
from .memory_access import AccessFinder, mark_as_needing_no_stop
from .outcome import Outcome
from .place import place_of
from .refusals import exit_with
from .source_line import line_in_file
from .stepped_lock import SteppedLock, replace_locks
from .thread_server import serve
from .threads import Threads

_LONGEST_LINE = 40
"""The maximum number of characters of a source line in the name of a step."""


class ThreadedFile:
    """A learner's file whose workers are threads of this process."""

    def __init__(self, path: str, rounds: str) -> None:
        self.finder = AccessFinder()
        self.threads = Threads(self.finder, self.describe)
        self._path = path
        self._rounds = rounds
        self._learners_file = LearnersFile(path, workers_are_threads=True)
        self._variables: dict[str, Any] = {}

    def load(self) -> Outcome:
        """Run the file without calling its functions. Return how this ended."""
        module = types.ModuleType("tried")
        module.__file__ = self._path
        # A dataclass looks for its module under this name.
        sys.modules["tried"] = module
        self._variables = vars(module)
        replace_locks(self.threads, self._variables)
        outcome = self._learners_file.load(self._execute)
        mark_as_needing_no_stop(time.sleep)
        return outcome

    def _execute(self) -> dict[str, Any]:
        """Run the file, and return its variables."""
        with open(self._path, "rb") as file:
            source = file.read()
        code = compile(source, self._path, "exec")
        self.finder.add_file(self._path, source.decode(), code)
        exec(code, self._variables)  # noqa: S102 - running the file is the task
        self._add_own_modules()
        return self._variables

    def _add_own_modules(self) -> None:
        """Step the modules too that the file has imported from its own directory."""
        directory = os.path.dirname(self._path)
        for module in list(sys.modules.values()):
            path = getattr(module, "__file__", None)
            if path is None or path == self._path or os.path.dirname(path) != directory:
                continue
            source = Path(path).read_text()
            self.finder.add_file(path, source, compile(source, path, "exec"))

    def work(self, worker_name: str) -> Outcome:
        """Run worker() in this thread. Return how it ended."""
        self._learners_file.refusals.current_function = "worker"
        return self._learners_file.call("worker", [self._rounds, worker_name])

    def run(self, function_name: str) -> Outcome:
        """Run prepare(), always() or invariant() in the main thread. Return how it ended."""
        refusals = self._learners_file.refusals
        previous_function = refusals.current_function
        refusals.current_function = function_name
        try:
            return self._learners_file.call(function_name, [])
        finally:
            # After this, a worker continues.
            refusals.current_function = previous_function

    def shared_state(self) -> str:
        """Return the shared variables and their values as a line of text."""
        descriptions = []
        for name, value in self._variables.items():
            is_lock = isinstance(value, SteppedLock)
            if name.startswith("__") or not (is_lock or self.finder.is_variable(name, value)):
                continue
            descriptions.append(f"{name}: {self._describe_value(value)}")
        return "  ".join(descriptions)

    def _describe_value(self, value: Any) -> str:
        """Return a value as text. For an object of the file's classes, show its attributes."""
        if not self.finder.has_own_class(value):
            return repr(value)
        # The usual representation of an object is only its address.
        attributes = []
        for name, attribute in getattr(value, "__dict__", {}).items():
            attributes.append(f"{name}={attribute!r}")
        return f"{type(value).__name__}({', '.join(attributes)})"

    def describe(self, frame: FrameType) -> dict[str, Any]:
        """Return the position of the thread with this frame, its line of source and its place."""
        line = line_in_file(self._path, frame) or 0
        return {
            "at": f"{os.path.basename(self._path)}:{line}",
            "source": _shorten(linecache.getline(self._path, line)),
            "place": place_of(frame, (f"{os.path.dirname(self._path)}/",)),
        }


def _shorten(line: str) -> str:
    """Return a line of source without extra spaces, cut to the maximum length."""
    text = " ".join(line.split())
    if len(text) > _LONGEST_LINE:
        return f"{text[: _LONGEST_LINE - 1]}…"
    return text


def main() -> None:
    """Load the file, then follow the commands of the lab. Exit if the file cannot be loaded."""
    socket_argument, path, rounds, worker_names = sys.argv[1:]
    # The output of the file goes to stderr. stdout is only for the reason of a refusal.
    sys.stdout = sys.stderr
    sys.dont_write_bytecode = True
    sys.path.insert(0, os.path.dirname(path))
    threaded_file = ThreadedFile(path, rounds)
    outcome = threaded_file.load()
    if outcome.exit_code != 0:
        exit_with(outcome.reason, outcome.exit_code)
    serve(int(socket_argument), threaded_file, threaded_file.threads, worker_names)


if __name__ == "__main__":
    main()
