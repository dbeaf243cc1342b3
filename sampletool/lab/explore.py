"""Every schedule of a variant, run for real: in real processes, on real files.

There are two kinds of exploration:

* `explore_way` runs every schedule of the steps that a scenario names. Each run follows a schedule
  to its end, and notes what else could have been chosen on the way. Every such turn that has not
  been taken is another run. The explorer and the pages need all of them.
* `explore_every_step` takes every call as a step. It leaves out schedules that make no difference,
  see reduction.py.

There is no second model that could disagree with the program.
"""

import os
from collections import Counter
from collections.abc import Callable, Generator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from itertools import count
from typing import Protocol

from ..kit.context import Context
from ..kit.contract.errors import InvalidValues
from ..kit.contract.text import counted
from ..kit.stepping.fork_server import ForkServer
from .errors import UnexpectedOutcome
from .play import RunPlan, play
from .recording import Played, Recording
from .reduction import Choose, NotDeterministic, Run, Search
from .scenario import KILL, Scenario, is_right, with_every_step
from .scratch import fork_server_for

_AT_ONCE = 100
MOST_SCHEDULES = 50
"""How many schedules of every step are run, unless the caller wants more."""


@dataclass(frozen=True)
class Exploration:
    """The runs of one variant."""

    recordings: tuple[Recording, ...]
    """One for each schedule, in the order of the schedules."""
    is_complete: bool = True
    """Whether there were no more schedules."""
    takes_every_step: bool = False

    @property
    def bad(self) -> list[Recording]:
        """The runs that broke the invariant."""
        return [recording for recording in self.recordings if recording.is_broken]

    @property
    def reasons(self) -> dict[str, int]:
        """What was broken, and in how many schedules."""
        found: Counter[str] = Counter()
        for recording in self.bad:
            found.update([recording.reason or "", *recording.also])
        by_frequency = sorted(found.items(), key=lambda item: (-item[1], item[0]))
        return dict(by_frequency)

    @property
    def surprise(self) -> str | None:
        """What is not as expected: a fixed variant that breaks, or another one that does not."""
        bad = self.bad
        run = self.recordings[0]
        if bool(bad) != is_right(run.variant):
            return None
        number = counted(len(self.recordings), "schedule")
        if self.takes_every_step:
            number = f"{number} of every step"
        sentence = f"{run.scenario}, {run.variant} breaks on {len(bad)} of {number}"
        if not bad:
            return sentence
        example = f"such as {bad[0].schedule}: {bad[0].reason}".rstrip(".")
        return f"{sentence} although it is fixed, {example}"


@dataclass(frozen=True, kw_only=True)
class CheckedVariant:
    """All that was explored of one variant."""

    named_steps: Exploration
    every_step: Exploration | None
    """None where only the named steps are explored: for wrong variants, and for coroutines."""

    @property
    def surprises(self) -> list[str]:
        """What is not as expected."""
        explorations = [self.named_steps]
        if self.every_step is not None:
            explorations.append(self.every_step)
        return [found.surprise for found in explorations if found.surprise is not None]


def explore(
    context: Context,
    scenario: Scenario,
    workers: int | None = None,
) -> dict[str, Exploration]:
    """Run every schedule of the named steps, of each variant."""
    with fork_server_for(scenario.name) as fork_server:
        explored = {}
        for variant_name in scenario.variants:
            follow = partial(
                play,
                scenario,
                variant_name,
                fork_server=fork_server,
                workers=workers,
                check=context.signals.check,
            )
            explored[variant_name] = explore_variant(follow, context.progress)
        return explored


def check_variants(
    context: Context,
    scenario: Scenario,
    workers: int | None = None,
    limit: int = MOST_SCHEDULES,
) -> dict[str, CheckedVariant]:
    """Explore each variant: the named steps of all, and every step of those that are right.

    `limit` is how many schedules of every step are run.
    """
    explored = explore(context, scenario, workers)
    checked = {}
    with fork_server_for(scenario.name) as fork_server:
        for variant_name, named_steps in explored.items():
            every_step = None
            if is_right(variant_name) and scenario.steps_every_call:
                number = workers or scenario.every_step_workers
                every_step = explore_every_step(
                    scenario, variant_name, fork_server, context, number, limit
                )
            checked[variant_name] = CheckedVariant(named_steps=named_steps, every_step=every_step)
    return checked


def explore_every_step(
    scenario: Scenario,
    variant_name: str,
    fork_server: ForkServer,
    context: Context,
    workers: int | None = None,
    limit: int = MOST_SCHEDULES,
) -> Exploration:
    """Run a schedule of each class, with every call as a step.

    If the scenario kills A, kill it after each of its steps too. Stop after `limit` runs.
    """
    stepped = with_every_step(scenario, variant_name)

    def run(schedule: str, choose: Choose, kill_after: int | None) -> Played:
        plan = RunPlan(schedule=schedule, choose=choose, kill_after=kill_after)
        try:
            return play(
                stepped,
                variant_name,
                fork_server=fork_server,
                workers=workers,
                check=context.signals.check,
                plan=plan,
            )
        except InvalidValues:
            # The schedule was possible before.
            raise NotDeterministic(schedule, "all of its steps", "others") from None

    kills = KILL in (scenario.variants[variant_name].strikes or "")
    recordings: list[Recording] = []
    is_complete = True
    try:
        with closing(every_class(run, kills=kills, report_progress=context.progress)) as runs:
            for played in runs:
                if len(recordings) == limit:
                    is_complete = False
                    break
                recordings.append(played.recording)
    except NotDeterministic as error:
        problem = f"on {error.schedule}, it once does {error.expected}, and once {error.found}"
        surprise = f"{scenario.name}, {variant_name} is not deterministic: {problem}"
        raise UnexpectedOutcome(surprises=[surprise]) from None
    # Those with few steps come first: they are the easiest to read.
    in_order = sorted(recordings, key=lambda recording: len(recording.schedule))
    return Exploration(tuple(in_order), is_complete, takes_every_step=True)


class RunWithKill(Protocol):
    """A function that follows a schedule, then chooses, and kills A after so many of its steps."""

    def __call__(self, schedule: str, choose: Choose, kill_after: int | None) -> Played: ...


def every_class(
    run: RunWithKill,
    *,
    kills: bool = False,
    report_progress: Callable[[str], None] = lambda line: None,
) -> Generator[Played, None, None]:
    """Yield a run of each class of schedules. With `kills`, then kill A at each of its steps.

    A that is killed after its second step is a program of its own, with classes of its own. So it
    is explored after none of its steps, after one, and so on, until it ends before it is killed.
    """
    yield from _search(run, None, report_progress)
    if not kills:
        return
    for kill_after in count():
        was_killed = False
        with closing(_search(run, kill_after, report_progress)) as runs:
            for played in runs:
                if _has_struck(played):
                    was_killed = True
                    yield played
        if not was_killed:
            return


def _search(
    run: RunWithKill,
    kill_after: int | None,
    report_progress: Callable[[str], None],
) -> Generator[Played, None, None]:
    """Yield a run of each class, with this number of steps before A is killed."""
    run_with_kill: Run = partial(run, kill_after=kill_after)
    return Search(run_with_kill, report_progress).runs()


def _has_struck(played: Played) -> bool:
    return any(event.outcome == "struck" for event in played.recording.events)


def explore_variant(
    follow: Callable[[str], Played],
    tell: Callable[[str], None] = lambda line: None,
) -> Exploration:
    """Run every schedule, and return the runs in the order of their schedules."""
    recordings = sorted(every_run(follow, tell), key=lambda recording: recording.schedule)
    return Exploration(tuple(recordings))


def every_run(
    follow: Callable[[str], Played],
    tell: Callable[[str], None] = lambda line: None,
) -> Generator[Recording, None, None]:
    """Yield each run once, always in the same order: those with fewer turns come earlier.

    Close the generator if you do not take all runs: this ends its threads.
    """
    turns: list[list[str]] = [[]]
    with ThreadPoolExecutor(os.cpu_count() or 1) as pool:
        while turns:
            batch = turns[:_AT_ONCE]
            turns = turns[_AT_ONCE:]
            schedules = [" ".join(tokens) for tokens in batch]
            for given, played in zip(batch, pool.map(follow, schedules), strict=True):
                yield played.recording
                turns += _turns(len(given), played)
            if len(turns) > _AT_ONCE:
                tell(f"{len(turns)} more schedules, at least.")


def _turns(given: int, played: Played) -> list[list[str]]:
    """Return the schedules that leave this run at a choice which no other run has taken.

    The run was given so many tokens. What can strike within the last one is known only now.
    """
    taken = played.recording.schedule.split()
    schedules = []
    for position in range(max(given - 1, 0), len(taken)):
        for other in played.choices[position]:
            if other == taken[position]:
                continue
            if position >= given or other.startswith(taken[position]):
                schedules.append([*taken[:position], other])
    return schedules
