"""The three probes: runs let go together, a run that is stopped beside another, a run that is killed before another.

Stops and kills are spread over the time that a run takes, and come right after each change that it makes. Time alone
rarely hits the few milliseconds that matter; a change that shows in the files (a lock file, a truncated file, a
temporary one) says that they have begun.
"""

import signal
from collections.abc import Iterator
from typing import NamedTuple

from ..kit.safety.signals import Signals
from .failure import Failure
from .run import most_at_once
from .store import Attempt, Candidate, Store, Tally

_MOST_BURSTS = 20
_CHANGES = 4
_LOOKS_PER_RUN = 1000
_PATIENCE, _PATIENCE_SECONDS = 3, 0.5
_QUICK_SECONDS, _MOST_ROUNDS = 0.05, 8
_ENOUGH_REFUSALS = 2
"""Each may take as long as the tool is willing to wait; they do not differ."""
_TRIES = 3
_BETWEEN_TRIES_SECONDS = 0.5
"""What a killed run had started may need a moment to end; who is asked to come back later does just that."""


class Burst(NamedTuple):
    bursts: int
    """How many it took until runs overlapped."""
    runs: int
    """In each burst."""
    most_at_once: int
    """So many were certainly running at the same moment."""
    tally: Tally

    def seen(self) -> str:
        return f"up to {self.most_at_once} at once, in burst {self.bursts} of {self.runs} runs"


class Stall(NamedTuple):
    stopped: int
    """Runs that were stopped before they were over."""
    refused_meanwhile: int
    hung_meanwhile: int
    tally: Tally

    def seen(self) -> str:
        return f"{self.stopped} stopped; meanwhile {self.refused_meanwhile} refused, {self.hung_meanwhile} hung"


class Kill(NamedTuple):
    killed: int
    """Runs that were killed before they were over."""
    blocked_afterwards: bool
    """After one of them nobody could change anything any more: a stale lock, or a file that is broken."""
    tally: Tally

    def seen(self) -> str:
        return f"{self.killed} killed; afterwards {'nobody could go on' if self.blocked_afterwards else 'all went on'}"


def probe_burst(candidate: Candidate, signals: Signals, runs: int) -> Burst:
    """Many runs let go at the same moment, each setting a key of its own. Is every one that said OK there?

    Two certainly overlapped when each was seen running while the other was. A tool that is over too soon for that is
    tried again.
    """
    with Store(candidate, signals) as store:
        before = store.prepare()
        most = bursts = 0
        while most < 2 and bursts < _MOST_BURSTS:
            attempts = let_go_together(store, runs)
            store.finish(*attempts)
            most = max(most, most_at_once([attempt.run for attempt in attempts]))
            bursts += 1
        return Burst(bursts, runs, most, store.tally(before))


def let_go_together(store: Store, runs: int) -> list[Attempt]:
    """Each is stopped as soon as its program has been loaded, and let go when all of them are."""
    attempts = []
    for _ in range(runs):
        attempts.append(store.start())
        attempts[-1].run.send(signal.SIGSTOP)
    for attempt in attempts:
        attempt.run.let_go()
    return attempts


def probe_stall(candidate: Candidate, signals: Signals, by_time: int) -> Stall:
    """One run is stopped in the middle; another has to end within the deadline; the first goes on.

    Who is stopped between reading and writing overwrites, when it goes on, what the other wrote. Who is stopped
    holding a lock makes the other wait: then it has to give up in time and say why.
    """
    with Store(candidate, signals) as store:
        before = store.prepare()
        stopped = refused = hung = 0
        for one in _in_the_middle(store, before, by_time):
            if one.run.stop(signals):
                stopped += 1
                (outcome,) = store.finish(store.start())
                refused += isinstance(outcome, Failure)
                hung += outcome == "hung"
            one.run.let_go()
            store.finish(one)
            if hung or refused >= _ENOUGH_REFUSALS:
                break
        return Stall(stopped, refused, hung, store.tally(before))


def probe_kill(candidate: Candidate, signals: Signals, by_time: int) -> Kill:
    """One run is killed with -9 in the middle; another has to succeed, and everything is still readable.

    Who left a lock behind, or half a file, stands in the way of everybody who comes after.
    """
    with Store(candidate, signals) as store:
        before = store.prepare()
        killed, blocked = 0, False
        for one in _in_the_middle(store, before, by_time):
            one.run.end()
            killed += 1
            blocked = not _succeeds(store, candidate.deadline_seconds)
            if blocked:
                break
        return Kill(killed, blocked, store.tally(before))


def _succeeds(store: Store, longest_rest_seconds: float) -> bool:
    for tries_left in reversed(range(_TRIES)):
        (outcome,) = store.finish(store.start())
        if not isinstance(outcome, Failure):
            return outcome == "claimed"
        if tries_left:
            hint = max(outcome.retry_after_seconds or 0, _BETWEEN_TRIES_SECONDS)
            store.signals.wait(min(hint, longest_rest_seconds))
            store.signals.check()
    return False


class Moment(NamedTuple):
    """When this part of the time that a run usually takes has passed, and so many changes are in the files."""

    part: float = 0.0
    changes: int = 0


def staggered(by_time: int, usual_seconds: float) -> list[Moment]:
    """More of them for a tool that is quick: its moments are shorter and cost less."""
    rounds = max(1, min(_MOST_ROUNDS, int(_QUICK_SECONDS / usual_seconds)))
    times = [Moment(part=(number + 0.5) / (by_time * rounds)) for number in range(by_time * rounds)]
    return times + [Moment(changes=number) for number in range(1, _CHANGES + 1)] * rounds


def _in_the_middle(store: Store, before: Attempt, by_time: int) -> Iterator[Attempt]:
    """A run at each of the moments, as far as it came to it. `before` is one that shows how long they take."""
    usual_seconds = before.run.lasted_seconds
    for moment in staggered(by_time, usual_seconds):
        if (attempt := run_until(moment, store, usual_seconds)) is not None:
            yield attempt


def run_until(moment: Moment, store: Store, usual_seconds: float) -> Attempt | None:
    """A run that has come to the moment; None if it was over before, or the moment did not come."""
    changes, seen = 0, store.snapshot()
    attempt = store.start()
    while not attempt.run.is_over() and attempt.run.lasted_seconds < _PATIENCE * usual_seconds + _PATIENCE_SECONDS:
        store.signals.check()
        if changes < moment.changes and (now := store.snapshot()) != seen:
            changes, seen = changes + 1, now
        if changes >= moment.changes and attempt.run.lasted_seconds >= moment.part * usual_seconds:
            return attempt
        store.signals.wait(usual_seconds / _LOOKS_PER_RUN)
    store.finish(attempt)
    return None
