"""Every schedule of a way, run for real: in real processes, on real files.

Each run follows a schedule to its end and notes what else could have been chosen on the way; every such turn that
has not been taken is another run. There is no second model that could disagree with the program.
"""

import os
from collections.abc import Callable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from sampletool.lab.play import play
from sampletool.lab.recording import Played, Recording, say_schedule
from sampletool.lab.scenario import module_of
from sampletool.lab.scratch import PACKAGE_ROOT
from sampletool.stage.troupe import Troupe


@dataclass(frozen=True)
class Exploration:
    scenario: str
    variant: str
    recordings: tuple[Recording, ...]
    """One for each schedule, in order of their schedules: prefixes that they share are the graph of all runs."""

    @property
    def bad(self) -> list[Recording]:
        return [recording for recording in self.recordings if recording.is_broken]

    @property
    def reasons(self) -> dict[str, int]:
        """What was broken, and in how many schedules."""
        found: dict[str, int] = {}
        for recording in self.bad:
            found[recording.reason or ""] = found.get(recording.reason or "", 0) + 1
        return dict(sorted(found.items(), key=lambda item: (-item[1], item[0])))


def explore(
    name: str,
    variant: str,
    *,
    workers: int | None = None,
    package_root: Path = PACKAGE_ROOT,
    stop_at_bad: bool = False,
    check: Callable[[], None] = lambda: None,
) -> Exploration:
    """All schedules; or, with `stop_at_bad`, those up to the first that breaks the invariant."""
    recordings: list[Recording] = []

    def run(schedule: list[str]) -> tuple[int, Played]:
        played = play(
            name,
            variant,
            say_schedule(schedule),
            workers=workers,
            package_root=package_root,
            troupe=troupe,
            check=check,
        )
        return len(schedule), played

    with troupe_for(name, package_root=package_root) as troupe, ThreadPoolExecutor(os.cpu_count() or 1) as pool:
        running: set[Future[tuple[int, Played]]] = {pool.submit(run, [])}
        try:
            while running:
                done, running = wait(running, return_when=FIRST_COMPLETED)
                for future in done:
                    given, played = future.result()
                    recordings.append(played.recording)
                    if stop_at_bad and played.recording.is_broken:
                        return _explored(name, variant, recordings)
                    for turn in _turns(given, played):
                        running.add(pool.submit(run, turn))
        finally:
            for future in running:
                future.cancel()
    return _explored(name, variant, recordings)


@contextmanager
def troupe_for(*names: str, package_root: Path = PACKAGE_ROOT) -> Iterator[Troupe]:
    """Has loaded what the workers of these scenarios would load, each of them, before their first step."""
    environ = {**os.environ, "PYTHONPATH": str(package_root), "PYTHONSAFEPATH": "1"}
    preload = ["sampletool.lab.worker", "sampletool.app", "sampletool.commands.config.set"]
    with Troupe([*preload, *(module_of(name).__name__ for name in names)], environ) as troupe:
        yield troupe


def _turns(given: int, played: Played) -> list[list[str]]:
    """The schedules that leave this one at a choice which no other run has taken."""
    taken = played.recording.schedule.split()
    return [
        [*taken[:position], other]
        for position in range(given, len(taken))
        for other in played.choices[position]
        if other != taken[position]
    ]


def _explored(name: str, variant: str, recordings: list[Recording]) -> Exploration:
    return Exploration(name, variant, tuple(sorted(recordings, key=lambda recording: recording.schedule)))
