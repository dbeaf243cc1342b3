"""Play one schedule of coroutines: in one process, where the only moments at which another goes on are the awaits.

A coroutine's step lasts from one await that gives way to the next. It is driven by hand instead of by the event loop's
own queue; if what it awaits is not there yet, it is blocked. The play takes place in a process of its own, so that
also another copy of the package can be played.
"""

import asyncio
import pickle
import sys
from collections.abc import Coroutine, Mapping
from contextlib import nullcontext
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from sampletool.kit.contract.errors import InvalidValues
from sampletool.kit.stepping.fork_server import ForkServer
from sampletool.lab.errors import UnexpectedOutcome
from sampletool.lab.judge import Judge
from sampletool.lab.recording import Event, Happened, Played, follow, recorded, wait_for_ever
from sampletool.lab.scenario import Moment, Scenario, find
from sampletool.lab.standing import of_coroutine, source_of


def play_coroutines(
    name: str,
    variant: str,
    schedule: str,
    letters: str,
    directory: Path,
    environ: Mapping[str, str],
    fork_server: ForkServer | None,
) -> Played:
    with nullcontext(fork_server) if fork_server else ForkServer([], environ) as server:
        running = server.start(None, ["-m", __name__, name, variant, schedule, letters], environ, directory)
        stdout, stderr = running.communicate()
    if running.returncode:
        raise UnexpectedOutcome([f"{name}, {variant}: {stderr.decode().strip().rpartition(chr(10))[2]}"], None)
    told = pickle.loads(stdout)  # noqa: S301 - our own process wrote it
    if isinstance(told, Played):
        return told
    raise InvalidValues(*told)


@dataclass
class _Task:
    letter: str
    coroutine: Coroutine[Any, Any, None]
    done: int = 0
    named: int = 0
    """How many of its named steps it has come through: having to wait is not one."""
    is_over: bool = False
    awaits: Any = None
    failure: str | None = None

    @property
    def is_blocked(self) -> bool:
        return self.awaits is not None and not self.awaits.done()

    def go_on(self) -> None:
        try:
            self.awaits = self.coroutine.send(None)
        except StopIteration:
            self.is_over, self.awaits = True, None
        except Exception as error:
            self.is_over, self.awaits, self.failure = True, None, f"failed: {type(error).__name__}"


class _Play:
    def __init__(self, scenario: Scenario, variant: str, letters: str) -> None:
        way = scenario.ways[variant]
        assert scenario.world is not None
        assert callable(way.program)
        world = scenario.world()
        self._scenario = scenario
        self._source = source_of(scenario, way)
        self._steps = way.steps
        self.tasks = [_Task(letter, way.program(letter, world)) for letter in letters]
        self.events: list[Event] = []
        self.judge = Judge(scenario, letters, scenario.look(Path.cwd()))

    def enabled(self) -> list[str]:
        able = [task for task in self.tasks if not task.is_over and not task.is_blocked]
        return [f"{task.letter}{task.done + 1}" for task in able]

    def do(self, token: str) -> list[str]:
        task = next(task for task in self.tasks if task.letter == token[0])
        task.done += 1
        stood = of_coroutine(task.coroutine, self._source, self._scenario.private)
        task.go_on()
        names = [step.name for step in self._steps if fnmatchcase(task.letter, step.file)]
        step = names[min(task.named, len(names) - 1)]
        task.named += not task.is_blocked
        waiting = tuple(each.letter for each in self.tasks if each.is_blocked)
        outcome: Happened = "blocked" if task.is_blocked else "done"
        acts = (len(self.events) + 1, task.letter, task.done, step)
        before, after = self.judge.now, self._scenario.look(Path.cwd())
        status = int(task.failure is not None) if task.is_over else None
        is_bad = self.judge.see(Moment(task.letter, step, before, after, (), task.is_blocked, status=status))
        note = "broken" if is_bad else task.failure
        self.events.append(Event(*acts, outcome, str(after), (), waiting, task.is_over, note, **stood))
        return []

    def reasons(self) -> list[str]:
        stuck = [task.letter for task in self.tasks if not task.is_over]
        if not stuck:
            self.judge.end()
        return [*wait_for_ever(stuck), *self.judge.reasons]


async def _play(name: str, variant: str, schedule: str, letters: str) -> Played:
    scenario = find(name)
    scene = _Play(scenario, variant, letters)
    try:
        taken, choices = follow(schedule, scene.enabled, scene.do)
        reasons = scene.reasons()
    finally:
        for task in scene.tasks:
            task.coroutine.close()
    return Played(recorded(name, variant, letters, taken, reasons, scene.events), choices)


def main() -> None:
    told: Any
    try:
        told = asyncio.run(_play(*sys.argv[1:]))
    except InvalidValues as refused:
        told = refused.mistakes
    sys.stdout.buffer.write(pickle.dumps(told))


if __name__ == "__main__":
    main()
