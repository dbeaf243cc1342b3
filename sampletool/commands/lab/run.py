"""Run a scenario in real processes, along a schedule, and draw who did what when."""

import textwrap
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sampletool.contract.errors import InvalidValues, Mistake
from sampletool.contract.exit_status import ExitStatus
from sampletool.contract.promise import Promise
from sampletool.lab.recording import Recording
from sampletool.wiring import Wiring

if TYPE_CHECKING:
    from sampletool.lab.draw import Line

promise = Promise(
    effect="scratch",
    ends_with=(ExitStatus.PARTIAL, ExitStatus.PERMISSION, ExitStatus.NOT_FOUND),
    examples=(
        "tool lab run lost-config-update",
        'tool lab run lost-config-update --variant wrong-rename --schedule "A1 B1 B2 A2"',
        "tool lab run lost-config-update --by-luck --runs 60",
        "tool lab run --all",
    ),
)

_WIDTH = 100


@dataclass(frozen=True)
class Shown:
    """One scenario, as it was run."""

    scenario: str
    title: str
    rule: str
    runs: list[Recording]

    def lines(self) -> list[str]:
        from sampletool.lab.draw import plain

        return plain(self.picture())

    def painted_lines(self) -> list[str]:
        from sampletool.lab.draw import painted

        return painted(self.picture())

    def picture(self) -> "list[Line]":
        from sampletool.lab.draw import timeline
        from sampletool.lab.scenario import FIXED, find, module_of

        scenario = find(self.scenario)
        lines: list[Line] = [[(f"{self.scenario}: {self.title}", "bold")], []]
        lines += _paragraph(module_of(self.scenario).__doc__)
        for run in self.runs:
            way = scenario.ways[run.variant]
            lines += [[], [(f"{run.variant}: ", "bold"), (way.says, "")], []]
            lines += timeline(run)
            verdict = ("BROKEN", "bad") if run.is_broken else ("HOLDS", "good")
            shown = run.schedule == _of(way.shows) or run.schedule.startswith(f"{_of(way.shows)} ")
            because = f" Why: {way.because}" if shown else ""
            lines += [[], [("  ", ""), verdict, (f"  schedule {run.schedule}", "")]]
            lines += _paragraph(f"{run.reason or scenario.good}{because}", indent="  ")
        lines += [[], [("Rule: ", "bold"), (self.rule, "")]]
        lines += _paragraph(f"It happened: {scenario.happened[0]} {scenario.happened[1]}")
        others = [name for name in scenario.ways if name not in {run.variant for run in self.runs} | {FIXED}]
        for other in others:
            lines += [[("Tempting, and wrong: ", "bold"), (scenario.ways[other].says, "")]]
            lines += [[(f"  tool lab run {self.scenario} --variant {other}", "faint")]]
        lines += [[("All of its schedules: ", "bold"), (f"tool lab prove {self.scenario}", "faint")]]
        return lines

    def glimpse(self) -> "list[Line]":
        """What goes wrong, and what does not."""
        from sampletool.lab.draw import timeline
        from sampletool.lab.scenario import find

        ways = find(self.scenario).ways
        lines: list[Line] = [[(f"{self.scenario}: {self.title}", "bold")], []]
        for run in self.runs:
            verdict = ("BROKEN", "bad") if run.is_broken else ("HOLDS", "good")
            if run.is_broken:
                lines += [*timeline(run), []]
            lines += [[("  ", ""), verdict, (f"  {run.variant}: {ways[run.variant].says}", "")]]
            lines += _paragraph(f"{run.reason or ''} Why: {ways[run.variant].because}", indent="  ")
        return lines


@dataclass(frozen=True)
class AllShown:
    """Every scenario, with a table at the end."""

    scenarios: list[Shown]

    def lines(self) -> list[str]:
        from sampletool.lab.draw import plain

        return plain(self._picture())

    def painted_lines(self) -> list[str]:
        from sampletool.lab.draw import painted

        return painted(self._picture())

    def _picture(self) -> "list[Line]":
        lines: list[Line] = []
        for shown in self.scenarios:
            lines += [*shown.glimpse(), [], []]
        width = max(len(shown.scenario) for shown in self.scenarios)
        lines += [[("scenario".ljust(width + 2), "bold"), ("naive   fixed   rule", "bold")]]
        for shown in self.scenarios:
            line: Line = [(shown.scenario.ljust(width + 2), "")]
            for run in shown.runs:
                line.append(("broken  ", "bad") if run.is_broken else ("holds   ", "good"))
            lines.append([*line, (shown.rule, "")])
        return lines


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
            advice = "That proves nothing: a schedule that breaks may just not have come up."
        return [
            f"{self.scenario}, {self.variant}: {self.broken} of {self.runs} runs broke when started together.",
            f"{advice} See tool lab prove {self.scenario}.",
        ]


def show(wiring: Wiring, name: str, variants: list[str], schedule: str | None, workers: int | None) -> Shown:
    from sampletool.lab.play import play
    from sampletool.lab.scenario import FIXED, find, is_elsewhere, way_of

    scenario = find(name)
    runs = []
    for variant in variants:
        way = way_of(name, variant)
        given = way.shows if schedule is None else schedule
        if schedule is None and scenario.needs_store and is_elsewhere() and variant == FIXED:
            given = ""
        runs.append(play(name, variant, given, workers=workers, check=wiring.signals.check).recording)
    return Shown(name, scenario.title, scenario.rule, runs)


def surprises(shown: Shown, *, is_arranged: bool) -> list[str]:
    """The right way must always hold; a wrong one must break on the schedule that was chosen to show it."""
    from sampletool.lab.scenario import FIXED

    found = []
    for run in shown.runs:
        if run.variant == FIXED and run.is_broken:
            found.append(f"{run.scenario} broke although it is fixed (schedule {run.schedule}): {run.reason}")
        elif run.variant != FIXED and is_arranged and not run.is_broken:
            found.append(f"{run.scenario}, {run.variant} did not break (schedule {run.schedule})")
    return found


def command(
    ctx: typer.Context,
    name: Annotated[str | None, typer.Argument(help="A scenario; `tool lab list` lists them.")] = None,
    every: Annotated[bool, typer.Option("--all", help="All scenarios, with a table at the end.")] = False,
    variant: Annotated[
        str | None, typer.Option(help="naive, fixed, or a wrong fix of the scenario; default: naive and fixed.")
    ] = None,
    schedule: Annotated[str | None, typer.Option(help='Who goes when, such as "A1 B1 A2 B2".')] = None,
    workers: Annotated[int | None, typer.Option(min=1, max=8, help="How many take part.")] = None,
    by_luck: Annotated[bool, typer.Option("--by-luck", help="Arrange nothing; count how often it breaks.")] = False,
    runs: Annotated[int, typer.Option(min=1, max=10_000, help="With --by-luck: how many times.")] = 60,
    store: Annotated[
        str | None, typer.Option(metavar="URL", help="A store to try it on; it keeps what is added.")
    ] = None,
    svg: Annotated[Path | None, typer.Option(metavar="FILE", help="Write the last timeline as a picture.")] = None,
) -> Shown | AllShown | Lucky:
    """Watch a race condition happen in real processes, and the right way not have it.

    Without --variant the naive way is run on a schedule that breaks it, then the right way on the like.
    """
    from sampletool.lab.scenario import FIXED, NAIVE, names, use_store, way_of
    from sampletool.lab.verdict import UnexpectedOutcome

    wiring: Wiring = ctx.obj
    if store is not None:
        use_store(store)
    if every == (name is not None):
        raise InvalidValues(Mistake("NAME", "MISSING", "name one scenario, or give --all", name))
    if every and (schedule or variant or by_luck or svg):
        raise InvalidValues(Mistake("--all", "INVALID_VALUE", "--all takes no other option of this command"))
    if schedule is not None and variant is None and not by_luck:
        variant = NAIVE
    variants = [variant] if variant else [NAIVE, FIXED]
    if name is None:
        shown = [show(wiring, each, variants, None, None) for each in names()]
        everything = AllShown(shown)
        if found := [surprise for each in shown for surprise in surprises(each, is_arranged=True)]:
            raise UnexpectedOutcome(found, everything)
        return everything
    if by_luck:
        from sampletool.lab.luck import broke_by_luck

        way = variant or NAIVE
        way_of(name, way)
        broken = broke_by_luck(name, way, runs=runs, workers=workers, check=wiring.signals.check)
        return Lucky(name, way, runs, broken)
    one = show(wiring, name, variants, schedule, workers)
    if svg is not None:
        from sampletool.lab.svg import write_svg

        write_svg(svg, one.runs)
    if found := surprises(one, is_arranged=schedule is None and workers is None):
        raise UnexpectedOutcome(found, one)
    return one


def _paragraph(text: str, indent: str = "") -> "list[Line]":
    lines: list[Line] = []
    for part in text.strip().split("\n\n"):
        wrapped = textwrap.wrap(
            " ".join(part.split()),
            _WIDTH,
            initial_indent=indent,
            subsequent_indent=indent,
            break_long_words=False,
            break_on_hyphens=False,
        )
        lines += [[(line, "")] for line in wrapped]
    return lines


def _of(schedule: str) -> str:
    from sampletool.lab.recording import parse_schedule

    return " ".join(parse_schedule(schedule))
