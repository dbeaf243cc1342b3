"""A recorded run: what each worker did, in which order, what the shared thing held, and how it ended.

It carries no clock and no process numbers: a schedule that is replayed gives the same recording.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Literal

from sampletool.contract.errors import InvalidValues, Mistake
from sampletool.lab.scenario import LETTERS, STRIKES

Verdict = Literal["holds", "broken"]
_TOKEN = re.compile(f"([{LETTERS}])([0-9]*)([{re.escape(''.join(STRIKES))}]?)")


@dataclass(frozen=True)
class Event:
    """One line of the record."""

    seq: int
    worker: str
    number: int
    """Which step of this worker it is, counted from 1."""
    step: str
    outcome: Literal["done", "blocked", "resumed", "struck"]
    """`blocked`: it has to wait for another; `resumed`: what it waited for has come."""
    state: str
    """What the shared thing holds afterwards."""
    holds: tuple[str, ...] = ()
    """The workers that are alone with it afterwards."""
    waiting: tuple[str, ...] = ()
    over: bool = False
    """The worker has ended with this."""
    note: str | None = None


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
    """What is broken."""
    events: tuple[Event, ...]

    @property
    def is_broken(self) -> bool:
        return self.verdict == "broken"

    def marked(self) -> "Recording":
        """With the last step marked, if no step could be named as the one that broke it."""
        if not self.is_broken or not self.events or any(event.note for event in self.events):
            return self
        note = "nobody can go on" if self.events[-1].waiting else "now it is broken"
        return replace(self, events=(*self.events[:-1], replace(self.events[-1], note=note)))


@dataclass(frozen=True)
class Played:
    recording: Recording
    choices: tuple[tuple[str, ...], ...]
    """What could have been chosen at each token of the schedule."""


def parse_schedule(text: str) -> list[str]:
    """`A1 B1 A2 A!` as tokens; spaces and numbers may be left out."""
    tokens: list[str] = []
    counted: dict[str, int] = {}
    for word in text.replace(",", " ").split():
        if _TOKEN.sub("", word):
            raise _bad(text, f"{word!r} in the schedule is neither a step such as A1 nor a strike such as A!")
        for letter, number, strike in _TOKEN.findall(word):
            if strike:
                tokens.append(letter + strike)
                continue
            counted[letter] = counted.get(letter, 0) + 1
            if number and int(number) != counted[letter]:
                raise _bad(text, f"{letter}{number} in the schedule should be {letter}{counted[letter]}")
            tokens.append(f"{letter}{counted[letter]}")
    return tokens


def say_schedule(tokens: Iterable[str]) -> str:
    return " ".join(tokens)


def misfit(text: str, token: str, enabled: Iterable[str]) -> InvalidValues:
    return _bad(text, f"{token} is not possible there; possible are {', '.join(enabled) or 'no more steps'}")


def _bad(text: str, message: str) -> InvalidValues:
    return InvalidValues(
        Mistake("--schedule", "INVALID_VALUE", message, text, 'A schedule looks like this: "A1 B1 A2 B2".')
    )
