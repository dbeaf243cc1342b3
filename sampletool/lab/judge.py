"""Holds the invariant of a scenario against everything that happens in a run."""

from collections.abc import Iterable
from typing import Any

from sampletool.lab.scenario import History, Moment, Scenario


class Judge:
    """Is shown every moment; keeps every sentence of the invariant, in the order in which they came."""

    def __init__(self, scenario: Scenario, letters: str, now: Any) -> None:
        self._scenario = scenario
        self._letters = letters
        self._moments: list[Moment] = []
        self._statuses: dict[str, int] = {}
        self._answers: dict[str, Any] = {}
        self.now = now
        self.reasons: dict[str, None] = {}

    def see(self, moment: Moment) -> bool:
        """Whether something is broken with this moment that was not before."""
        self._moments.append(moment)
        self.now = moment.after
        if moment.status is not None:
            self._statuses[moment.worker] = moment.status
        if moment.answer is not None:
            self._answers[moment.worker] = moment.answer
        before = len(self.reasons)
        self._ask(moment.after, is_over=False)
        return len(self.reasons) > before

    def end(self) -> None:
        self._ask(self.now, is_over=True)

    def end_in_the_dark(self, possible: Iterable[Any]) -> None:
        """`possible`: what there may be after the power cut."""
        for now in possible:
            self._ask(now, is_over=True, prefix="After the power cut it is possible that ")

    def _ask(self, now: Any, *, is_over: bool, prefix: str = "") -> None:
        history = History(self._letters, self._moments, now, self._statuses, self._answers, is_over)
        for reason in self._scenario.invariant(history):
            self.reasons[prefix + reason] = None
