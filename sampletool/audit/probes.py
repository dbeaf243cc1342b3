"""The three probes: runs at the same moment, a run that is stopped, and a run that is killed.

Stops and kills are spread over the time that a run takes, and also come right after each change
that it makes. Time alone rarely hits the few milliseconds that matter. A change in the files, such
as a new lock file or an empty file, shows that they have begun.
"""

import signal
from collections.abc import Iterator
from dataclasses import dataclass

from ..kit.safety.signals import Signals
from .failure import Failure
from .run import most_at_once
from .store import Attempt, Candidate, Store, Tally

_MAX_BURSTS = 20

_CHANGES = 4
"""After how many changes of its files a run is stopped or killed, in turn."""

_LOOKS_PER_RUN = 1000

_MAX_USUAL_TIMES = 3
_MORE_SECONDS = 0.5
"""A run is given up if it takes longer than three times as long as usual, and half a second."""

_QUICK_SECONDS = 0.05
_MAX_ROUNDS = 8
"""A run that is shorter is tried in up to eight rounds."""

_ENOUGH_REFUSALS = 2
"""Each may take as long as the tool is willing to wait, and they do not differ."""

_ATTEMPTS_AFTER_KILL = 3
_REST_SECONDS = 0.5
"""Processes that a killed run has started may need a moment to exit."""


@dataclass(frozen=True)
class Burst:
    """What was seen when many runs started at the same moment."""

    bursts: int
    """How many bursts it took until runs overlapped."""
    runs: int
    """How many runs each burst had."""
    most_at_once: int
    """How many runs were certainly running at the same moment."""
    tally: Tally

    def summary(self) -> str:
        """Return what was seen, in a few words."""
        overlap = f"up to {self.most_at_once} at once"
        return f"{overlap}, in burst {self.bursts} of {self.runs} runs"


@dataclass(frozen=True)
class Stall:
    """What was seen when a run was stopped while another one ran."""

    stopped: int
    """How many runs were stopped before they were over."""
    refused_meanwhile: int
    hung_meanwhile: int
    tally: Tally

    def summary(self) -> str:
        """Return what was seen, in a few words."""
        others = f"{self.refused_meanwhile} refused, {self.hung_meanwhile} hung"
        return f"{self.stopped} stopped; meanwhile {others}"


@dataclass(frozen=True)
class Kill:
    """What was seen when a run was killed before another one."""

    killed: int
    """How many runs were killed before they were over."""
    blocked_afterwards: bool
    """Whether no run could change anything any more: a stale lock, or a broken file."""
    tally: Tally

    def summary(self) -> str:
        """Return what was seen, in a few words."""
        afterwards = "no other run succeeded" if self.blocked_afterwards else "others succeeded"
        return f"{self.killed} killed; afterwards {afterwards}"


def probe_burst(candidate: Candidate, signals: Signals, runs: int) -> Burst:
    """Start many runs at the same moment. Each sets a key of its own.

    If no two of them certainly overlapped, because the tool is too quick, try again.
    """
    with Store(candidate, signals) as store:
        before = store.prepare()
        most = 0
        bursts = 0
        while most < 2 and bursts < _MAX_BURSTS:
            attempts = start_together(store, runs)
            store.finish(*attempts)
            most = max(most, most_at_once([attempt.run for attempt in attempts]))
            bursts += 1
        return Burst(bursts=bursts, runs=runs, most_at_once=most, tally=store.tally(before))


def start_together(store: Store, runs: int) -> list[Attempt]:
    """Start runs that begin at the same moment.

    Each is stopped as soon as its program is loaded, and continued when all are.
    """
    attempts = []
    for _ in range(runs):
        attempt = store.start()
        attempt.run.send(signal.SIGSTOP)
        attempts.append(attempt)
    for attempt in attempts:
        attempt.run.let_go()
    return attempts


def probe_stall(candidate: Candidate, signals: Signals, by_time: int) -> Stall:
    """Stop one run in the middle, let another one end, then continue the first one.

    A run that is stopped between reading and writing overwrites what the other one has written. A
    run that is stopped while it holds a lock makes the other one wait, which then has to give up in
    time, and to say why.
    """
    with Store(candidate, signals) as store:
        before = store.prepare()
        stopped = 0
        refused = 0
        hung = 0
        for attempt in _runs_in_the_middle(store, before, by_time):
            if attempt.run.stop(signals):
                stopped += 1
                (outcome,) = store.finish(store.start())
                if isinstance(outcome, Failure):
                    refused += 1
                elif outcome == "hung":
                    hung += 1
            attempt.run.let_go()
            store.finish(attempt)
            if hung > 0 or refused >= _ENOUGH_REFUSALS:
                break
        return Stall(
            stopped=stopped,
            refused_meanwhile=refused,
            hung_meanwhile=hung,
            tally=store.tally(before),
        )


def probe_kill(candidate: Candidate, signals: Signals, by_time: int) -> Kill:
    """Kill one run in the middle. Another one has to succeed, and everything has to be readable.

    A run that leaves a lock or half a file behind blocks all that follow.
    """
    with Store(candidate, signals) as store:
        before = store.prepare()
        killed = 0
        is_blocked = False
        for attempt in _runs_in_the_middle(store, before, by_time):
            attempt.run.end()
            killed += 1
            is_blocked = not _another_succeeds(store, candidate.deadline_seconds)
            if is_blocked:
                break
        return Kill(killed=killed, blocked_afterwards=is_blocked, tally=store.tally(before))


def _another_succeeds(store: Store, max_rest_seconds: float) -> bool:
    """Return whether a new run succeeds. If it is refused, try again when it says, or soon."""
    for attempts_left in reversed(range(_ATTEMPTS_AFTER_KILL)):
        (outcome,) = store.finish(store.start())
        if not isinstance(outcome, Failure):
            return outcome == "claimed"
        if attempts_left > 0:
            rest_seconds = max(outcome.retry_after_seconds or 0, _REST_SECONDS)
            store.signals.wait(min(rest_seconds, max_rest_seconds))
            store.signals.check()
    return False


@dataclass(frozen=True)
class Moment:
    """When to stop or kill a run."""

    part: float = 0.0
    """After this part of the time that a run usually takes."""
    changes: int = 0
    """After so many changes of its files."""


def staggered(by_time: int, usual_seconds: float) -> list[Moment]:
    """Return the moments. A quick tool has more, because they are shorter and cost less."""
    rounds = max(1, min(_MAX_ROUNDS, int(_QUICK_SECONDS / usual_seconds)))
    count = by_time * rounds
    moments = [Moment(part=(number + 0.5) / count) for number in range(count)]
    by_change = [Moment(changes=number) for number in range(1, _CHANGES + 1)]
    return moments + by_change * rounds


def _runs_in_the_middle(store: Store, before: Attempt, by_time: int) -> Iterator[Attempt]:
    """Yield a run at each moment that it reaches. `before` shows how long a run usually takes."""
    usual_seconds = before.run.lasted_seconds
    for moment in staggered(by_time, usual_seconds):
        attempt = run_until(moment, store, usual_seconds)
        if attempt is not None:
            yield attempt


def run_until(moment: Moment, store: Store, usual_seconds: float) -> Attempt | None:
    """Return a new run at this moment, or None if it never reached it."""
    max_seconds = _MAX_USUAL_TIMES * usual_seconds + _MORE_SECONDS
    changes = 0
    seen = store.snapshot()
    attempt = store.start()
    while not attempt.run.is_over() and attempt.run.lasted_seconds < max_seconds:
        store.signals.check()
        if changes < moment.changes:
            now = store.snapshot()
            if now != seen:
                seen = now
                changes += 1
        is_late_enough = attempt.run.lasted_seconds >= moment.part * usual_seconds
        if changes >= moment.changes and is_late_enough:
            return attempt
        store.signals.wait(usual_seconds / _LOOKS_PER_RUN)
    store.finish(attempt)
    return None
