"""First probe: many runs let go at the same moment, each setting a key of its own. Is every one that said OK there?

Each is stopped as soon as its program has been loaded, and let go when all of them are; two certainly overlapped when
each was seen running while the other was. A tool that is over too soon for that is tried again.
"""

import signal
from dataclasses import dataclass

from sampletool.audit.run import most_at_once
from sampletool.audit.store import Attempt, Candidate, Store, Tally
from sampletool.kit.safety.signals import Signals

_MOST_BURSTS = 20


@dataclass(frozen=True)
class Burst:
    bursts: int
    """How many it took until runs overlapped."""
    runs: int
    """In each burst."""
    most_at_once: int
    """So many were certainly running at the same moment."""
    tally: Tally

    name = "burst"

    @property
    def seen(self) -> str:
        return f"up to {self.most_at_once} at once, in burst {self.bursts} of {self.runs} runs"

    @property
    def inconclusive(self) -> str | None:
        return None if self.most_at_once > 1 else f"burst: in {self.bursts} bursts no two runs were seen to overlap"


def probe_burst(candidate: Candidate, signals: Signals, runs: int) -> Burst:
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
    attempts = []
    for _ in range(runs):
        attempt = store.start()
        attempt.run.send(signal.SIGSTOP)
        attempts.append(attempt)
    for attempt in attempts:
        attempt.run.let_go()
    return attempts
