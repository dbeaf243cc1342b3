"""A recorded run: the steps of the workers in their order, the shared state, and the verdict.

It contains no times and no process numbers, so a replayed schedule gives the same recording.
"""

import re
from dataclasses import dataclass
from typing import Literal

from ..kit.contract.errors import InvalidValues, Mistake
from ..kit.stepping.effects import Effects
from .scenario import FAULTS, LETTERS

Verdict = Literal["holds", "broken"]
EventOutcome = Literal["done", "blocked", "resumed", "struck"]
"""The outcome of an event, as the JSON output names it. `struck` is a fault."""
# The step (`A2`), and perhaps the sign of a fault (`!`) and a number of events (`3`): `A2!3`.
_TOKEN = re.compile(f"([{LETTERS}][0-9]*)(?:([{re.escape(''.join(FAULTS))}])([0-9]*))?")


@dataclass(frozen=True)
class Event:
    """One event of a run, such as a step: one row of the picture."""

    seq: int
    worker: str
    number: int
    """The number of the worker's step. The first one is 1."""
    step: str
    outcome: EventOutcome
    """`blocked` if the worker has to wait, `resumed` if its wait has ended."""
    state: str
    """The shared state after the event, as text."""
    holds: tuple[str, ...] = ()
    """The workers that hold the lock after the event."""
    waiting: tuple[str, ...] = ()
    """The workers that have to wait after the event."""
    over: bool = False
    """Whether the worker has exited by the end of this event."""
    note: str | None = None
    """The problem that the event shows, or None."""
    at: str | None = None
    """The position of the worker before the event: a file of the package, and a line."""
    private: dict[str, str] | None = None
    """The values of the worker's private variables at this position."""
    on_disk: tuple[str, ...] | None = None
    """The possible states after a power cut at this moment. None without power cuts."""

    @property
    def is_fault(self) -> bool:
        """Whether the worker took no step, but was killed or interrupted."""
        return self.outcome == "struck"


@dataclass(frozen=True)
class Recording:
    """One run of one variant."""

    scenario: str
    variant: str
    workers: tuple[str, ...]
    shared: str
    schedule: str
    verdict: Verdict
    reason: str | None
    """The problem, or None. If there are several, the one that the variant explains."""
    also: tuple[str, ...]
    """The other problems."""
    events: tuple[Event, ...]

    @property
    def is_broken(self) -> bool:
        """Whether the run has a problem."""
        return self.verdict == "broken"

    @property
    def has_fault(self) -> bool:
        """Whether a worker was killed or interrupted."""
        return any(event.is_fault for event in self.events)


@dataclass(frozen=True, kw_only=True)
class Turn:
    """One step of a run, if every call is a step."""

    worker: str
    token: str
    step: str
    """The name of the step."""
    effects: Effects
    """The resources that the step has read or changed."""
    possible: tuple[str, ...]
    """The tokens that were possible at this point, including this one."""


@dataclass(frozen=True)
class PlayedRun:
    """One run, and the facts from which other runs are planned."""

    recording: Recording
    choices: list[list[str]]
    """The possible tokens at each position of the schedule."""
    turns: tuple[Turn, ...] = ()
    """All steps of a run in which every call is a step. Other runs have no turns."""
    is_complete: bool = True
    """Whether all workers have ended or are stuck. An incomplete run is not judged."""


@dataclass(frozen=True, kw_only=True)
class ParsedToken:
    """The parts of a token. For `A2!3`: worker A, step `A2`, fault `!`, after 3 events of it."""

    worker: str
    step: str
    """The worker and the number of its step, or only the worker if a fault comes before a step."""
    fault: str
    """The sign of the fault, or "" if the token is a whole step."""
    events_before_fault: int | None
    """The number of events of the step before the fault.

    None if the fault comes before the step, and if there is no fault.
    """


def parse_schedule(text: str) -> list[str]:
    """Return the tokens of a schedule such as `A1 B1 A2 A!`. Raise InvalidValues if one is wrong.

    * `A2` is the second step of A.
    * `A!` kills A before its next step. FAULTS has the signs of other faults.
    * `A2!3` kills A in its second step, after three events of this step.
    * `A0!3` kills A before its first step, after three events.
    """
    tokens = text.split()
    for token in tokens:
        if not _TOKEN.fullmatch(token):
            kinds = "neither a step such as A1 nor a fault such as A!"
            raise bad_schedule(text, f"{token!r} in the schedule is {kinds}")
    return tokens


def parse_token(token: str) -> ParsedToken:
    """Return the parts of a token. parse_schedule() has checked it."""
    step, fault, events = _TOKEN.findall(token)[0]
    return ParsedToken(
        worker=step[0],
        step=step,
        fault=fault,
        events_before_fault=int(events) if events else None,
    )


def worker_of(token: str) -> str:
    """Return the worker of a token, for example A for `A2` and for `A!`."""
    return token[0]


def bad_schedule(text: str, problem: str) -> InvalidValues:
    """Return the error for a schedule that cannot be followed."""
    hint = 'A schedule looks like this: "A1 B1 A2 B2".'
    return InvalidValues(Mistake("--schedule", "INVALID_VALUE", problem, text, hint))
