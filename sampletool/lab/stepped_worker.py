"""One worker of a run: a stepped process that goes from one step to the next, or has to wait.

There are two kinds. A `Worker` stops at the steps that its scenario names. An `EveryStepWorker`
stops at every call that has to do with files. It also knows what each step has read and changed,
and whether the worker is in a loop that waits for a file.
"""

import fcntl
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from ..kit.stepping.effects import ADD, PROCESSES, READ, TAKE, WRITE, Effects, combine, conflict
from ..kit.stepping.tracer import Ended, Event, SteppedProcess
from .every_step import belongs_to_step, name_of
from .scenario import Step, Way, answer_in


@dataclass(eq=False)
class Worker:
    """A worker that stops at the named steps."""

    letter: str
    way: Way
    stepped: SteppedProcess
    check: Callable[[], None]
    """Raises an error when the whole command has to end."""
    done: int = 0
    """How many steps it has begun."""
    at: Step | None = None
    """The step that it is about to take."""
    current: str = "start"
    """The name of the step that it has begun last."""
    is_blocked: bool = False
    holds: bool = False
    ended: Ended | None = None
    stood: dict[str, Any] = field(default_factory=dict)
    """Where it stood before it last continued, and what its own copies held there."""
    tried: set[str] = field(default_factory=set)
    """The lock files that it has asked for and not released."""

    @property
    def is_over(self) -> bool:
        """Whether it has exited or was killed."""
        return self.stepped.at is None or self.ended is not None

    def can_go_on(self) -> bool:
        """Return whether its next step can be taken now."""
        return not self.is_blocked

    def has_succeeded(self) -> bool:
        """Return whether its last step got the lock that it asked for. Others are blocked then."""
        return True

    def look_where(self) -> None:
        """Remember where it stands."""
        facts = self.stepped.at.facts if self.stepped.at else {}
        self.stood = {name: facts.get(name) for name in ("at", "private")}

    def begin_step(self) -> Step | None:
        """Count the step that it is about to take, and return it."""
        if self.at is not None:
            self.done += 1
            self.current = self.at.name
        return self.at

    def go_on(self) -> None:
        """Take one step."""
        self.look_where()
        self.is_blocked = False
        self._do_event()
        self.come_to_a_step()

    def do_events(self, number: int) -> bool:
        """Do this many events of its step, and stop before the next.

        Return whether there are so many.
        """
        for done in range(number):
            at = self.stepped.at
            if at is None or at.name == "blocked":
                return False
            is_next_step = self.way.step_at(at, self.current) is not None
            if done > 0 and is_next_step:
                return False
            self._do_event()
        return True

    def signal(self, number: int) -> None:
        """Send it a signal where it stands."""
        self.is_blocked = False
        if self.stepped.at is not None:
            self.tried.discard(self.stepped.at.path)
        self.stepped.signal(number)
        self.come_to_a_step()

    def kill(self) -> None:
        """Kill it with SIGKILL."""
        self.is_blocked = False
        self.holds = False
        self.stepped.kill()

    def come_to_a_step(self) -> None:
        """Let it continue to its next named step, to its end, or until it has to wait."""
        while (event := self.stepped.at) is not None:
            self.check()
            if event.name == "blocked" or (self.way.steps and self._asks_again(event)):
                self.is_blocked = True
                return
            step = self.way.step_at(event, self.current)
            if step is not None:
                self.is_blocked = step.waits and step.name == self.current
                self.at = step
                return
            self._do_event()
        self.at = None
        self.ended = self.stepped.finish()

    def complaint(self) -> str | None:
        """Return how it failed: the code of its response, or its exit code. None after success."""
        if self.ended is None or self.ended.status == 0:
            return None
        with suppress(KeyError, TypeError):
            return f"got {answer_in(self.ended)['error']['code']}"
        text = self.ended.stderr.decode("utf-8", "backslashreplace").strip()
        last_line = text.rpartition("\n")[2]
        return f"failed: {last_line or f'exit code {self.ended.status}'}"

    def _asks_again(self, event: Event) -> bool:
        if event.name != "fcntl.flock" or event.facts["operation"] & fcntl.LOCK_UN:
            return False
        asks_again = event.path in self.tried
        self.tried.add(event.path)
        return asks_again

    def _do_event(self) -> None:
        """Do the next event. If it releases a lock, the worker does not hold it any more.

        The gate in front of the kit's locks is not one that makes a worker alone.
        """
        event = self.stepped.at
        if event is not None and event.name == "open":
            # It opens the lock file again, so it does not repeat a request that has failed.
            self.tried.discard(event.path)
        if event is not None and _is_release(event):
            self.tried.discard(event.path)
            self.holds = self.holds and event.path.endswith(".gate")
        self.stepped.step()


def _is_release(event: Event) -> bool:
    if event.name == "os.close":
        return True
    return event.name == "fcntl.flock" and bool(event.facts["operation"] & fcntl.LOCK_UN)


@dataclass(eq=False)
class EveryStepWorker(Worker):
    """A worker that stops at every call."""

    effects: Effects = field(default_factory=dict)
    """What its last step has read and changed."""
    own_events: list[Event] = field(default_factory=list)
    """The events of its last step."""
    locks: set[str] = field(default_factory=set)
    """The locks that it has taken. It may have released them: they are an upper bound."""
    looks: dict[str, Effects] = field(default_factory=dict)
    """Places to which it came, with what it has read since then, if nothing of it has changed."""
    waits_for: Effects | None = None
    """What it reads in a loop, without an effect until another worker changes it."""
    last_named: str = "start"

    def can_go_on(self) -> bool:
        """Return whether its next step makes sense now: it waits for no lock and no file."""
        event = self.stepped.at
        if event is None or self.waits_for is not None:
            return False
        if event.name == "blocked" or _waits_in_kernel(event):
            return self.stepped.has_free_lock()
        return True

    def go_on(self) -> None:
        """Take one step."""
        self.look_where()
        self.own_events = []
        self._do_event()
        self.come_to_a_step()
        self.effects = self.stepped.take_effects()
        self._note_locks()
        self._note_looks()

    def has_succeeded(self) -> bool:
        """Return whether its last step got the lock that it asked for."""
        kinds = [kind for name, kind in self.effects.items() if name.startswith("lock ")]
        return not kinds or TAKE in kinds

    def do_events(self, number: int) -> bool:
        """Return False: every event is a step, so there are none inside of one."""
        return False

    def kill(self) -> None:
        """Kill it. The kernel releases its locks."""
        super().kill()
        self.effects = {PROCESSES: ADD, **dict.fromkeys(self.locks, WRITE)}

    def come_to_a_step(self) -> None:
        """Let it continue to its next step, or to its end."""
        while (event := self.stepped.at) is not None:
            self.check()
            step = self._step_at(event)
            if step is not None:
                self.at = step
                return
            self._do_event()
        self.at = None
        self.ended = self.stepped.finish()

    def see_changes(self, effects: Effects) -> None:
        """Note what another worker has read and changed: something to wait for may have come."""
        changes = {name: kind for name, kind in effects.items() if kind != READ}
        for place, reads in list(self.looks.items()):
            if conflict(reads, changes):
                del self.looks[place]
        if self.waits_for is not None and conflict(self.waits_for, changes):
            self.waits_for = None

    def _step_at(self, event: Event) -> Step | None:
        for step in self.way.steps:
            if step.is_meant(event, self.last_named):
                return step
        if event.name == "blocked":
            return Step(self.current, event.name)
        if belongs_to_step(event, self.own_events):
            return None
        name = name_of(event)
        if not name:
            return None
        return Step(name, event.name)

    def begin_step(self) -> Step | None:
        """Count the step that it is about to take, and return it."""
        step = super().begin_step()
        if step in self.way.steps:
            self.last_named = self.current
        return step

    def _do_event(self) -> None:
        if self.stepped.at is not None:
            self.own_events.append(self.stepped.at)
        super()._do_event()

    def _note_locks(self) -> None:
        for resource, kind in self.effects.items():
            if kind == TAKE and resource.startswith("lock "):
                self.locks.add(resource)
        if self.is_over:
            # The kernel releases the locks of a process that exits.
            released = dict.fromkeys(self.locks, WRITE)
            self.effects = combine(self.effects, {PROCESSES: ADD, **released})

    def _note_looks(self) -> None:
        """Find out whether it stands where it stood before, and nothing has changed since."""
        kinds = set(self.effects.values())
        if kinds - {READ}:
            self.looks.clear()
        for place, reads in self.looks.items():
            self.looks[place] = combine(reads, self.effects)
        if self.stepped.at is None:
            return
        current_place = self.stepped.at.facts.get("place")
        if current_place is None:
            return
        if self.looks.get(current_place):
            self.waits_for = self.looks[current_place]
        else:
            self.looks[current_place] = {}


def _waits_in_kernel(event: Event) -> bool:
    if event.name != "fcntl.flock":
        return False
    return not event.facts["operation"] & (fcntl.LOCK_NB | fcntl.LOCK_UN)
