"""When to stop or kill a run: spread over the time that one takes, and right after each change that it makes.

Time alone rarely hits the few milliseconds that matter; a change that shows in the files (a lock file, a truncated
file, a temporary one) says that they have begun.
"""

import time
from dataclasses import dataclass

from sampletool.audit.store import Attempt, Store
from sampletool.kit.safety.signals import Signals

_CHANGES = 4
_LOOKS_PER_RUN = 1000
_PATIENCE, _PATIENCE_SECONDS = 3, 0.5
_QUICK_SECONDS, _MOST_ROUNDS = 0.05, 8


@dataclass(frozen=True)
class Moment:
    """Either at this part of the time that a run usually takes, or after so many changes in the files."""

    part: float = 0.0
    changes: int = 0


def staggered(by_time: int, usual_seconds: float) -> list[Moment]:
    """More of them for a tool that is quick: its moments are shorter and cost less."""
    rounds = max(1, min(_MOST_ROUNDS, int(_QUICK_SECONDS / usual_seconds)))
    times = [Moment(part=(number + 0.5) / (by_time * rounds)) for number in range(by_time * rounds)]
    return times + [Moment(changes=number) for number in range(1, _CHANGES + 1)] * rounds


def run_until(moment: Moment, store: Store, usual_seconds: float, signals: Signals) -> tuple[Attempt, bool]:
    """Start a run and wait for the moment; False if the run was over before, or the moment did not come."""
    seen = store.snapshot()
    changes = 0
    attempt = store.start()
    while not attempt.run.is_over() and attempt.run.lasted_seconds < _PATIENCE * usual_seconds + _PATIENCE_SECONDS:
        signals.check()
        if moment.changes:
            now = store.snapshot()
            changes += now != seen
            seen = now
            left = 0.0 if changes >= moment.changes else usual_seconds / _LOOKS_PER_RUN
        else:
            left = attempt.run.began_at + moment.part * usual_seconds - time.monotonic()
        if left <= 0:
            return attempt, True
        signals.wait(left)
    return attempt, False
