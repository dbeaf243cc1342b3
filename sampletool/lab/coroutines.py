"""The coroutines of a scenario, in one process, where the only moments at which another goes on are the awaits.

`python -m sampletool.lab.coroutines SCENARIO WAY SCHEDULE LETTERS` follows the schedule in the current directory, and
answers with what was played, pickled. A coroutine is driven by hand instead of by the event loop's own queue.
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
    """Its step lasts from one await that gives way to the next. If what it awaits is not there yet, it is blocked."""

    def __init__(self, letter: str, scenario: Scenario, way: Way, world: object) -> None:
        super().__init__(letter, way, _NO_PROCESS, lambda: None)
        assert callable(way.program)
        self.coroutine = way.program(letter, world)
        self._stands = partial(
            of_coroutine, self.coroutine, source_of(scenario, way), scenario.private
        )
        self._steps = [step for step in way.steps if fnmatchcase(letter, step.file)]
        self._awaits: Any = None

    def look_where(self) -> None:
        self.stood = self._stands()

    def come_to_a_step(self) -> None:
        """Having to wait is none."""
        self.at = self._steps.pop(0) if len(self._steps) > 1 else self._steps[0]

    def go_on(self) -> None:
        if self.is_blocked:
            self.is_blocked = not self._awaits.done()
            return
        self.look_where()
        try:
            self._awaits = self.coroutine.send(None)
            self.is_blocked = self._awaits is not None and not self._awaits.done()
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
    answer: Any
    try:
        answer = asyncio.run(_play(*sys.argv[1:]))
    except InvalidValues as refused:
        answer = refused.mistakes
    sys.stdout.buffer.write(pickle.dumps(answer))


if __name__ == "__main__":
    main()
