"""A recorded run: what each worker did, in which order, what they shared, and how it ended.

It contains no times and no process numbers, so a replayed schedule gives the same recording.
"""

import re
from dataclasses import dataclass
from typing import Literal

from ..kit.contract.errors import InvalidValues, Mistake
from ..kit.stepping.effects import Effects
from .scenario import LETTERS, STRIKES

Verdict = Literal["holds", "broken"]
Happened = Literal["done", "blocked", "resumed", "struck"]
_TOKEN = re.compile(f"([{LETTERS}][0-9]*)(?:([{re.escape(''.join(STRIKES))}])([0-9]*))?")


@dataclass(frozen=True)
class Event:
    """One thing that happened in a run: one row of its picture."""

    seq: int
    worker: str
    number: int
    """The number of the worker's step, from 1."""
    step: str
    outcome: Happened
    """`blocked` if the worker has to wait, and `resumed` if it does not wait any more."""
    state: str
    """The content of what the workers share, after the event."""
    holds: tuple[str, ...] = ()
    """The workers that hold the lock afterwards."""
    waiting: tuple[str, ...] = ()
    """The workers that have to wait afterwards."""
    over: bool = False
    """Whether the worker has exited with this event."""
    note: str | None = None
    """What is wrong, if something is."""
    at: str | None = None
    """The file and line, below the package, at which the worker stood before the event."""
    private: dict[str, str] | None = None
    """The values of its own copies when it stood there."""
    on_disk: tuple[str, ...] | None = None
    """What may be left after a power cut at this moment, in scenarios with power cuts."""


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
    """What is broken. If there are several things, it is the one that the variant stands for."""
    also: tuple[str, ...]
    """What else is broken."""
    events: tuple[Event, ...]

    @property
    def is_broken(self) -> bool:
        """Whether something is broken."""
        return self.verdict == "broken"


@dataclass(frozen=True, kw_only=True)
class Turn:
    """One step of a run in which every call is a step."""

    worker: str
    token: str
    step: str
    """The name of the step."""
    effects: Effects
    """What the step has read and changed."""
    possible: tuple[str, ...]
    """The tokens that could have been taken there, with this one."""


@dataclass(frozen=True)
class Played:
    """One run, and what it shows about other runs."""

    recording: Recording
    choices: list[list[str]]
    """The tokens that could have been chosen at each position of its schedule."""
    turns: tuple[Turn, ...] = ()
    """Each step, if every call is a step."""
    is_complete: bool = True
    """Whether the run went to its end. Otherwise it was not judged."""


def parse_schedule(text: str) -> list[str]:
    """Return the tokens of a schedule such as `A1 B1 A2 A!`. Raise InvalidValues if one is wrong.

    * `A!` strikes A before its next step.
    * `A2!3` strikes A in its second step, after three events of this step.
    * `A0!3` strikes A before its first step, after three events.
    """
    tokens = text.split()
    for token in tokens:
        if not _TOKEN.fullmatch(token):
            kinds = "neither a step such as A1 nor a strike such as A!"
            raise bad_schedule(text, f"{token!r} in the schedule is {kinds}")
    return tokens


def parts_of(token: str) -> tuple[str, str, str]:
    """Return the three parts of a token: the step, the strike and the number of events.

    For `A2!3`, these are A2, ! and 3. A part that the token does not have is empty.
    """
    step, strike, events = _TOKEN.findall(token)[0]
    return step, strike, events


def bad_schedule(text: str, problem: str) -> InvalidValues:
    """Return the error for a schedule that cannot be followed."""
    hint = 'A schedule looks like this: "A1 B1 A2 B2".'
    return InvalidValues(Mistake("--schedule", "INVALID_VALUE", problem, text, hint))
