"""Second probe: one run is stopped in the middle; another has to end within the deadline; the first goes on.

Who is stopped between reading and writing overwrites, when it goes on, what the other wrote. Who is stopped holding a
lock makes the other wait: then it has to give up in time and say why.
"""

from dataclasses import dataclass

from sampletool.audit.failure import Failure
from sampletool.audit.moments import run_until, staggered
from sampletool.audit.store import Candidate, Store, Tally
from sampletool.kit.safety.signals import Signals

_ENOUGH_REFUSALS = 2
"""Each may take as long as the tool is willing to wait; they do not differ."""


@dataclass(frozen=True)
class Stall:
    stopped: int
    """Runs that were stopped before they were over."""
    refused_meanwhile: int
    hung_meanwhile: int
    tally: Tally

    name = "stall"

    @property
    def seen(self) -> str:
        return f"{self.stopped} stopped; meanwhile {self.refused_meanwhile} refused, {self.hung_meanwhile} hung"

    @property
    def inconclusive(self) -> str | None:
        return None if self.stopped else "stall: no run could be stopped before it was over"


def probe_stall(candidate: Candidate, signals: Signals, by_time: int) -> Stall:
    with Store(candidate, signals) as store:
        before = store.prepare()
        stopped = refused = hung = 0
        usual_seconds = before.run.lasted_seconds
        for moment in staggered(by_time, usual_seconds):
            one, is_running = run_until(moment, store, usual_seconds, signals)
            if is_running and one.run.stop(signals):
                stopped += 1
                (outcome,) = store.finish(store.start())
                refused += isinstance(outcome, Failure)
                hung += outcome == "hung"
            one.run.let_go()
            store.finish(one)
            if hung or refused >= _ENOUGH_REFUSALS:
                break
        return Stall(stopped, refused, hung, store.tally(before))
