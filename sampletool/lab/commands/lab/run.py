"""Run a scenario in real processes along a schedule, and draw its timeline."""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from ....kit.context import Context
from ....kit.contract.errors import InvalidValues, Mistake
from ....kit.contract.text import counted
from ....kit.program import PROGRAM
from ....kit.safety.atomic_file import replace
from ...errors import UnexpectedOutcome
from ...explore import Exploration
from ...luck import try_luck
from ...play import play
from ...scenario import (
    FIXED,
    LETTERS,
    NAIVE,
    STORE_VARIABLE,
    Scenario,
    Variant,
    find_scenario,
    is_right,
    scenario_names,
    with_every_step,
)
from ...scratch import fork_server_for
from ...svg import svg as draw_svg
from ._options import (
    AllOption,
    NameArgument,
    complete_variant,
    select_scenarios,
    spec_with,
    with_progress,
)
from ._picture import AllScenarioRuns, ScenarioRuns, wrap_paragraphs

spec = spec_with(
    "lab run lost-config-update",
    'lab run lost-config-update --variant wrong-rename --schedule "A1 B1 B2 A2"',
    "lab run lost-config-update --by-luck --runs 6",
)


DEFAULT_SCENARIOS = ("lost-config-update", "torn-write", "double-claim")
"""The scenarios that run if the command line names none."""


@dataclass(frozen=True)
class LuckResult:
    """The number of runs of a variant that broke without a schedule."""

    scenario: str
    variant: str
    runs: int
    broken: int

    def lines(self) -> list[str]:
        """Return the count as text, with a hint about how reliable it is."""
        runs = counted(self.runs, "run")
        result = f"{self.scenario}, {self.variant}: of {runs} started together {self.broken} broke."
        hint = "Luck is a bad teacher: arrange it instead, and it breaks every time."
        if self.broken == 0:
            hint = (
                "This is weak evidence: a schedule that breaks may just not have come up; and "
                "only ends were judged."
            )
        next_command = f"See {PROGRAM} lab check {self.scenario}."
        return [*wrap_paragraphs(result), *wrap_paragraphs(f"{hint} {next_command}")]


@dataclass(frozen=True, kw_only=True)
class _Request:
    """The options about how the scenarios run. None if an option was not given."""

    variant: str | None
    schedule: str | None
    workers: int | None
    every_step: bool

    def variant_names(self) -> list[str]:
        """Return the names of the variants to run."""
        if self.variant is not None:
            return [self.variant]
        if self.schedule is not None:
            return [NAIVE]
        return [NAIVE, FIXED]

    def schedule_of(self, variant: Variant, variant_name: str) -> str:
        """Return the schedule to run: the requested one, or the default one of the variant.

        After its end, or without one, the workers run to their ends one after the other.
        """
        if self.schedule is not None:
            return self.schedule
        is_on_server = STORE_VARIABLE in os.environ
        if is_on_server and is_right(variant_name):
            # The default schedule of a fixed variant has the steps of a transaction in SQLite, such
            # as A1 to A4. On a server, the transaction is one step, so there is no A2.
            return ""
        return variant.schedule

    def has_expected_result(self, variant_name: str) -> bool:
        """Return whether it is known in advance if this variant breaks.

        With a schedule or a number of workers from the user, a wrong variant may also hold.
        """
        is_default_run = self.schedule is None and self.workers is None
        return is_right(variant_name) or is_default_run


def run_variants(context: Context, scenario: Scenario, request: _Request) -> ScenarioRuns:
    """Run the requested variants of a scenario, and return the recorded runs."""
    runs = []
    with fork_server_for(scenario.name) as fork_server:
        for variant_name in request.variant_names():
            variant = find_variant(scenario, variant_name)
            scenario_to_play = scenario
            if request.every_step:
                scenario_to_play = with_every_step(scenario, variant_name)
            played = play(
                scenario_to_play,
                variant_name,
                request.schedule_of(variant, variant_name),
                fork_server=fork_server,
                worker_count=request.workers,
                check_signals=context.signals.check,
            )
            runs.append(played.recording)
    return ScenarioRuns(scenario.name, scenario.title, scenario.rule, runs)


def find_variant(scenario: Scenario, variant_name: str) -> Variant:
    """Return the variant with this name. Raise InvalidValues if the scenario has none."""
    if variant_name not in scenario.variants:
        problem = f"{variant_name!r} is not a variant of {scenario.name}"
        hint = f"Its variants are {', '.join(scenario.variants)}."
        raise InvalidValues(Mistake("--variant", "INVALID_VALUE", problem, variant_name, hint))
    return scenario.variants[variant_name]


def _count_broken_runs(
    context: Context, name: str, variant_name: str, runs: int, worker_count: int | None
) -> LuckResult:
    """Run a variant without a schedule, and count the runs that break."""
    scenario = find_scenario(name)
    variant = find_variant(scenario, variant_name)
    worker_names = LETTERS[: worker_count or scenario.workers]
    context.progress(f"{name}, {variant_name}: {counted(runs, 'run')} by luck")
    broken = try_luck(scenario, variant, runs, worker_names, context.signals.check)
    return LuckResult(scenario=name, variant=variant_name, runs=runs, broken=broken)


def _surprises(all_runs: list[ScenarioRuns], request: _Request) -> list[str]:
    """Return a sentence for each run with an unexpected result."""
    surprises = []
    for scenario_runs in all_runs:
        for run in scenario_runs.runs:
            if not request.has_expected_result(run.variant):
                continue
            surprise = Exploration((run,)).surprise
            if surprise is not None:
                surprises.append(surprise)
    return surprises


def _default_scenarios() -> list[str]:
    """Return the existing default scenarios. A project may have removed some of them."""
    return [name for name in DEFAULT_SCENARIOS if name in scenario_names()]


def _run_all(
    context: Context,
    names: Sequence[str],
    request: _Request,
    svg_path: Path | None,
    *,
    in_full: bool,
) -> ScenarioRuns | AllScenarioRuns:
    """Run scenarios. Raise UnexpectedOutcome if a run is not as expected.

    With `in_full`, return the runs of the first scenario in full, and not a summary of all. Draw
    the first scenario into the file at `svg_path`, if there is one.
    """
    all_runs = []
    for name in with_progress(context, names):
        all_runs.append(run_variants(context, find_scenario(name), request))
    if svg_path is not None:
        replace(svg_path.resolve(), draw_svg(all_runs[0].runs).encode())
    result: ScenarioRuns | AllScenarioRuns = AllScenarioRuns(all_runs)
    if in_full:
        result = all_runs[0]
    surprises = _surprises(all_runs, request)
    if surprises:
        raise UnexpectedOutcome(surprises=surprises, data=result)
    return result


def _check_combination(is_wrong: dict[str, bool]) -> None:
    """Raise InvalidValues with all wrong combinations of options.

    `is_wrong` says whether the command line has each of them. Its keys are the problems.
    """
    mistakes = []
    for problem, is_there in is_wrong.items():
        if is_there:
            option, _, _ = problem.partition(" ")
            mistakes.append(Mistake(option, "INVALID_VALUE", problem))
    if mistakes:
        raise InvalidValues(*mistakes)


def command(
    ctx: typer.Context,
    name: NameArgument = None,
    every: AllOption = False,
    variant: Annotated[
        str | None,
        typer.Option(
            autocompletion=complete_variant,
            help="Run this variant: naive, fixed, or a wrong fix.  [default: naive, then fixed]",
        ),
    ] = None,
    schedule: Annotated[
        str | None,
        typer.Option(
            help=(
                'Run the steps in this order, for example "A1 B1 A2 B2". Cannot be used with '
                "--by-luck."
            )
        ),
    ] = None,
    workers: Annotated[
        int | None, typer.Option(min=1, max=8, help="Run this many workers.")
    ] = None,
    by_luck: Annotated[
        bool,
        typer.Option(
            "--by-luck",
            help="Do not control the order of the steps. Run often, and count what breaks.",
        ),
    ] = False,
    runs: Annotated[
        int, typer.Option(min=1, max=10_000, help="Run this many times. Requires --by-luck.")
    ] = 60,
    every_step: Annotated[
        bool,
        typer.Option(
            "--every-step",
            help=(
                "Stop before every call that uses files, not only at the named steps. "
                "Requires --schedule."
            ),
        ),
    ] = False,
    svg: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help=("Write the timeline to FILE as an SVG picture. Cannot be used with --by-luck."),
        ),
    ] = None,
) -> ScenarioRuns | AllScenarioRuns | LuckResult:
    """Watch a race condition happen in real processes.

    Without --variant, this runs the naive variant on a schedule that breaks it, then the fixed
    variant on a similar schedule. Without a name, it runs three races and prints a summary.
    """
    needs_one_scenario = any([schedule, variant, workers, by_luck, svg])
    source_of_runs = ctx.get_parameter_source("runs")
    has_runs = source_of_runs is not None and source_of_runs.name != "DEFAULT"
    _check_combination(
        {
            "--all takes no other option of this command": every and needs_one_scenario,
            "--every-step needs --schedule": every_step and schedule is None,
            "--runs needs --by-luck": has_runs and not by_luck,
            "--schedule cannot be used with --by-luck": by_luck and schedule is not None,
            "--svg cannot be used with --by-luck": by_luck and svg is not None,
        }
    )
    default_names: Sequence[str] = ()
    if not needs_one_scenario:
        default_names = _default_scenarios()
    names = select_scenarios(name, every, default_names)
    if by_luck:
        return _count_broken_runs(ctx.obj, names[0], variant or NAIVE, runs, workers)
    request = _Request(variant=variant, schedule=schedule, workers=workers, every_step=every_step)
    return _run_all(ctx.obj, names, request, svg, in_full=name is not None)
