"""Third probe: one run is killed with -9 in the middle; another has to succeed, and everything is still readable.

Who left a lock behind, or half a file, stands in the way of everybody who comes after.
"""

from dataclasses import dataclass

from sampletool.audit.failure import Failure
from sampletool.audit.moments import run_until, staggered
from sampletool.audit.store import Candidate, Store, Tally
from sampletool.kit.safety.signals import Signals

_TRIES = 3
_BETWEEN_TRIES_SECONDS = 0.5
"""What a killed run had started may need a moment to end; who is told to come back later does just that."""


@dataclass(frozen=True)
class Kill:
    killed: int
    """Runs that were killed before they were over."""
    blocked_afterwards: bool
    """After one of them nobody could change anything any more: a stale lock, or a file that is broken."""
    tally: Tally

    name = "kill"

    @property
    def seen(self) -> str:
        return f"{self.killed} killed; afterwards {'nobody could go on' if self.blocked_afterwards else 'all went on'}"

    @property
    def inconclusive(self) -> str | None:
        return None if self.killed else "kill: no run could be killed before it was over"


def probe_kill(candidate: Candidate, signals: Signals, by_time: int) -> Kill:
    with Store(candidate, signals) as store:
        before = store.prepare()
        killed, blocked = 0, False
        usual_seconds = before.run.lasted_seconds
        for moment in staggered(by_time, usual_seconds):
            one, is_running = run_until(moment, store, usual_seconds, signals)
            if is_running:
                one.run.end()
                killed += 1
                blocked = not _succeeds(store, signals, candidate.deadline_seconds)
                if blocked:
                    break
            else:
                store.finish(one)
        return Kill(killed, blocked, store.tally(before))


def _succeeds(store: Store, signals: Signals, longest_rest_seconds: float) -> bool:
    for tries_left in reversed(range(_TRIES)):
        (outcome,) = store.finish(store.start())
        if not isinstance(outcome, Failure):
            return outcome == "claimed"
        if tries_left:
            hint = max(outcome.retry_after_seconds or 0, _BETWEEN_TRIES_SECONDS)
            signals.wait(min(hint, longest_rest_seconds))
            signals.check()
    return False
