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
from .run import max_concurrent
from .trial import Attempt, Candidate, Tally, Trial, open_trial

_MAX_BURSTS = 20

_CHANGES = 4
"""Runs are stopped or killed after the first change of their files, after the second, and so on."""

_LOOKS_PER_RUN = 1000
"""How often to look for changes in the time that a run usually takes."""

_MAX_USUAL_TIMES = 3
_MORE_SECONDS = 0.5
"""A run is given up after three times the usual time and half a second."""

_QUICK_SECONDS = 0.05
_MAX_REPETITIONS = 8
"""If a run is shorter than 50 ms, its points are tried in up to eight repetitions."""

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

    A quick run may exit before the next one begins. So if no two of them were seen running at the
    same moment, try again.
    """
    with open_trial(candidate, signals) as trial:
        first = trial.prepare()
        most_at_once = 0
        bursts = 0
        while most_at_once < 2 and bursts < _MAX_BURSTS:
            attempts = start_together(trial, runs)
            trial.finish_all(attempts)
            concurrent = max_concurrent([attempt.run for attempt in attempts])
            most_at_once = max(most_at_once, concurrent)
            bursts += 1
        return Burst(
            bursts=bursts,
            runs=runs,
            most_at_once=most_at_once,
            tally=trial.tally(first),
        )


def start_together(trial: Trial, runs: int) -> list[Attempt]:
    """Start runs that begin at the same moment.

    Each is stopped as soon as its program is loaded. When all are, they are continued.
    """
    attempts = []
    for _ in range(runs):
        attempt = trial.start()
        attempt.run.send(signal.SIGSTOP)
        attempts.append(attempt)
    for attempt in attempts:
        attempt.run.resume()
    return attempts


def probe_stall(candidate: Candidate, signals: Signals, spread_count: int) -> Stall:
    """Stop one run in the middle, let another one finish, then continue the first one.

    A run that is stopped between reading and writing overwrites what the other one has written. A
    run that is stopped while it holds a lock makes the other one wait. That one has to give up in
    time, and to say why.
    """
    with open_trial(candidate, signals) as trial:
        first = trial.prepare()
        stopped = 0
        refused = 0
        hung = 0
        for attempt in _runs_to_interrupt(trial, first, spread_count):
            if attempt.run.stop(signals):
                stopped += 1
                outcome = trial.finish(trial.start())
                if isinstance(outcome, Failure):
                    refused += 1
                elif outcome == "hung":
                    hung += 1
            attempt.run.resume()
            trial.finish(attempt)
            if hung > 0 or refused >= _ENOUGH_REFUSALS:
                break
        return Stall(
            stopped=stopped,
            refused_meanwhile=refused,
            hung_meanwhile=hung,
            tally=trial.tally(first),
        )


def probe_kill(candidate: Candidate, signals: Signals, spread_count: int) -> Kill:
    """Kill one run in the middle. Another one has to succeed, and everything has to be readable.

    A run that leaves a lock or half a file behind blocks all that follow.
    """
    with open_trial(candidate, signals) as trial:
        first = trial.prepare()
        killed = 0
        is_blocked = False
        for attempt in _runs_to_interrupt(trial, first, spread_count):
            attempt.run.kill()
            killed += 1
            if not _another_run_succeeds(trial, candidate.deadline_seconds):
                is_blocked = True
                break
        return Kill(killed=killed, blocked_afterwards=is_blocked, tally=trial.tally(first))


def _another_run_succeeds(trial: Trial, max_rest_seconds: float) -> bool:
    """Return whether a new run succeeds after another one was killed.

    If the run fails, try again a few times. The error of the tool may say how long to wait before.
    A run that hangs is not tried again.
    """
    signals = trial.sandbox.signals
    for attempts_left in reversed(range(_ATTEMPTS_AFTER_KILL)):
        outcome = trial.finish(trial.start())
        if not isinstance(outcome, Failure):
            return outcome == "claimed"
        if attempts_left > 0:
            rest_seconds = max(outcome.retry_after_seconds or 0, _REST_SECONDS)
            signals.wait(min(rest_seconds, max_rest_seconds))
            signals.check()
    return False


@dataclass(frozen=True)
class InterruptionPoint:
    """When to stop or kill a run: after a part of its time, or after some changes of its files.

    One of the two attributes is set. The other one is 0, so that it demands nothing.
    """

    fraction: float = 0.0
    """The part of the time that a run usually takes: 0.5 is the middle."""
    changes: int = 0
    """How many changes of the files were seen."""


def choose_interruption_points(spread_count: int, usual_seconds: float) -> list[InterruptionPoint]:
    """Return `spread_count` points that are spread over a run, and one after each of its changes.

    A quick tool gets several times as many: its points are harder to hit, and its runs cost less.
    """
    repetitions = max(1, min(_MAX_REPETITIONS, int(_QUICK_SECONDS / usual_seconds)))
    total = spread_count * repetitions
    spread = [InterruptionPoint(fraction=(index + 0.5) / total) for index in range(total)]
    after_changes = [InterruptionPoint(changes=number) for number in range(1, _CHANGES + 1)]
    return spread + after_changes * repetitions


def _runs_to_interrupt(trial: Trial, first: Attempt, spread_count: int) -> Iterator[Attempt]:
    """Start one run for each point, and yield it when it has reached the point.

    A run that exits before is not yielded. How long a run usually takes is known from the `first`
    one.
    """
    usual_seconds = first.run.elapsed_seconds
    for point in choose_interruption_points(spread_count, usual_seconds):
        attempt = start_until(point, trial, usual_seconds)
        if attempt is not None:
            yield attempt


def start_until(point: InterruptionPoint, trial: Trial, usual_seconds: float) -> Attempt | None:
    """Start a run, wait until it reaches the point, and return it.

    Return None if the run never reached the point: it exited before, or took too long.
    """
    sandbox = trial.sandbox
    min_seconds = point.fraction * usual_seconds
    max_seconds = _MAX_USUAL_TIMES * usual_seconds + _MORE_SECONDS
    changes = 0
    last_states = sandbox.file_states()
    attempt = trial.start()
    while not attempt.run.poll() and attempt.run.elapsed_seconds < max_seconds:
        sandbox.signals.check()
        # Looking at the files slows the run down, so look only if changes matter.
        awaits_a_change = changes < point.changes
        if awaits_a_change:
            states = sandbox.file_states()
            if states != last_states:
                last_states = states
                changes += 1
        has_enough_changes = changes >= point.changes
        has_run_long_enough = attempt.run.elapsed_seconds >= min_seconds
        if has_enough_changes and has_run_long_enough:
            return attempt
        sandbox.signals.wait(usual_seconds / _LOOKS_PER_RUN)
    trial.finish(attempt)
    return None
