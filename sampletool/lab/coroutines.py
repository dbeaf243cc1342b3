"""Play a scenario whose workers are coroutines of one process, which can only switch at an await.

    python -m sampletool.lab.coroutines SCENARIO VARIANT SCHEDULE WORKERS

This follows the schedule in the current directory, and prints the played run, pickled. A coroutine
is driven by hand instead of by the queue of the event loop.
"""

import asyncio
import pickle
import sys
from fnmatch import fnmatchcase
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from ..kit.contract.errors import InvalidValues
from ..kit.stepping.tracer import Ended
from .play import Play, RunPlan
from .position import position_of_coroutine, source_of
from .recording import PlayedRun
from .scenario import Scenario, Variant, find_scenario
from .stepped_worker import Worker

_NO_PROCESS: Any = SimpleNamespace(next_event="", past_events=())
"""Takes the place of the stepped process, which a coroutine does not have. It never exits."""


def _never_cancelled() -> None:
    """Do nothing. The process that started this one checks whether the command has to end."""


class _CoroutineWorker(Worker):
    """A worker that is a coroutine. Each step ends at an await that suspends the coroutine.

    The worker is blocked while the awaited result is missing.
    """

    def __init__(
        self, worker_name: str, scenario: Scenario, variant: Variant, shared_memory: object
    ) -> None:
        super().__init__(worker_name, variant, _NO_PROCESS, _never_cancelled)
        assert callable(variant.program)
        self.coroutine = variant.program(worker_name, shared_memory)
        source = source_of(scenario, variant)
        self._find_position = partial(
            position_of_coroutine, self.coroutine, source, scenario.private_variables
        )
        # The steps of a coroutine have no file. Their field `file` is a pattern for its name.
        self._remaining_steps = [
            step for step in variant.steps if fnmatchcase(worker_name, step.file)
        ]
        self._awaited_future: asyncio.Future[Any] | None = None
        """The future for which the coroutine waits. None if it only lets others run."""

    def record_position(self) -> None:
        """Store the line and the private values of the coroutine in `position`."""
        self.position = self._find_position()

    def run_to_next_step(self) -> None:
        """Set the next step.

        A coroutine may take more steps than the scenario names. They have the name of the last one.
        """
        self.next_step, *steps_after = self._remaining_steps
        if steps_after:
            self._remaining_steps = steps_after

    def take_step(self) -> None:
        """Run the coroutine until it is suspended or ends.

        If the worker is blocked, do not run it, but check whether the awaited result has arrived.
        """
        if self.is_blocked:
            self.is_blocked = self._is_result_missing()
            return
        self.record_position()
        self._run_coroutine()
        self.is_blocked = self._is_result_missing()
        if not self.is_blocked:
            self.run_to_next_step()

    def _run_coroutine(self) -> None:
        """Run the coroutine until it is suspended. If it ends, store how it has ended."""
        self._awaited_future = None
        try:
            # The coroutine is suspended with a future, or with None after asyncio.sleep(0).
            self._awaited_future = self.coroutine.send(None)
        except StopIteration:
            self.ended = Ended(0, b"", b"")
        except Exception as error:
            self.ended = Ended(1, b"", type(error).__name__.encode())

    def _is_result_missing(self) -> bool:
        """Return whether the coroutine waits for a future that has no result yet."""
        return self._awaited_future is not None and not self._awaited_future.done()


async def _play(
    scenario_name: str, variant_name: str, schedule: str, worker_names: str
) -> PlayedRun:
    """Run a variant of a scenario along this schedule, and return the recorded run.

    `worker_names` are the names of the workers, such as `AB`.
    """
    scenario = find_scenario(scenario_name)
    assert scenario.create_shared_memory is not None
    shared_memory = scenario.create_shared_memory()
    variant = scenario.variants[variant_name]
    workers = []
    for worker_name in worker_names:
        workers.append(_CoroutineWorker(worker_name, scenario, variant, shared_memory))
    return Play(scenario, variant_name, workers, Path.cwd()).follow(RunPlan(schedule=schedule))


def main() -> None:
    """Play one schedule. Print the recorded run, or the mistakes in the schedule, pickled."""
    scenario_name, variant_name, schedule, worker_names = sys.argv[1:]
    response: Any
    try:
        response = asyncio.run(_play(scenario_name, variant_name, schedule, worker_names))
    except InvalidValues as error:
        response = error.mistakes
    sys.stdout.buffer.write(pickle.dumps(response))


if __name__ == "__main__":
    main()
