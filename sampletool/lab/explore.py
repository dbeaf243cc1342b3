"""Every schedule of a way, run for real: in real processes, on real files.

Each run follows a schedule to its end and notes what else could have been chosen on the way; every such turn that
has not been taken is another run. There is no second model that could disagree with the program.
"""

import os
from collections import Counter
from collections.abc import Callable, Generator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial

from ..kit.context import Context
from ..kit.contract.text import counted
from .play import play
from .recording import Played, Recording
from .scenario import Scenario, is_right
from .scratch import fork_server_for

_AT_ONCE = 100


@dataclass(frozen=True)
class Exploration:
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

    @property
    def surprise(self) -> str | None:
        """The right way must hold on every schedule, and any other must break on some."""
        bad, run = self.bad, self.recordings[0]
        if bool(bad) != is_right(run.variant):
            return None
        breaks = f"{run.scenario}, {run.variant} breaks on {len(bad)} of {counted(len(self.recordings), 'schedule')}"
        such_as = f"such as {bad[0].schedule}: {bad[0].reason}".rstrip(".") if bad else ""
        return f"{breaks} although it is fixed, {such_as}" if bad else breaks


def explore(context: Context, scenario: Scenario, workers: int | None = None) -> dict[str, Exploration]:
    """Every schedule of each of its ways."""
    with fork_server_for(scenario.name) as fork_server:
        follow = partial(play, scenario, fork_server=fork_server, workers=workers, check=context.signals.check)
        return {variant: explore_way(partial(follow, variant), context.progress) for variant in scenario.ways}


def explore_way(follow: Callable[[str], Played], tell: Callable[[str], None] = lambda line: None) -> Exploration:
    return Exploration(tuple(sorted(every_run(follow, tell), key=lambda recording: recording.schedule)))


def every_run(
    follow: Callable[[str], Played], tell: Callable[[str], None] = lambda line: None
) -> Generator[Recording, None, None]:
    """Each once, in an order that is always the same: the fewer turns a schedule takes, the earlier it comes.

    Whoever does not take them all closes the generator, which ends its threads.
    """
    turns: list[list[str]] = [[]]
    with ThreadPoolExecutor(os.cpu_count() or 1) as pool:
        while turns:
            batch, turns = turns[:_AT_ONCE], turns[_AT_ONCE:]
            for given, played in zip(batch, pool.map(follow, map(" ".join, batch)), strict=True):
                yield played.recording
                turns += _turns(len(given), played)
            if len(turns) > _AT_ONCE:
                tell(f"{len(turns)} more schedules, at least.")


def _turns(given: int, played: Played) -> list[list[str]]:
    """The schedules that leave this one at a choice which no other run has taken.

    What could have struck within the last step that was given is known only now.
    """
    taken = played.recording.schedule.split()
    return [
        [*taken[:position], other]
        for position in range(max(given - 1, 0), len(taken))
        for other in played.choices[position]
        if other != taken[position] and (position >= given or other.startswith(taken[position]))
    ]
