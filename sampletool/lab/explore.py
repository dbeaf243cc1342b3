"""Every schedule of a way, run for real: in real processes, on real files.

Each run follows a schedule to its end and notes what else could have been chosen on the way; every such turn that
has not been taken is another run. There is no second model that could disagree with the program.
"""

import os
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from sampletool.kit.stepping.fork_server import ForkServer
from sampletool.lab.play import play
from sampletool.lab.recording import Played, Recording
from sampletool.lab.scenario import module_of
from sampletool.lab.scratch import PACKAGE_ROOT


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
        found = Counter(reason for each in self.bad for reason in (each.reason or "", *each.also))
        return dict(sorted(found.items(), key=lambda item: (-item[1], item[0])))


def explore(
    name: str,
    variant: str,
    *,
    workers: int | None = None,
    package_root: Path = PACKAGE_ROOT,
    stop_at_bad: bool = False,
    fork_server: ForkServer | None = None,
    check: Callable[[], None] = lambda: None,
) -> Exploration:
    """All schedules; or, with `stop_at_bad`, those up to the first that breaks the invariant."""
    recordings: list[Recording] = []
    follow = partial(play, name, variant, workers=workers, package_root=package_root, check=check)
    with (
        nullcontext(fork_server) if fork_server else fork_server_for(name, package_root=package_root) as server,
        ThreadPoolExecutor(os.cpu_count() or 1) as pool,
    ):

        def begin(schedule: list[str]) -> Future[tuple[int, Played]]:
            return pool.submit(lambda: (len(schedule), follow(" ".join(schedule), fork_server=server)))

        running = {begin([])}
        try:
            while running and not (stop_at_bad and any(recording.is_broken for recording in recordings)):
                done, running = wait(running, return_when=FIRST_COMPLETED)
                for future in done:
                    given, played = future.result()
                    recordings.append(played.recording)
                    running |= {begin(turn) for turn in _turns(given, played)}
        finally:
            for future in running:
                future.cancel()
    return Exploration(name, variant, tuple(sorted(recordings, key=lambda recording: recording.schedule)))


@contextmanager
def fork_server_for(*names: str, package_root: Path = PACKAGE_ROOT) -> Iterator[ForkServer]:
    """Has loaded what the workers of these scenarios would load, each of them, before their first step."""
    environ = {**os.environ, "PYTHONPATH": str(package_root), "PYTHONSAFEPATH": "1"}
    preload = ["sampletool.lab.worker", "sampletool.kit.app", "sampletool.kit.commands.config.set"]
    with ForkServer([*preload, *(module_of(name).__name__ for name in names)], environ) as fork_server:
        yield fork_server


def _turns(given: int, played: Played) -> list[list[str]]:
    """The schedules that leave this one at a choice which no other run has taken."""
    taken = played.recording.schedule.split()
    return [
        [*taken[:position], other]
        for position in range(given, len(taken))
        for other in played.choices[position]
        if other != taken[position]
    ]
