"""Run every schedule of a variant, in real processes and on real files.

There are two kinds of exploration:

* `explore_variant` runs every schedule of the steps that a scenario names. Each run follows a
  schedule to its end, and records the other tokens that were possible at each position. Each of
  these tokens begins another schedule. The explorer and the pages need all of these runs.
* `explore_every_step` takes every call as a step. It leaves out schedules that make no difference,
  see reduction.py.

Both run the program itself. There is no model of the program that could differ from it.
"""

import os
from collections import Counter
from collections.abc import Callable, Generator, Iterator, Sequence
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
from .recording import PlayedRun, Recording
from .reduction import Choose, NotDeterministic, Run, Search
from .scenario import KILL, Scenario, is_right, with_every_step
from .scratch import fork_server_for

_BATCH_SIZE = 100
"""The number of schedules that run as one batch. Progress is reported after each batch."""
MOST_SCHEDULES = 50
"""The default limit for the schedules in which every call is a step."""

Progress = Callable[[str], None]
"""A function that reports a line of progress."""


def ignore_progress(_line: str) -> None:
    """Report nothing."""


@dataclass(frozen=True)
class Exploration:
    """The runs of one variant."""

    recordings: tuple[Recording, ...]
    """One recording for each schedule, in the order of the schedules."""
    is_complete: bool = True
    """Whether all schedules were run."""
    takes_every_step: bool = False
    """Whether every call was a step."""

    @property
    def broken(self) -> list[Recording]:
        """The runs that broke the invariant."""
        return [recording for recording in self.recordings if recording.is_broken]

    @property
    def reasons(self) -> dict[str, int]:
        """The number of schedules with each problem. The most frequent problem comes first."""
        return count_problems(self.recordings)

    @property
    def surprise(self) -> str | None:
        """A sentence about an unexpected result, or None if the result is as expected.

        A right variant must hold on every schedule, and a wrong one must break on at least one.
        """
        broken = self.broken
        example = self.recordings[0]
        must_hold = is_right(example.variant)
        holds = not broken
        if holds == must_hold:
            return None
        schedules = counted(len(self.recordings), "schedule")
        if self.takes_every_step:
            schedules = f"{schedules} of every step"
        result = f"{example.scenario}, {example.variant} breaks on {len(broken)} of {schedules}"
        if not broken:
            return result
        first = broken[0]
        details = f"such as {first.schedule}: {first.reason}".rstrip(".")
        return f"{result} although it is fixed, {details}"


def count_problems(recordings: Sequence[Recording]) -> dict[str, int]:
    """Return the number of runs with each problem. The most frequent problem comes first."""
    counts: Counter[str] = Counter()
    for recording in recordings:
        if recording.reason is not None:
            counts[recording.reason] += 1
        counts.update(recording.also)
    by_frequency = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    return dict(by_frequency)


@dataclass(frozen=True, kw_only=True)
class CheckedVariant:
    """The explorations of one variant."""

    named_steps: Exploration
    every_step: Exploration | None
    """None if only the named steps are explored: for wrong variants, and for coroutines."""

    @property
    def surprises(self) -> list[str]:
        """A sentence for each exploration with an unexpected result."""
        explorations = [self.named_steps]
        if self.every_step is not None:
            explorations.append(self.every_step)
        surprises = [exploration.surprise for exploration in explorations]
        return [surprise for surprise in surprises if surprise is not None]


def explore(
    context: Context,
    scenario: Scenario,
    fork_server: ForkServer,
    worker_count: int | None = None,
) -> dict[str, Exploration]:
    """Run every schedule of the named steps. Return the explorations by the variants' names.

    `worker_count` replaces the number of workers of the scenario.
    """
    explorations = {}
    for variant_name in scenario.variants:
        run_schedule = partial(
            play,
            scenario,
            variant_name,
            fork_server=fork_server,
            worker_count=worker_count,
            check_signals=context.signals.check,
        )
        explorations[variant_name] = explore_variant(run_schedule, context.progress)
    return explorations


def check_variants(
    context: Context,
    scenario: Scenario,
    worker_count: int | None = None,
    limit: int = MOST_SCHEDULES,
) -> dict[str, CheckedVariant]:
    """Explore each variant of a scenario. Return the results by the variants' names.

    For every variant, run all schedules of the steps that the scenario names. For a right variant,
    also run schedules in which every call that uses files is a step, but at most `limit` of them.
    """
    checked = {}
    with fork_server_for(scenario.name) as fork_server:
        explorations = explore(context, scenario, fork_server, worker_count)
        for variant_name, named_steps in explorations.items():
            every_step = None
            # A wrong variant has to break on its named steps. More schedules would show no more.
            if is_right(variant_name) and scenario.checks_every_call:
                every_step = explore_every_step(
                    scenario,
                    variant_name,
                    fork_server,
                    context,
                    worker_count=worker_count or scenario.every_step_workers,
                    limit=limit,
                )
            checked[variant_name] = CheckedVariant(named_steps=named_steps, every_step=every_step)
    return checked


def explore_every_step(
    scenario: Scenario,
    variant_name: str,
    fork_server: ForkServer,
    context: Context,
    worker_count: int | None = None,
    limit: int = MOST_SCHEDULES,
) -> Exploration:
    """Run one schedule of each class, with every call as a step, and return the runs.

    If the scenario kills A, also kill A after each of its steps. Stop after `limit` runs. Raise
    UnexpectedOutcome if the variant is not deterministic.
    """
    stepped_scenario = with_every_step(scenario, variant_name)

    def run(schedule: str, choose: Choose, kill_after: int | None) -> PlayedRun:
        """Run the variant once. Raise NotDeterministic if the schedule is not possible."""
        plan = RunPlan(schedule=schedule, choose=choose, kill_after=kill_after)
        try:
            return play(
                stepped_scenario,
                variant_name,
                fork_server=fork_server,
                worker_count=worker_count,
                check_signals=context.signals.check,
                plan=plan,
            )
        except InvalidValues:
            # An earlier run found these steps possible. If they no longer are, the variant does
            # something else in each run.
            raise NotDeterministic(schedule, "all of its steps", "others") from None

    has_kills = KILL in (scenario.variants[variant_name].faults or "")
    try:
        with closing(run_every_class(run, has_kills, context.progress)) as runs:
            return _collect_runs(runs, limit)
    except NotDeterministic as error:
        problem = f"on {error.schedule}, it once does {error.expected}, and once {error.found}"
        surprise = f"{scenario.name}, {variant_name} is not deterministic: {problem}"
        raise UnexpectedOutcome(surprises=[surprise]) from None


def _collect_runs(runs: Iterator[PlayedRun], limit: int) -> Exploration:
    """Return an exploration of the first `limit` runs. It is complete if there are no others."""
    recordings: list[Recording] = []
    is_complete = True
    for played in runs:
        if len(recordings) == limit:
            is_complete = False
            break
        recordings.append(played.recording)
    # Schedules with few steps come first: they are the easiest to read.
    recordings.sort(key=lambda recording: len(recording.schedule))
    return Exploration(tuple(recordings), is_complete, takes_every_step=True)


class RunWithKill(Protocol):
    """A function that runs a schedule, and calls `choose` for each token after its end.

    It kills A after `kill_after` steps of A, or not at all if this is None.
    """

    def __call__(self, schedule: str, choose: Choose, kill_after: int | None) -> PlayedRun: ...


def run_every_class(
    run: RunWithKill,
    has_kills: bool = False,
    report_progress: Progress = ignore_progress,
) -> Generator[PlayedRun, None, None]:
    """Yield one run of each class of schedules. With `has_kills`, also yield runs that kill A.

    A program that is killed after its second step is another program, with other classes of
    schedules. So search again for each number of steps before the kill, until A exits before the
    kill.
    """
    yield from _search(run, None, report_progress)
    if not has_kills:
        return
    for kill_after in count():
        was_killed = yield from _runs_with_kill(run, kill_after, report_progress)
        if not was_killed:
            # A always exits before it has taken so many steps, so there are no later kills.
            return


def _runs_with_kill(
    run: RunWithKill, kill_after: int, report_progress: Progress
) -> Generator[PlayedRun, None, bool]:
    """Yield one run of each class in which A is killed after this number of steps.

    Return whether there was such a run. This is the value of `yield from`.
    """
    was_killed = False
    with closing(_search(run, kill_after, report_progress)) as runs:
        for played in runs:
            # In the other runs, A exits before the kill. They repeat the runs without a kill.
            if played.recording.has_fault:
                was_killed = True
                yield played
    return was_killed


def _search(
    run: RunWithKill, kill_after: int | None, report_progress: Progress
) -> Generator[PlayedRun, None, None]:
    """Yield one run of each class of schedules, see reduction.py.

    Each run kills A after `kill_after` steps of A, or not at all if this is None.
    """
    run_schedule: Run = partial(run, kill_after=kill_after)
    return Search(run_schedule, report_progress).runs()


def explore_variant(
    run_schedule: Callable[[str], PlayedRun], report_progress: Progress = ignore_progress
) -> Exploration:
    """Run every schedule, and return the runs in the order of their schedules."""
    recordings = list(run_every_schedule(run_schedule, report_progress))
    recordings.sort(key=lambda recording: recording.schedule)
    return Exploration(tuple(recordings))


def run_every_schedule(
    run_schedule: Callable[[str], PlayedRun], report_progress: Progress = ignore_progress
) -> Generator[Recording, None, None]:
    """Yield one run of each schedule, always in the same order.

    `run_schedule` runs the beginning of a schedule, and then the workers to their ends. Close the
    generator if you do not take all runs: this ends its threads.
    """
    pending: list[list[str]] = [[]]
    with ThreadPoolExecutor(os.cpu_count() or 1) as pool:
        while pending:
            batch = pending[:_BATCH_SIZE]
            pending = pending[_BATCH_SIZE:]
            schedules = [" ".join(tokens) for tokens in batch]
            runs = pool.map(run_schedule, schedules)
            for requested_tokens, played in zip(batch, runs, strict=True):
                yield played.recording
                pending += _new_schedules(len(requested_tokens), played)
            if len(pending) > _BATCH_SIZE:
                report_progress(f"{len(pending)} more schedules, at least.")


def _new_schedules(requested_tokens: int, played: PlayedRun) -> list[list[str]]:
    """Return the beginnings of schedules that differ from this run in their last token.

    The first `requested_tokens` tokens of the run were requested. Other runs cover their
    alternatives, except for faults within the last of these steps: only this run shows which are
    possible.
    """
    taken = played.recording.schedule.split()
    last_requested = max(requested_tokens - 1, 0)
    schedules = []
    for position in range(last_requested, len(taken)):
        taken_token = taken[position]
        was_requested = position < requested_tokens
        for token in played.choices[position]:
            if token == taken_token:
                continue
            # A fault within the step `A2` has a token such as `A2!1`.
            is_fault_within_step = token.startswith(taken_token)
            if was_requested and not is_fault_within_step:
                continue
            schedules.append([*taken[:position], token])
    return schedules
