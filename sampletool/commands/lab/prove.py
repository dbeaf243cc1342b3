"""Run every schedule of a scenario: the right way must hold on all of them, and every wrong one must break on some."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sampletool.contract.errors import InvalidValues, Mistake
from sampletool.contract.exit_status import ExitStatus
from sampletool.contract.promise import Promise
from sampletool.contract.render import json_line
from sampletool.safety.atomic_file import replace
from sampletool.wiring import Wiring

if TYPE_CHECKING:
    from sampletool.lab.recording import Recording

promise = Promise(
    effect="scratch",
    ends_with=(ExitStatus.PARTIAL, ExitStatus.PERMISSION, ExitStatus.NOT_FOUND),
    examples=("tool lab prove lost-config-update", "tool lab prove --all"),
)


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


@dataclass(frozen=True)
class Proof:
    """`is_proved`: the right way held on every schedule, and each wrong way broke on at least one."""

    scenario: str
    is_proved: bool
    strikes: list[str]
    """What may happen to the first worker: at each of its steps there is a schedule in which it does."""
    ways: list[Way]

    def lines(self) -> list[str]:
        counts = [
            f"{way.variant}: {way.schedules} schedule{'s' * (way.schedules > 1)}, {way.bad} bad" for way in self.ways
        ]
        told = [f"{self.scenario}: {'proved' if self.is_proved else 'NOT PROVED'}"]
        if self.strikes:
            told.append(f"  at each step of A also with {' or '.join(self.strikes)}")
        for way, count in zip(self.ways, counts, strict=True):
            told.append(f"  {count}")
            told += [f"    {number} x {reason}" for reason, number in way.reasons.items()]
            if bad := [each.schedule for each in way.all if each.verdict == "broken"]:
                told.append(
                    f'    for example: tool lab run {self.scenario} --variant {way.variant} --schedule "{bad[0]}"'
                )
        return told


@dataclass(frozen=True)
class Proofs:
    proofs: list[Proof]

    def lines(self) -> list[str]:
        return [line for proof in self.proofs for line in proof.lines()]


def prove(wiring: Wiring, name: str, workers: int | None, records: "list[Recording]") -> Proof:
    """`records` gets every run, event by event."""
    from sampletool.lab.explore import explore
    from sampletool.lab.scenario import FIXED, STRIKES, find

    ways = []
    for variant in sorted(find(name).ways, key=lambda variant: variant != FIXED):
        explored = explore(name, variant, workers=workers, check=wiring.signals.check)
        records += explored.recordings
        ways.append(
            Way(
                variant,
                len(explored.recordings),
                len(explored.bad),
                explored.reasons,
                [Schedule(each.schedule, each.verdict, each.reason) for each in explored.recordings],
            )
        )
    is_proved = all((way.bad == 0) == (way.variant == FIXED) for way in ways)
    return Proof(name, is_proved, [STRIKES[strike] for strike in find(name).strikes], ways)


def surprises(proof: Proof) -> list[str]:
    from sampletool.lab.scenario import FIXED

    found = []
    for way in proof.ways:
        if way.variant == FIXED and way.bad:
            worst = next(each for each in way.all if each.verdict == "broken")
            found.append(
                f"{proof.scenario} breaks on {way.bad} of {way.schedules} schedules although it is fixed, "
                f"such as {worst.schedule}: {worst.reason}"
            )
        elif way.variant != FIXED and not way.bad:
            found.append(f"{proof.scenario}, {way.variant} broke on none of its {way.schedules} schedules")
    return found


def command(
    ctx: typer.Context,
    name: Annotated[str | None, typer.Argument(help="A scenario; `tool lab list` lists them.")] = None,
    every: Annotated[bool, typer.Option("--all", help="All scenarios.")] = False,
    record: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write every run, event by event, one line of JSON for each.")
    ] = None,
    store: Annotated[
        str | None, typer.Option(metavar="URL", help="A store to try it on; it keeps what is added.")
    ] = None,
    workers: Annotated[int | None, typer.Option(min=2, max=3, help="How many take part.")] = None,
) -> Proof | Proofs:
    """Run every schedule of a scenario, for real, and count the bad ones.

    The right way has to have none; the naive way and the tempting wrong fixes have to have some, which shows that a
    fault would be found.
    """
    from sampletool.lab.scenario import names, use_store
    from sampletool.lab.verdict import UnexpectedOutcome

    wiring: Wiring = ctx.obj
    if store is not None:
        use_store(store)
    if every == (name is not None):
        raise InvalidValues(Mistake("NAME", "MISSING", "name one scenario, or give --all", name))
    records: list[Recording] = []
    proofs = [prove(wiring, each, workers, records) for each in (names() if name is None else [name])]
    if record is not None:
        replace(record.resolve(), b"".join(json_line(each) for each in records))
    outcome = Proofs(proofs) if name is None else proofs[0]
    if found := [surprise for proof in proofs for surprise in surprises(proof)]:
        raise UnexpectedOutcome(found, outcome)
    return outcome
