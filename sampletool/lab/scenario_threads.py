"""The program for a scenario whose workers are threads: run one of its variants in this process.

    python -m sampletool.lab.scenario_threads SOCKET SCENARIO VARIANT WORKERS

This program loads the scenario's file again, after it has replaced threading.Lock. The module that
the fork server has loaded has real locks, at which a thread does not stop. threads.py explains how
the lab steps threads.
"""

import base64
import importlib.util
import linecache
import os
import pickle
import sys
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

from .memory_access import AccessFinder
from .outcome import FAILED, Outcome
from .place import place_of
from .position import position_of_frame
from .scenario import PACKAGE, Scenario, module_of
from .source_line import line_in_file
from .stepped_lock import replace_locks
from .thread_server import serve
from .threads import Threads


class ThreadedScenario:
    """One variant of a scenario whose workers are threads of this process."""

    def __init__(self, name: str, variant: str) -> None:
        self.finder = AccessFinder()
        self.threads = Threads(self.finder, self.describe)
        self._module = self._load(module_of(name).__name__)
        self._scenario: Scenario = self._module.scenario
        self._function: Callable[[str], object] = getattr(self._module, variant.replace("-", "_"))
        self._path = str(self._module.__file__)

    def _load(self, module_name: str) -> Any:
        """Run the file of the scenario, and return the new module."""
        spec = importlib.util.find_spec(module_name)
        assert spec is not None
        assert spec.origin is not None
        module = importlib.util.module_from_spec(spec)
        replace_locks(self.threads, vars(module))
        # pickle finds the classes of the object that `read_state` returns under this name.
        sys.modules[module_name] = module
        source = Path(spec.origin).read_text()
        code = compile(source, spec.origin, "exec")
        self.finder.add_file(spec.origin, source, code)
        exec(code, vars(module))  # noqa: S102 - our own file
        return module

    def work(self, worker_name: str) -> Outcome:
        """Run the function of the variant in this thread. Return how it ended."""
        try:
            self._function(worker_name)
        except Exception as error:
            return Outcome(FAILED, f"{type(error).__name__}: {error}")
        return Outcome()

    def run(self, function_name: str) -> Outcome:
        """Run prepare() of the scenario in the main thread."""
        assert function_name == "prepare"
        self._module.prepare(Path.cwd())
        return Outcome()

    def shared_state(self) -> str:
        """Return the state that `read_state` of the scenario returns, pickled, as base64."""
        shared_state = self._module.read_state(Path.cwd())
        return base64.b64encode(pickle.dumps(shared_state)).decode()

    def describe(self, frame: FrameType) -> dict[str, Any]:
        """Return the position of the thread with this frame, its line of source and its place."""
        facts = position_of_frame(frame, self._path, self._scenario.private_variables)
        line = line_in_file(self._path, frame)
        source = ""
        if line is not None:
            source = linecache.getline(self._path, line).strip()
        # The name of a step uses the source, and the position of a kill uses the statement.
        facts["source"] = source
        facts["statement"] = source
        facts["place"] = place_of(frame, (str(PACKAGE),))
        return facts


def main() -> None:
    """Load the scenario that the command line names, and follow the commands of the lab."""
    socket_argument, scenario_name, variant, worker_names = sys.argv[1:]
    socket_descriptor = int(socket_argument)
    # Programs that a variant starts must not keep the connection to the lab open.
    os.set_inheritable(socket_descriptor, False)
    threaded_scenario = ThreadedScenario(scenario_name, variant)
    serve(socket_descriptor, threaded_scenario, threaded_scenario.threads, worker_names)


if __name__ == "__main__":
    main()
