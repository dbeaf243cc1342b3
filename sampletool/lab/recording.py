"""A recorded run: what each worker did, in which order, what the shared thing held, and how it ended.

It carries no clock and no process numbers: a schedule that is replayed gives the same recording.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from sampletool.kit.contract.errors import InvalidValues, Mistake
from sampletool.lab.errors import UnexpectedOutcome
from sampletool.lab.scenario import LETTERS, STRIKES, find

Verdict = Literal["holds", "broken"]
Happened = Literal["done", "blocked", "resumed", "struck"]
Choices = list[list[str]]
"""What could have been chosen at each token of a schedule."""
_MOST_STEPS = 500
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


@dataclass(frozen=True)
class Played:
    recording: Recording
    choices: Choices


def recorded(
    scenario: str, variant: str, letters: str, taken: list[str], reasons: list[str], events: list[Event]
) -> Recording:
    """With the last step marked, if no step could be named as the one that broke it."""
    if reasons and events and not any(event.note == "broken" for event in events):
        events[-1] = replace(events[-1], note="nobody can go on" if events[-1].waiting else "broken")
    verdict: Verdict = "broken" if reasons else "holds"
    reason, also = reasons[0] if reasons else None, tuple(reasons[1:])
    shared, schedule = find(scenario).shared, " ".join(taken)
    return Recording(scenario, variant, tuple(letters), shared, schedule, verdict, reason, also, tuple(events))


def parse_schedule(text: str) -> list[str]:
    """`A1 B1 A2 A!` as tokens.

    `A!` strikes A before its next step, `A2!3` in its second step, after three of the events in it; `A0!3` before its
    first step.
    """
    for word in text.split():
        if not _TOKEN.fullmatch(word):
            raise bad_schedule(text, f"{word!r} in the schedule is neither a step such as A1 nor a strike such as A!")
    return text.split()


def strike_within(token: str) -> tuple[str, str, int] | None:
    """The step, the strike and the number of events of `A2!3`."""
    step, strike, events = _TOKEN.findall(token)[0]
    return (step, strike, int(events)) if events else None


def follow(
    wanted: Sequence[str], enabled: Callable[[], list[str]], do: Callable[[str], list[str]]
) -> tuple[list[str], Choices]:
    """Do what the schedule says; where it ends, the first worker that can goes on, to the end of all of them.

    What was done, and what could have been done instead: `do` adds the strikes within what it has done.
    """
    taken: list[str] = []
    choices: list[list[str]] = []
    while possible := enabled():
        token = wanted[len(taken)] if len(taken) < len(wanted) else possible[0]
        within = strike_within(token)
        needed = {within[0], token[0] + within[1]} if within else {token}
        if not needed <= set(possible):
            raise bad_schedule(token, f"{token} is not possible there; possible are {', '.join(possible)}")
        if len(taken) == _MOST_STEPS:
            raise UnexpectedOutcome([f"{token[0]} does not end: {_MOST_STEPS} steps were taken"], None)
        taken.append(token)
        choices.append([*possible, *do(token)])
    for token in wanted[len(taken) :]:
        raise bad_schedule(token, f"{token} is not possible there; possible are no more steps")
    return taken, choices


def wait_for_ever(letters: Sequence[str]) -> list[str]:
    return [f"{' and '.join(letters)} {'wait' if len(letters) > 1 else 'waits'} for ever."] if letters else []


def bad_schedule(text: str, message: str) -> InvalidValues:
    return InvalidValues(
        Mistake("--schedule", "INVALID_VALUE", message, text, 'A schedule looks like this: "A1 B1 A2 B2".')
    )
