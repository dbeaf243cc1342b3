"""Check a scenario: fixed variants must hold on every schedule explored, the others must not."""

from dataclasses import dataclass
from typing import Annotated

import typer

from ....kit.context import Context
from ....kit.contract.text import between_words, counted
from ....kit.program import PROGRAM
from ...draw import terminal_width
from ...errors import UnexpectedOutcome
from ...explore import MOST_SCHEDULES, CheckedVariant, Exploration, check_variants
from ...scenario import FAULTS, Scenario, find_scenario, is_right
from ._options import AllOption, NameArgument, select_scenarios, spec_with, with_progress

spec = spec_with("lab check planted-link")

NOT_EXPLORED = (
    "more workers than these, and more rounds",
    "threads, and memory that processes share",
    "other machines, and file systems that behave in another way",
)
"""The schedules that `lab check` never explores. The output lists them."""


@dataclass(frozen=True)
class Explored:
    """The result for the schedules of one kind: of the named steps, or of every call."""

    schedules: int
    broken: int
    is_complete: bool
    """Whether there are no more schedules of this kind."""
    reasons: dict[str, int]
    example: str | None
    """The first schedule that broke the invariant."""


@dataclass(frozen=True)
class VariantReport:
    """The explored schedules of one variant."""

    variant: str
    named_steps: Explored
    """Every order of the steps that the scenario names."""
    every_step: Explored | None
    """Orders of all calls that use files. Orders that make no difference are left out."""
    every_step_workers: int | None
    """The number of workers in `every_step`. None without `every_step`."""


@dataclass(frozen=True)
class Check:
    """The verdict about a scenario, and the bound within which it was explored."""

    scenario: str
    is_as_expected: bool
    """Whether the right variants held on every schedule explored, and each wrong one broke."""
    surprises: list[str]
    workers: int
    rounds: int
    """The number of times that each worker does its work."""
    strikes: list[str]
    """The faults that hit worker A. For each of its steps, there are schedules with each fault."""
    not_explored: list[str]
    variants: list[VariantReport]

    def lines(self) -> list[str]:
        """Return the verdict as text, wrapped to the width of the terminal."""
        width = terminal_width()
        if self.is_as_expected:
            verdict = "as expected: fixed held on every schedule explored, the others broke"
        else:
            verdict = "NOT AS EXPECTED"
        headline = f"{self.scenario}: {verdict}"
        explored = f"Explored: {self._bound()}."
        not_explored = f"Not explored: {'; '.join(self.not_explored)}."

        # The last two arguments are the indents of the first line and of the others.
        lines = between_words(headline, width, "", "  ")
        lines += between_words(explored, width, "  ", "    ")
        for variant in self.variants:
            lines += self._variant_lines(variant, width)
        lines += between_words(not_explored, width, "  ", "    ")
        return lines

    def _bound(self) -> str:
        """Return the bound of the exploration as part of a sentence."""
        faults = "no kills"
        if self.strikes:
            faults = f"{' or '.join(self.strikes)} at each step of A"
        workers = counted(self.workers, "worker")
        rounds = counted(self.rounds, "round")
        return f"{workers}, {rounds} each, {faults}"

    def _variant_lines(self, variant: VariantReport, width: int) -> list[str]:
        """Return the result for one variant as text."""
        lines = [f"  {variant.variant}: {_describe_counts(variant.named_steps)}"]
        lines += self._problem_lines(variant.named_steps, width)
        lines += self._example_lines(variant.variant, variant.named_steps)
        if variant.every_step is None:
            return lines
        workers = ""
        if variant.every_step_workers != self.workers:
            workers = f" and {variant.every_step_workers} workers"
        counts = _describe_counts(variant.every_step)
        result = f"with every call as a step{workers}: {counts}"
        lines += between_words(result, width, "    ", "      ")
        lines += self._problem_lines(variant.every_step, width)
        lines += self._example_lines(variant.variant, variant.every_step, "--every-step")
        return lines

    def _problem_lines(self, explored: Explored, width: int) -> list[str]:
        """Return each problem as text, with the number of schedules that have it."""
        lines = []
        for problem, number in explored.reasons.items():
            lines += between_words(f"{number} x {problem}", width, "    ", "      ")
        return lines

    def _example_lines(self, variant: str, explored: Explored, option: str = "") -> list[str]:
        """Return a command that shows the first broken schedule, or no lines if none is broken.

        `option` is an option that the command needs besides the schedule.
        """
        if explored.example is None:
            return []
        # Three lines: the name of the program may be longer in a project of its own.
        return [
            f"    for example: {PROGRAM} lab run {self.scenario} \\",
            f"      --variant {variant} {option}".rstrip() + " \\",
            f'      --schedule "{explored.example}"',
        ]


@dataclass(frozen=True)
class Checks:
    """The verdicts about several scenarios."""

    checks: list[Check]

    def lines(self) -> list[str]:
        """Return the verdicts as text."""
        lines = []
        for check in self.checks:
            lines += check.lines()
        return lines


def _describe_counts(explored: Explored) -> str:
    """Return how many schedules were run, and how many of them are broken, as text."""
    more = "" if explored.is_complete else " (and there are more, which were not run)"
    return f"{counted(explored.schedules, 'schedule')}{more}: {explored.broken} broken"


def check_scenario(context: Context, name: str, worker_count: int | None, limit: int) -> Check:
    """Explore all variants of a scenario, and return the verdict.

    `worker_count` replaces the number of workers of the scenario. `limit` is the maximum number of
    schedules in which every call is a step.
    """
    scenario = find_scenario(name)
    checked_variants = check_variants(context, scenario, worker_count, limit)
    surprises = []
    for checked in checked_variants.values():
        surprises += checked.surprises
    right_first = sorted(checked_variants, key=lambda variant_name: not is_right(variant_name))
    reports = [_report_on(variant, checked_variants[variant]) for variant in right_first]
    return Check(
        scenario=name,
        is_as_expected=not surprises,
        surprises=surprises,
        workers=worker_count or scenario.workers,
        rounds=1,
        strikes=[FAULTS[sign] for sign in scenario.faults],
        not_explored=_not_explored(scenario),
        variants=reports,
    )


def _not_explored(scenario: Scenario) -> list[str]:
    """Return the kinds of schedules of this scenario that are not explored."""
    more_workers, shared_memory, other_machines = NOT_EXPLORED
    if scenario.threads:
        return ["switches inside library functions and C code", more_workers]
    calls = "steps inside of calls of C code, such as SQLite"
    if scenario.create_shared_memory is not None:
        calls = "other event loops"
    elif not scenario.checks_every_call:
        calls = "calls between the named steps"
    other_faults = [name for sign, name in FAULTS.items() if sign not in scenario.faults]
    return [calls, " and ".join(other_faults), more_workers, shared_memory, other_machines]


def _report_on(variant_name: str, checked: CheckedVariant) -> VariantReport:
    """Return the output for one variant."""
    every_step = None
    every_step_workers = None
    if checked.every_step is not None:
        every_step = _describe_exploration(checked.every_step)
        # All runs of an exploration have the same workers.
        any_run = checked.every_step.recordings[0]
        every_step_workers = len(any_run.workers)
    return VariantReport(
        variant=variant_name,
        named_steps=_describe_exploration(checked.named_steps),
        every_step=every_step,
        every_step_workers=every_step_workers,
    )


def _describe_exploration(exploration: Exploration) -> Explored:
    """Return the output for one exploration."""
    example = None
    if exploration.broken:
        example = exploration.broken[0].schedule
    return Explored(
        schedules=len(exploration.recordings),
        broken=len(exploration.broken),
        is_complete=exploration.is_complete,
        reasons=exploration.reasons,
        example=example,
    )


def run_check(
    context: Context,
    name: str | None,
    every: bool,
    worker_count: int | None,
    limit: int,
) -> Check | Checks:
    """Check one scenario, or all. Raise UnexpectedOutcome if one of them is not as expected."""
    checks = []
    for selected_name in with_progress(context, select_scenarios(name, every)):
        checks.append(check_scenario(context, selected_name, worker_count, limit))
    result: Check | Checks = checks[0]
    if every:
        result = Checks(checks)
    surprises = []
    for check in checks:
        surprises += check.surprises
    if surprises:
        raise UnexpectedOutcome(surprises=surprises, data=result)
    return result


WorkersOption = Annotated[
    int | None, typer.Option(min=2, max=3, help="Run this many processes at the same time.")
]

LimitOption = Annotated[
    int,
    typer.Option(
        min=1,
        max=10_000,
        help="Run at most N orders in which every call counts as a step.",
        metavar="N",
    ),
]


def command(
    ctx: typer.Context,
    name: NameArgument = None,
    every: AllOption = False,
    workers: WorkersOption = None,
    limit: LimitOption = MOST_SCHEDULES,
) -> Check | Checks:
    """Check that the fix of a race condition holds, and that the bug breaks.

    This runs each variant of the race in many orders of its steps. The fixed variants must never
    break, and each naive or wrong variant must break at least once. Otherwise, the check could not
    find such a mistake.

    The output says how many orders were run, and what was not tried. So a success is evidence, but
    not a proof.
    """
    return run_check(ctx.obj, name, every, workers, limit)
