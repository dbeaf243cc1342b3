"""Play one schedule of coroutines: in one process, where the only moments at which another goes on are the awaits.

A coroutine's step lasts from one await that gives way to the next. It is driven by hand instead of by the event loop's
own queue; if what it awaits is not there yet, it is blocked. The play takes place in a process of its own, so that
also another copy of the package can be played.
"""

import asyncio
import json
import subprocess
import sys
import tempfile
from collections.abc import Coroutine
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from sampletool.lab.recording import Event, Played, Recording, misfit, parse_schedule, say_schedule
from sampletool.lab.scenario import LETTERS, Outcome, find
from sampletool.lab.verdict import UnexpectedOutcome


def play_coroutines(name: str, variant: str, schedule: str, *, workers: int | None, package_root: Path) -> Played:
    parse_schedule(schedule)
    program = [sys.executable, "-m", __name__, name, variant, schedule, str(workers or find(name).workers)]
    environ = {"PYTHONPATH": str(package_root), "PYTHONSAFEPATH": "1", "PYTHONDONTWRITEBYTECODE": "1"}
    with tempfile.TemporaryDirectory(prefix="tool-lab-") as directory:
        environ["HOME"] = directory
        ran = subprocess.run(program, env=environ, cwd=directory, capture_output=True, check=False)
    if ran.returncode:
        raise UnexpectedOutcome([f"{name}, {variant}: {ran.stderr.decode().strip().rpartition(chr(10))[2]}"], None)
    told = json.loads(ran.stdout)
    if "enabled" in told:
        raise misfit(schedule, told["token"], told["enabled"])
    events = tuple(
        Event(**{**event, "holds": tuple(event["holds"]), "waiting": tuple(event["waiting"])})
        for event in told["events"]
    )
    letters = tuple(LETTERS[: workers or find(name).workers])
    verdict, reason = ("broken" if told["reason"] else "holds"), told["reason"]
    recording = Recording(
        name,
        variant,
        letters,
        find(name).shared,
        told["schedule"],
        verdict,  # type: ignore[arg-type]
        reason,
        events,
    )
    return Played(recording.marked(), tuple(tuple(choice) for choice in told["choices"]))


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


async def _follow(name: str, variant: str, schedule: str, workers: int) -> dict[str, Any]:
    scenario = find(name)
    way, directory = scenario.ways[variant], Path.cwd()
    scenario.prepare(directory)
    assert scenario.world is not None
    assert callable(way.program)
    world = scenario.world()
    tasks = [_Task(letter, way.program(letter, world)) for letter in LETTERS[:workers]]
    events: list[Event] = []
    taken: list[str] = []
    choices: list[list[str]] = []
    wanted = parse_schedule(schedule)

    def record(task: _Task, outcome: Any) -> None:
        waiting = tuple(each.letter for each in tasks if each.is_blocked)
        step = way.steps[min(task.named, len(way.steps) - 1)].name
        task.named += outcome == "done"
        seen = scenario.look(directory)
        events.append(
            Event(len(events) + 1, task.letter, task.done, step, outcome, seen, (), waiting, task.is_over, task.failure)
        )

    while enabled := [f"{task.letter}{task.done + 1}" for task in tasks if not task.is_over and not task.is_blocked]:
        token = wanted.pop(0) if wanted else enabled[0]
        if token not in enabled:
            return {"token": token, "enabled": enabled}
        choices.append(enabled)
        taken.append(token)
        task = next(task for task in tasks if task.letter == token[0])
        task.done += 1
        task.go_on()
        record(task, "blocked" if task.is_blocked else "done")
    if wanted:
        return {"token": wanted[0], "enabled": []}
    stuck = [task.letter for task in tasks if not task.is_over]
    statuses = {task.letter: int(task.failure is not None) for task in tasks}
    outcome = Outcome(directory, [task.letter for task in tasks], statuses, {})
    reason = f"{' and '.join(stuck)} wait for ever." if stuck else scenario.check(outcome)
    for task in tasks:
        task.coroutine.close()
    return {
        "schedule": say_schedule(taken),
        "choices": choices,
        "reason": reason,
        "events": [asdict(event) for event in events],
    }


def main() -> None:
    name, variant, schedule, workers = sys.argv[1:]
    sys.stdout.write(json.dumps(asyncio.run(_follow(name, variant, schedule, int(workers)))))


if __name__ == "__main__":
    main()
