"""Run a scenario in real processes, along a schedule, and draw who did what when."""

import os
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
    Way,
    find,
    is_right,
    names,
    with_every_step,
)
from ...scratch import fork_server_for
from ...svg import svg as drawn
from ._options import AllOption, NameArgument, chosen, one_by_one, spec_with, ways_of_that
from ._picture import AllShown, Shown, paragraphs

spec = spec_with(
    "lab run lost-config-update",
    'lab run lost-config-update --variant wrong-rename --schedule "A1 B1 B2 A2"',
    "lab run lost-config-update --by-luck --runs 6",
)


THREE = ("lost-config-update", "torn-write", "double-claim")
"""What is shown to a caller who names none."""


@dataclass(frozen=True)
class Lucky:
    """How often it broke without being arranged."""

    scenario: str
    variant: str
    runs: int
    broken: int

    def lines(self) -> list[str]:
        advice = "Luck is a bad teacher: arrange it instead, and it breaks every time."
        if self.broken == 0:
            advice = "This is weak evidence: a schedule that breaks may just not have come up; and only ends were judged."
        found = f"{self.scenario}, {self.variant}: of {counted(self.runs, 'run')} started together {self.broken} broke."
        return paragraphs(f"{found}\n\n{advice} See {PROGRAM} lab check {self.scenario}.")


def show(
    context: Context,
    scenario: Scenario,
    variants: list[str],
    schedule: str | None,
    workers: int | None,
    *,
    every_step: bool = False,
) -> Shown:
    runs = []
    with fork_server_for(scenario.name) as fork_server:
        for variant in variants:
            given = way_of(scenario, variant).shows if schedule is None else schedule
            if (
                schedule is None and is_right(variant) and STORE_VARIABLE in os.environ
            ):  # where a step is a whole verb
                given = ""
            stepped = with_every_step(scenario, variant) if every_step else scenario
            run = play(
                stepped,
                variant,
                given,
                fork_server=fork_server,
                workers=workers,
                check=context.signals.check,
            )
            runs.append(run.recording)
    return Shown(scenario.name, scenario.title, scenario.rule, runs)


def way_of(scenario: Scenario, variant: str) -> Way:
    if variant not in scenario.ways:
        problem, hint = (
            f"{variant!r} is not a way of {scenario.name}",
            f"Its ways are {', '.join(scenario.ways)}.",
        )
        raise InvalidValues(Mistake("--variant", "INVALID_VALUE", problem, variant, hint))
    return scenario.ways[variant]


def command(
    ctx: typer.Context,
    name: NameArgument = None,
    every: AllOption = False,
    variant: Annotated[
        str | None,
        typer.Option(
            autocompletion=ways_of_that,
            help="naive, fixed, or one of the wrong fixes.  [default: naive, then fixed]",
        ),
    ] = None,
    schedule: Annotated[
        str | None, typer.Option(help='Who goes when, such as "A1 B1 A2 B2".')
    ] = None,
    workers: Annotated[int | None, typer.Option(min=1, max=8, help="How many take part.")] = None,
    by_luck: Annotated[
        bool, typer.Option("--by-luck", help="Arrange nothing; count how often it breaks.")
    ] = False,
    runs: Annotated[
        int, typer.Option(min=1, max=10_000, help="With --by-luck: how many times.")
    ] = 60,
    every_step: Annotated[
        bool, typer.Option("--every-step", help="Take every call as a step, as lab check does.")
    ] = False,
    svg: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write the last timeline as a picture.")
    ] = None,
) -> Shown | AllShown | Lucky:
    """Watch a race condition happen in real processes.

    Without --variant: first the naive way, on a schedule that breaks it, then the right way on the same or a like one.
    Without a name: three of them, in short.
    """
    is_one = bool(schedule or variant or workers or by_luck or svg)
    if every and is_one:
        raise InvalidValues(
            Mistake("--all", "INVALID_VALUE", "--all takes no other option of this command")
        )
    wanted = chosen(name, every, [] if is_one else [each for each in THREE if each in names()])
    if by_luck:
        scenario, variant = find(wanted[0]), variant or NAIVE
        ctx.obj.progress(f"{scenario.name}, {variant}: {counted(runs, 'run')} by luck")
        letters = LETTERS[: workers or scenario.workers]
        broken = try_luck(scenario, way_of(scenario, variant), runs, letters, ctx.obj.signals.check)
        return Lucky(scenario.name, variant, runs, broken)
    variants = [variant] if variant else [NAIVE, FIXED] if schedule is None else [NAIVE]
    if every_step and schedule is None:
        problem = "--every-step needs --schedule"
        raise InvalidValues(Mistake("--every-step", "INVALID_VALUE", problem))
    shown = []
    for each in one_by_one(ctx.obj, wanted):
        shown.append(show(ctx.obj, find(each), variants, schedule, workers, every_step=every_step))
    if svg is not None:
        replace(svg.resolve(), drawn(shown[0].runs).encode())
    outcome = shown[0] if name else AllShown(shown)
    is_arranged = schedule is None and workers is None
    judged = [run for each in shown for run in each.runs if is_arranged or is_right(run.variant)]
    if found := [surprise for run in judged if (surprise := Exploration((run,)).surprise)]:
        raise UnexpectedOutcome(surprises=found, data=outcome)
    return outcome
