"""Run every schedule of a scenario: the right way must hold on all of them, and every wrong one must break on some."""

from dataclasses import dataclass
from typing import Annotated

import typer

from ....kit.context import Context
from ....kit.contract.text import between_words, counted
from ...draw import terminal_width
from ...errors import UnexpectedOutcome
from ...explore import explore
from ...scenario import STRIKES, find, is_right
from ._options import AllOption, NameArgument, chosen, one_by_one, spec_with

spec = spec_with("lab prove lost-config-update")


@dataclass(frozen=True)
class Way:
    """All schedules of one way."""

    variant: str
    schedules: int
    bad: int
    reasons: dict[str, int]
    example: str | None
    """The first schedule that is bad."""


@dataclass(frozen=True)
class Proof:
    """`is_proved`: the right way held on every schedule, and each wrong way broke on at least one."""

    scenario: str
    is_proved: bool
    surprises: list[str]
    strikes: list[str]
    """What may happen to the first worker: at each of its steps there is a schedule in which it does."""
    ways: list[Way]

    def lines(self) -> list[str]:
        lines = [f"{self.scenario}: {'proved: fixed never breaks, the others do' if self.is_proved else 'NOT PROVED'}"]
        if self.strikes:
            lines.append(f"  at each step of A also with {' or '.join(self.strikes)}")
        for way in self.ways:
            lines.append(f"  {way.variant}: {counted(way.schedules, 'schedule')}, {way.bad} bad")
            for reason, number in way.reasons.items():
                lines += between_words(f"{number} x {reason}", terminal_width(), "    ", "      ")
            if way.example:
                # Three lines: the name of the program may be longer in a project of its own.
                lines.append(f"    for example: tool lab run {self.scenario} \\")
                lines.append(f"      --variant {way.variant} \\")
                lines.append(f'      --schedule "{way.example}"')
        return lines


@dataclass(frozen=True)
class Proofs:
    proofs: list[Proof]

    def lines(self) -> list[str]:
        return [line for proof in self.proofs for line in proof.lines()]


def prove(context: Context, name: str, workers: int | None) -> Proof:
    scenario = find(name)
    explored = explore(context, scenario, workers)
    surprises = [found.surprise for found in explored.values() if found.surprise]
    ways = []
    for variant in sorted(explored, key=lambda variant: not is_right(variant)):
        found = explored[variant]
        example = next((run.schedule for run in found.bad), None)
        ways.append(Way(variant, len(found.recordings), len(found.bad), found.reasons, example))
    return Proof(name, not surprises, surprises, [STRIKES[strike] for strike in scenario.strikes], ways)


def command(
    ctx: typer.Context,
    name: NameArgument = None,
    every: AllOption = False,
    workers: Annotated[int | None, typer.Option(min=2, max=3, help="How many take part.")] = None,
) -> Proof | Proofs:
    """Run every possible order of a race condition.

    For real, counting the orders that break. The right way has to have none; the naive way and the tempting wrong
    fixes have to have some, which shows that a fault would be found.
    """
    proofs = [prove(ctx.obj, each, workers) for each in one_by_one(ctx.obj, chosen(name, every))]
    outcome = Proofs(proofs) if every else proofs[0]
    if found := [surprise for proof in proofs for surprise in proof.surprises]:
        raise UnexpectedOutcome(surprises=found, data=outcome)
    return outcome
