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
from ...scenario import STRIKES, Scenario, find, is_right
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
    """The failures of the first worker. For each of its steps, there are schedules with each."""
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
        strikes = "no kills"
        if self.strikes:
            strikes = f"{' or '.join(self.strikes)} at each step of A"
        return f"{counted(self.workers, 'worker')}, {counted(self.rounds, 'round')} each, {strikes}"

    def _variant_lines(self, variant: VariantReport, width: int) -> list[str]:
        """Return the result for one variant as text."""
        lines = [f"  {variant.variant}: {_count(variant.named_steps)}"]
        lines += self._example_lines(variant.variant, variant.named_steps, width)
        if variant.every_step is not None:
            workers = ""
            if variant.every_step_workers != self.workers:
                workers = f" and {variant.every_step_workers} workers"
            count = _count(variant.every_step)
            result = f"with every call as a step{workers}: {count}"
            lines += between_words(result, width, "    ", "      ")
            lines += self._example_lines(variant.variant, variant.every_step, width, "--every-step")
        return lines

    def _example_lines(
        self, variant: str, explored: Explored, width: int, option: str = ""
    ) -> list[str]:
        """Return the problems as text, with a command that shows the first broken schedule."""
        lines = []
        for reason, number in explored.reasons.items():
            lines += between_words(f"{number} x {reason}", width, "    ", "      ")
        if explored.example is not None:
            # Three lines: the name of the program may be longer in a project of its own.
            lines.append(f"    for example: {PROGRAM} lab run {self.scenario} \\")
            lines.append(f"      --variant {variant} {option}".rstrip() + " \\")
            lines.append(f'      --schedule "{explored.example}"')
        return lines


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


def _count(explored: Explored) -> str:
    """Return how many schedules were run, and how many of them are broken, as text."""
    more = "" if explored.is_complete else " (and there are more, which were not run)"
    return f"{counted(explored.schedules, 'schedule')}{more}: {explored.broken} broken"


def check_scenario(context: Context, name: str, workers: int | None, limit: int) -> Check:
    """Explore all variants of a scenario, and return the verdict."""
    scenario = find(name)
    checked = check_variants(context, scenario, workers, limit)
    surprises = []
    for found in checked.values():
        surprises += found.surprises
    right_first = sorted(checked, key=lambda variant_name: not is_right(variant_name))
    return Check(
        scenario=name,
        is_as_expected=not surprises,
        surprises=surprises,
        workers=workers or scenario.workers,
        rounds=1,
        strikes=[STRIKES[strike] for strike in scenario.strikes],
        not_explored=_not_explored(scenario),
        variants=[_report_on(variant_name, checked[variant_name]) for variant_name in right_first],
    )


def _not_explored(scenario: Scenario) -> list[str]:
    """Return the kinds of schedules of this scenario that are not explored."""
    more_workers, shared_memory, other_machines = NOT_EXPLORED
    if scenario.threads:
        return ["switches inside library functions and C code", more_workers]
    if scenario.world is None:
        calls = "steps inside of calls of C code, such as SQLite"
        if not scenario.steps_every_call:
            calls = "calls between the named steps"
    else:
        calls = "other event loops"
    missing = [STRIKES[strike] for strike in STRIKES if strike not in scenario.strikes]
    return [calls, " and ".join(missing), more_workers, shared_memory, other_machines]


def _report_on(variant_name: str, checked: CheckedVariant) -> VariantReport:
    """Return the output for one variant."""
    every_step = None
    workers = None
    if checked.every_step is not None:
        every_step = _explored(checked.every_step)
        workers = len(checked.every_step.recordings[0].workers)
    return VariantReport(
        variant=variant_name,
        named_steps=_explored(checked.named_steps),
        every_step=every_step,
        every_step_workers=workers,
    )


def _explored(exploration: Exploration) -> Explored:
    """Return the output for one exploration."""
    example = exploration.bad[0].schedule if exploration.bad else None
    return Explored(
        schedules=len(exploration.recordings),
        broken=len(exploration.bad),
        is_complete=exploration.is_complete,
        reasons=exploration.reasons,
        example=example,
    )


def run_check(
    context: Context,
    name: str | None,
    every: bool,
    workers: int | None,
    limit: int,
) -> Check | Checks:
    """Check one scenario, or all. Raise UnexpectedOutcome if one of them is not as expected."""
    checks = []
    for each in with_progress(context, select_scenarios(name, every)):
        checks.append(check_scenario(context, each, workers, limit))
    outcome: Check | Checks = Checks(checks) if every else checks[0]
    surprises = []
    for check in checks:
        surprises += check.surprises
    if surprises:
        raise UnexpectedOutcome(surprises=surprises, data=outcome)
    return outcome


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
