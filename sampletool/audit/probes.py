"""The three probes, which try to make the audited tool lose data.

* Burst: start many runs at the same moment.
* Stall: stop a run in the middle, and continue it after another run has finished.
* Kill: kill a run in the middle, and then start another one.

Stall and kill are repeated with many runs, and each run is interrupted at a different point. Some
of these points are spread evenly over the time that a run takes. But a run is often vulnerable for
a few milliseconds only, which such a point rarely hits. So others come right after a change of the
files: a new lock file, or an empty file, shows that the vulnerable time has begun.
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
"""Runs are interrupted after each of their first four changes of the files."""

_LOOKS_PER_RUN = 1000
"""How often to check whether a run has reached its point, in the usual time of a run."""

_MAX_USUAL_TIMES = 3
_MORE_SECONDS = 0.5
"""How long to wait for the point of a run: three times the usual time, plus half a second."""

_QUICK_SECONDS = 0.05
_MAX_REPETITIONS = 8
"""A run that takes less than 50 ms gets up to eight times as many interruption points."""

_ENOUGH_REFUSALS = 2
"""After so many refusals, the stall ends.

Each takes as long as the tool waits for its lock, and further ones would show nothing new.
"""

_ATTEMPTS_AFTER_KILL = 3
_REST_SECONDS = 0.5
"""The pause between these attempts. Children of the killed run may need this time to exit."""


@dataclass(frozen=True)
class Burst:
    """The result of starting many runs at the same moment."""

    bursts: int
    """How many bursts were started, until runs overlapped or the limit was reached."""
    runs: int
    """How many runs each burst had."""
    most_at_once: int
    """How many runs were certainly running at the same moment."""
    tally: Tally

    def summary(self) -> str:
        """Return the result in a few words, for the table of the report."""
        overlap = f"up to {self.most_at_once} at once"
        return f"{overlap}, in burst {self.bursts} of {self.runs} runs"


@dataclass(frozen=True)
class Stall:
    """The result of stopping a run while another one ran."""

    stopped: int
    """How many runs could be stopped before they exited."""
    refused_meanwhile: int
    """How many of the other runs failed while one was stopped."""
    hung_meanwhile: int
    """How many of the other runs did not exit before the deadline."""
    tally: Tally

    def summary(self) -> str:
        """Return the result in a few words, for the table of the report."""
        others = f"{self.refused_meanwhile} refused, {self.hung_meanwhile} hung"
        return f"{self.stopped} stopped; meanwhile {others}"


@dataclass(frozen=True)
class Kill:
    """The result of killing a run, and starting another one afterwards."""

    killed: int
    """How many runs could be killed before they exited."""
    blocked_afterwards: bool
    """Whether no other run succeeded any more, because of a stale lock or a broken file."""
    tally: Tally

    def summary(self) -> str:
        """Return the result in a few words, for the table of the report."""
        afterwards = "no other run succeeded" if self.blocked_afterwards else "others succeeded"
        return f"{self.killed} killed; afterwards {afterwards}"


def probe_burst(candidate: Candidate, signals: Signals, runs: int) -> Burst:
    """Start many runs at the same moment, and find out which of their changes are lost.

    Each run sets a key of its own, so all of the changes should survive. Quick runs may exit before
    the next one begins. So if no two runs were seen to overlap, start the burst again.
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
    """Start runs whose programs begin at the same moment, and return them.

    Otherwise, the first runs could exit before the last ones begin. So stop each process as soon as
    its program is loaded, and continue all of them together.
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

    This shows two faults. A run that was stopped between reading and writing may overwrite what the
    other run has written. And while a run is stopped that holds a lock, the other run may wait
    permanently, instead of failing in time with an error.

    `spread_count` is explained at `choose_interruption_points`.
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
    """Kill one run in the middle, then check that another run succeeds and that no value is lost.

    A killed run may leave a lock or half of a file behind, which makes all later runs fail.

    `spread_count` is explained at `choose_interruption_points`.
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

    If the run fails, try a few more times: the tool may release the lock of the killed run later.
    Before each retry, wait as long as the error asks for, but at most `max_rest_seconds`. After a
    run that hangs, give up.
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
    """The point of a run at which to stop or kill it.

    A run reaches the point when both conditions hold. Usually, only one of them is set: the other
    one is 0, and always holds.
    """

    fraction: float = 0.0
    """The minimum running time, as a fraction of the usual time: 0.5 is half of it."""
    changes: int = 0
    """The minimum number of changes of the files."""


def choose_interruption_points(
    spread_count: int,
    usual_seconds: float,
) -> list[InterruptionPoint]:
    """Return the points at which to interrupt runs that usually take `usual_seconds`.

    `spread_count` points are spread evenly over the usual time. Others come after the first change
    of the files, after the second one, and so on.

    If the runs are quick, return several times as many points of both kinds. The vulnerable time of
    a quick run is harder to hit, and more of these runs take little time.
    """
    repetitions = max(1, min(_MAX_REPETITIONS, int(_QUICK_SECONDS / usual_seconds)))
    total = spread_count * repetitions
    spread = [InterruptionPoint(fraction=(index + 0.5) / total) for index in range(total)]
    after_changes = [InterruptionPoint(changes=number) for number in range(1, _CHANGES + 1)]
    return spread + after_changes * repetitions


def _runs_to_interrupt(trial: Trial, first: Attempt, spread_count: int) -> Iterator[Attempt]:
    """Start a run for each interruption point, and yield the run when it reaches its point.

    Do not yield runs that never reach their point. The time of the `first` run, which was alone,
    counts as the usual time of a run.
    """
    usual_seconds = first.run.elapsed_seconds
    for point in choose_interruption_points(spread_count, usual_seconds):
        attempt = start_until(point, trial, usual_seconds)
        if attempt is not None:
            yield attempt


def start_until(
    point: InterruptionPoint,
    trial: Trial,
    usual_seconds: float,
) -> Attempt | None:
    """Start a run, wait until it reaches the interruption point, and return it.

    Return None if the run exits before, or takes too long. Such a run is finished here.
    """
    sandbox = trial.sandbox
    min_seconds = point.fraction * usual_seconds
    max_seconds = _MAX_USUAL_TIMES * usual_seconds + _MORE_SECONDS
    changes = 0
    last_states = sandbox.file_states()
    attempt = trial.start()
    while not attempt.run.poll() and attempt.run.elapsed_seconds < max_seconds:
        sandbox.signals.check()
        # Examining the files slows the run down. So do that only until there were enough changes.
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
