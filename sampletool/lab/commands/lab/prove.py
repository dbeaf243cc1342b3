"""Run every schedule of a scenario: the right way must hold on all of them, and every wrong one must break on some."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from sampletool.kit.context import Context
from sampletool.kit.contract.render import json_line
from sampletool.kit.contract.text import between_words, counted
from sampletool.kit.safety.atomic_file import replace
from sampletool.lab.commands.lab._live import checking
from sampletool.lab.commands.lab._options import AllOption, NameArgument, StoreOption, chosen, runs_scenarios
from sampletool.lab.draw import terminal_width
from sampletool.lab.errors import UnexpectedOutcome
from sampletool.lab.explore import explore, fork_server_for
from sampletool.lab.recording import Recording
from sampletool.lab.scenario import STRIKES, find, is_right

spec = runs_scenarios("lab prove lost-config-update")


@dataclass(frozen=True)
class Schedule:
    schedule: str
    verdict: str
    reason: str | None


@dataclass(frozen=True)
class Way:
    """All schedules of one way."""

    variant: str
    schedules: int
    bad: int
    reasons: dict[str, int]
    all: list[Schedule]

    @property
    def first_bad(self) -> Schedule | None:
        return next((each for each in self.all if each.verdict == "broken"), None)


@dataclass(frozen=True)
class Proof:
    """`is_proved`: the right way held on every schedule, and each wrong way broke on at least one."""

    scenario: str
    is_proved: bool
    strikes: list[str]
    """What may happen to the first worker: at each of its steps there is a schedule in which it does."""
    ways: list[Way]

    def lines(self) -> list[str]:
        told = [f"{self.scenario}: {'proved' if self.is_proved else 'NOT PROVED'}"]
        if self.strikes:
            told.append(f"  at each step of A also with {' or '.join(self.strikes)}")
        for way in self.ways:
            told.append(f"  {way.variant}: {counted(way.schedules, 'schedule')}, {way.bad} bad")
            for reason, number in way.reasons.items():
                told += between_words(f"{number} x {reason}", terminal_width(), "    ", "      ")
            if bad := way.first_bad:
                call = f'tool lab run {self.scenario} --variant {way.variant} --schedule "{bad.schedule}"'
                told.append(f"    for example: {call}")
        return told


@dataclass(frozen=True)
class Proofs:
    proofs: list[Proof]

    def lines(self) -> list[str]:
        return [line for proof in self.proofs for line in proof.lines()]


def prove(context: Context, name: str, workers: int | None, records: list[Recording]) -> Proof:
    """`records` gets every run, event by event."""
    scenario = find(name)
    ways = []
    with fork_server_for(name) as fork_server:
        for variant in sorted(scenario.ways, key=lambda variant: not is_right(variant)):
            with checking(context, f"{name}, {variant}") as check:
                explored = explore(name, variant, workers=workers, fork_server=fork_server, check=check)
            records += explored.recordings
            schedules = [Schedule(run.schedule, run.verdict, run.reason) for run in explored.recordings]
            ways.append(Way(variant, len(schedules), len(explored.bad), explored.reasons, schedules))
    return Proof(name, surprises(name, ways) == [], [STRIKES[strike] for strike in scenario.strikes], ways)


def surprises(name: str, ways: list[Way]) -> list[str]:
    found = []
    for way in ways:
        many = counted(way.schedules, "schedule")
        if is_right(way.variant) and (worst := way.first_bad):
            breaks = f"breaks on {way.bad} of {many} although it is fixed"
            found.append(f"{name} {breaks}, such as {worst.schedule}: {worst.reason}")
        elif not is_right(way.variant) and not way.bad:
            found.append(f"{name}, {way.variant} broke on none of its {many}")
    return found


def command(
    ctx: typer.Context,
    name: NameArgument = None,
    every: AllOption = False,
    record: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write every run, event by event, one line of JSON for each.")
    ] = None,
    store: StoreOption = None,
    workers: Annotated[int | None, typer.Option(min=2, max=3, help="How many take part.")] = None,
) -> Proof | Proofs:
    """Run every possible order of a race condition.

    For real, counting the orders that break. The right way has to have none; the naive way and the tempting wrong
    fixes have to have some, which shows that a fault would be found.
    """
    records: list[Recording] = []
    proofs = [prove(ctx.obj, each, workers, records) for each in chosen(name, every)]
    if record is not None:
        replace(record.resolve(), b"".join(json_line(each) for each in records))
    outcome = Proofs(proofs) if every else proofs[0]
    if found := [surprise for proof in proofs for surprise in surprises(proof.scenario, proof.ways)]:
        raise UnexpectedOutcome(found, outcome)
    return outcome
