"""Play a scenario whose workers are coroutines of one process, which can only switch at an await.

    python -m sampletool.lab.coroutines SCENARIO VARIANT SCHEDULE LETTERS

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
from .play import Course, Play
from .recording import Played
from .scenario import Scenario, Way, find
from .standing import of_coroutine, source_of
from .stepped_worker import Worker

_NO_PROCESS: Any = SimpleNamespace(at="", past=())


class _Task(Worker):
    """A coroutine whose step lasts from one await that gives way to the next.

    If what it awaits is not there yet, it is blocked.
    """

    def __init__(self, letter: str, scenario: Scenario, way: Way, world: object) -> None:
        super().__init__(letter, way, _NO_PROCESS, lambda: None)
        assert callable(way.program)
        self.coroutine = way.program(letter, world)
        source = source_of(scenario, way)
        self._describe = partial(of_coroutine, self.coroutine, source, scenario.private)
        self._steps = [step for step in way.steps if fnmatchcase(letter, step.file)]
        self._awaited: Any = None

    def look_where(self) -> None:
        """Remember where it stands."""
        self.stood = self._describe()

    def come_to_a_step(self) -> None:
        """Name its next step. The last name is used for all further steps."""
        if len(self._steps) > 1:
            self.at = self._steps.pop(0)
        else:
            self.at = self._steps[0]

    def go_on(self) -> None:
        """Take one step. If it is blocked, only look whether it can continue."""
        if self.is_blocked:
            self.is_blocked = not self._awaited.done()
            return
        self.look_where()
        try:
            self._awaited = self.coroutine.send(None)
            self.is_blocked = self._awaited is not None and not self._awaited.done()
        except StopIteration:
            self.ended = Ended(0, b"", b"")
        except Exception as error:
            self.ended = Ended(1, b"", type(error).__name__.encode())
        if not self.is_blocked:
            self.come_to_a_step()


async def _play(name: str, variant: str, schedule: str, letters: str) -> Played:
    scenario = find(name)
    assert scenario.world is not None
    world = scenario.world()
    tasks = [_Task(letter, scenario, scenario.ways[variant], world) for letter in letters]
    return Play(scenario, variant, tasks, Path.cwd()).follow(Course(schedule=schedule))


def main() -> None:
    """Play one schedule. Print the run, or what is wrong with the schedule."""
    response: Any
    try:
        response = asyncio.run(_play(*sys.argv[1:]))
    except InvalidValues as error:
        response = error.mistakes
    sys.stdout.buffer.write(pickle.dumps(response))


if __name__ == "__main__":
    main()
