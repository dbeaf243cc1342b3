"""A recorded run: what each worker did, in which order, what the shared thing held, and how it ended.

It carries no clock and no process numbers: a schedule that is replayed gives the same recording.
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
    """One line of the record."""

    seq: int
    worker: str
    number: int
    """Which step of this worker it is, counted from 1."""
    step: str
    outcome: Happened
    """`blocked`: it has to wait for another; `resumed`: what it waited for has come."""
    state: str
    """What the shared thing holds afterwards."""
    holds: tuple[str, ...] = ()
    """The workers that are alone with it afterwards."""
    waiting: tuple[str, ...] = ()
    over: bool = False
    """The worker has ended with this."""
    note: str | None = None
    at: str | None = None
    """The file and line, below the package, at which the worker stood before this."""
    private: dict[str, str] | None = None
    """What its own copies held when it stood there."""
    on_disk: tuple[str, ...] | None = None
    """What the shared thing may hold after a power cut at this moment, in scenarios of power cuts."""


@dataclass(frozen=True)
class Recording:
    """One run of one way."""

    scenario: str
    variant: str
    workers: tuple[str, ...]
    shared: str
    schedule: str
    verdict: Verdict
    reason: str | None
    """What is broken; of several things, what the story of this way is about."""
    also: tuple[str, ...]
    """What else is broken."""
    events: tuple[Event, ...]

    @property
    def is_broken(self) -> bool:
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
    """What could have been chosen at each token of its schedule."""
    turns: tuple[Turn, ...] = ()
    """Each step, if every call is a step."""
    is_complete: bool = True
    """Whether the run went to its end. Otherwise it was not judged."""


def parse_schedule(text: str) -> list[str]:
    """`A1 B1 A2 A!` as tokens.

    `A!` strikes A before its next step, `A2!3` in its second step, after three of the events in it; `A0!3` before its
    first step.
    """
    for word in text.split():
        if not _TOKEN.fullmatch(word):
            raise bad_schedule(
                text,
                f"{word!r} in the schedule is neither a step such as A1 nor a strike such as A!",
            )
    return text.split()


def parts_of(token: str) -> tuple[str, str, str]:
    """The step, the strike and the number of events of `A2!3`; what a token does not have is empty."""
    step, strike, events = _TOKEN.findall(token)[0]
    return step, strike, events


def bad_schedule(text: str, message: str) -> InvalidValues:
    return InvalidValues(
        Mistake(
            "--schedule",
            "INVALID_VALUE",
            message,
            text,
            'A schedule looks like this: "A1 B1 A2 B2".',
        )
    )
