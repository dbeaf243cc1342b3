"""One worker of a run: a stepped process that goes from one named step to the next, or has to wait."""

import fcntl
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from ..kit.stepping.tracer import Ended, Event, SteppedProcess
from .scenario import Step, Way, answer_in


@dataclass(eq=False)
class Worker:
    letter: str
    way: Way
    stepped: SteppedProcess
    check: Callable[[], None]
    """Raises when the whole call is to end."""
    done: int = 0
    at: Step | None = None
    """What it is about to do."""
    current: str = "start"
    is_blocked: bool = False
    holds: bool = False
    ended: Ended | None = None
    stood: dict[str, Any] = field(default_factory=dict)
    """Where it was before it last went on, and what its own copies held there."""
    tried: set[str] = field(default_factory=set)
    """The lock files it has asked for and not given back."""

    @property
    def is_over(self) -> bool:
        return self.stepped.at is None or self.ended is not None

    def look_where(self) -> None:
        known = self.stepped.at.facts if self.stepped.at else {}
        self.stood = {name: known.get(name) for name in ("at", "private")}

    def begin_step(self) -> Step | None:
        """What it is about to do is what it does now."""
        if self.at is not None:
            self.done += 1
            self.current = self.at.name
        return self.at

    def go_on(self) -> None:
        self.look_where()
        self.is_blocked = False
        self._do_event()
        self.come_to_a_step()

    def do_events(self, number: int) -> bool:
        """Let it do this many events of its step, and stop before the next one. Whether the step has so many."""
        for done in range(number):
            at = self.stepped.at
            if at is None or at.name == "blocked" or (done and self.way.step_at(at, self.current)):
                return False
            self._do_event()
        return True

    def signal(self, number: int) -> None:
        """It is met by a signal where it stands."""
        self.is_blocked = False
        if self.stepped.at is not None:
            self.tried.discard(self.stepped.at.path)
        self.stepped.signal(number)
        self.come_to_a_step()

    def kill(self) -> None:
        self.is_blocked = self.holds = False
        self.stepped.kill()

    def come_to_a_step(self) -> None:
        """Let it go on to its next named step, to its end, or until it has to wait."""
        while (event := self.stepped.at) is not None:
            self.check()
            if event.name == "blocked" or (self.way.steps and self._asks_again(event)):
                self.is_blocked = True
                return
            if step := self.way.step_at(event, self.current):
                self.is_blocked = step.waits and step.name == self.current
                self.at = step
                return
            self._do_event()
        self.at = None
        self.ended = self.stepped.finish()

    def complaint(self) -> str | None:
        """How it ended if it did not succeed: the code of its answer, or its status."""
        if self.ended is None or self.ended.status == 0:
            return None
        with suppress(KeyError, TypeError):
            return f"got {answer_in(self.ended)['error']['code']}"
        last = self.ended.stderr.decode("utf-8", "backslashreplace").strip().rpartition("\n")[2]
        return f"failed: {last or f'status {self.ended.status}'}"

    def _asks_again(self, event: Event) -> bool:
        if event.name != "fcntl.flock" or event.facts["operation"] & fcntl.LOCK_UN:
            return False
        again = event.path in self.tried
        self.tried.add(event.path)
        return again

    def _do_event(self) -> None:
        """It may be about to give a lock back; the gate in front of our locks is not one that makes it alone."""
        event = self.stepped.at
        if event is not None and event.name == "fcntl.flock" and event.facts["operation"] & fcntl.LOCK_UN:
            self.tried.discard(event.path)
            self.holds = self.holds and event.path.endswith(".gate")
        self.stepped.step()
