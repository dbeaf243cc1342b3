"""One worker of a run: a stepped process that takes one step after the other, or has to wait.

A `Worker` stops at the steps that its scenario names. An `EveryStepWorker` stops at every call that
uses files. It also knows what each step has read and changed, and whether the worker is in a loop
that waits for a file.
"""

import fcntl
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from ..kit.stepping.effects import ADD, PROCESSES, READ, TAKE, WRITE, Effects, combine, conflict
from ..kit.stepping.tracer import Ended, Event, SteppedProcess
from .every_step import belongs_to_step, name_of
from .scenario import Step, Variant, response_of


@dataclass(eq=False)
class Worker:
    """A worker that stops at the named steps."""

    letter: str
    variant: Variant
    stepped: SteppedProcess
    check: Callable[[], None]
    """A function that raises an error when the whole command has to end."""
    steps_begun: int = 0
    """The number of steps that the worker has begun."""
    next_step: Step | None = None
    """The step that the worker is about to take. None if it has ended."""
    current_step_name: str = "start"
    """The name of the last step that the worker has begun."""
    is_blocked: bool = False
    """Whether the worker waits for another worker."""
    holds: bool = False
    """Whether the worker holds the lock."""
    ended: Ended | None = None
    """The exit code and output. None while the worker runs, and after it was killed."""
    position: dict[str, Any] = field(default_factory=dict)
    """The line and the private values of the worker before its last step."""
    requested_locks: set[str] = field(default_factory=set)
    """The lock files that the worker has tried to lock, and has not released."""

    @property
    def is_over(self) -> bool:
        """Whether the worker has exited or was killed."""
        return self.stepped.next_event is None or self.ended is not None

    def can_continue(self) -> bool:
        """Return whether the worker can take its next step now."""
        return not self.is_blocked

    def has_succeeded(self) -> bool:
        """Return whether the last step got the lock that it asked for.

        This is always true here: a worker that does not get the lock is blocked.
        """
        return True

    def record_position(self) -> None:
        """Store the line and the private values of the worker in `position`."""
        facts: dict[str, Any] = {}
        if self.stepped.next_event is not None:
            facts = self.stepped.next_event.facts
        self.position = {"at": facts.get("at"), "private": facts.get("private")}

    def begin_step(self) -> Step | None:
        """Count the next step as begun, and return it. Return None if the worker has ended."""
        if self.next_step is not None:
            self.steps_begun += 1
            self.current_step_name = self.next_step.name
        return self.next_step

    def take_step(self) -> None:
        """Run the worker until its next step, its end, or a lock for which it has to wait."""
        self.record_position()
        self.is_blocked = False
        self._run_event()
        self.run_to_next_step()

    def do_events(self, number: int) -> bool:
        """Run the first `number` events of the current step. Return False if it has fewer."""
        for position in range(number):
            event = self.stepped.next_event
            if event is None or event.name == "blocked":
                return False
            next_step = self.variant.step_at(event, self.current_step_name)
            if position > 0 and next_step is not None:
                # This event belongs to the next step already.
                return False
            self._run_event()
        return True

    def signal(self, number: int) -> None:
        """Send a signal to the worker, and run it to its next step."""
        self.is_blocked = False
        if self.stepped.next_event is not None:
            self.requested_locks.discard(self.stepped.next_event.path)
        self.stepped.signal(number)
        self.run_to_next_step()

    def kill(self) -> None:
        """Kill the worker with SIGKILL."""
        self.is_blocked = False
        self.holds = False
        self.stepped.kill()

    def run_to_next_step(self) -> None:
        """Run the worker until its next named step, its end, or a lock for which it has to wait."""
        while (event := self.stepped.next_event) is not None:
            self.check()
            if event.name == "blocked":
                self.is_blocked = True
                return
            if self.variant.steps and self._requests_lock_again(event):
                self.is_blocked = True
                return
            step = self.variant.step_at(event, self.current_step_name)
            if step is not None:
                # A worker that comes back to such a step waits in a loop.
                self.is_blocked = step.waits_in_loop and step.name == self.current_step_name
                self.next_step = step
                return
            self._run_event()
        self.next_step = None
        self.ended = self.stepped.finish()

    def failure(self) -> str | None:
        """Return a short text about the failure of the worker, such as `got LOCK_HELD`.

        Return None if the worker has succeeded, still runs, or was killed.
        """
        if self.ended is None or self.ended.status == 0:
            return None
        # A worker that crashes prints no response, or one without an error code.
        with suppress(KeyError, TypeError):
            return f"got {response_of(self.ended)['error']['code']}"
        text = self.ended.stderr.decode("utf-8", "backslashreplace").strip()
        last_line = text.rpartition("\n")[2]
        return f"failed: {last_line or f'exit code {self.ended.status}'}"

    def _requests_lock_again(self, event: Event) -> bool:
        """Return whether the worker asks again for a lock that it has not got or not released.

        Add the lock to `requested_locks`. A second request means that the worker polls: its first
        request has failed, so it has to wait for another worker.
        """
        if event.name != "fcntl.flock" or event.facts["operation"] & fcntl.LOCK_UN:
            return False
        is_repetition = event.path in self.requested_locks
        self.requested_locks.add(event.path)
        return is_repetition

    def _run_event(self) -> None:
        """Run the next event. After the release of a lock, the worker does not hold it any more."""
        event = self.stepped.next_event
        if event is not None and event.name == "open":
            # A worker that opens the lock file again does not repeat a request that has failed.
            self.requested_locks.discard(event.path)
        if event is not None and _is_release(event):
            self.requested_locks.discard(event.path)
            # A worker that releases the gate in front of a lock of the kit still holds the lock.
            self.holds = self.holds and event.path.endswith(".gate")
        self.stepped.step()


def _is_release(event: Event) -> bool:
    """Return whether this event releases a lock."""
    if event.name == "os.close":
        return True
    return event.name == "fcntl.flock" and bool(event.facts["operation"] & fcntl.LOCK_UN)


@dataclass(eq=False)
class EveryStepWorker(Worker):
    """A worker that stops at every call that uses files."""

    effects: Effects = field(default_factory=dict)
    """The resources that the last step has read or changed."""
    step_events: list[Event] = field(default_factory=list)
    """The events of the last step."""
    taken_locks: set[str] = field(default_factory=set)
    """The locks that the worker has taken. It may have released some of them."""
    reads_by_place: dict[str, Effects] = field(default_factory=dict)
    """For each place in the code: the resources that the worker has read since it was there.

    A place is removed when one of these resources changes.
    """
    waits_for: Effects | None = None
    """The resources that the worker reads in a loop until another worker changes one of them.

    None if the worker is not in such a loop.
    """
    last_named_step: str = "start"
    """The last step with a name from the scenario. All other steps are named after their call."""

    def can_continue(self) -> bool:
        """Return whether the worker can take its next step without waiting for a lock or file."""
        event = self.stepped.next_event
        if event is None or self.waits_for is not None:
            return False
        if event.name == "blocked" or _waits_in_kernel(event):
            return self.stepped.has_free_lock()
        return True

    def take_step(self) -> None:
        """Run the worker until its next step or its end. Collect the effects of the step."""
        self.record_position()
        self.step_events = []
        self._run_event()
        self.run_to_next_step()
        self.effects = self.stepped.take_effects()
        self._add_lock_effects()
        self._detect_waiting()

    def has_succeeded(self) -> bool:
        """Return whether the last step got the lock that it asked for."""
        kinds = [kind for name, kind in self.effects.items() if name.startswith("lock ")]
        if not kinds:
            return True
        return TAKE in kinds

    def do_events(self, number: int) -> bool:
        """Return False: each step has only one event, so no strike can come within a step."""
        return False

    def kill(self) -> None:
        """Kill the worker with SIGKILL. The kernel releases its locks."""
        super().kill()
        self.effects = {PROCESSES: ADD, **dict.fromkeys(self.taken_locks, WRITE)}

    def run_to_next_step(self) -> None:
        """Run the worker until its next step or its end."""
        while (event := self.stepped.next_event) is not None:
            self.check()
            step = self._step_at(event)
            if step is not None:
                self.next_step = step
                return
            self._run_event()
        self.next_step = None
        self.ended = self.stepped.finish()

    def notice_changes(self, effects: Effects) -> None:
        """Stop waiting if a step of another worker, with these effects, changed what was read."""
        changes = {name: kind for name, kind in effects.items() if kind != READ}
        for place, reads in list(self.reads_by_place.items()):
            if conflict(reads, changes):
                del self.reads_by_place[place]
        if self.waits_for is not None and conflict(self.waits_for, changes):
            self.waits_for = None

    def _step_at(self, event: Event) -> Step | None:
        """Return the step that begins with this event, or None if the event belongs to a step."""
        for step in self.variant.steps:
            if step.begins_with(event, self.last_named_step):
                return step
        if event.name == "blocked":
            return Step(name=self.current_step_name, event=event.name)
        if belongs_to_step(event, self.step_events):
            return None
        name = name_of(event)
        if not name:
            return None
        return Step(name=name, event=event.name)

    def begin_step(self) -> Step | None:
        """Count the next step as begun, and return it. Return None if the worker has ended."""
        step = super().begin_step()
        if step in self.variant.steps:
            self.last_named_step = self.current_step_name
        return step

    def _run_event(self) -> None:
        """Run the next event, and add it to the events of the step."""
        if self.stepped.next_event is not None:
            self.step_events.append(self.stepped.next_event)
        super()._run_event()

    def _add_lock_effects(self) -> None:
        """Add the locks that the step has taken to `taken_locks`.

        If the worker has ended, add the release of all locks to the effects of the step.
        """
        for resource, kind in self.effects.items():
            if kind == TAKE and resource.startswith("lock "):
                self.taken_locks.add(resource)
        if self.is_over:
            # The kernel releases the locks of a process that exits.
            released = dict.fromkeys(self.taken_locks, WRITE)
            self.effects = combine(self.effects, {PROCESSES: ADD, **released})

    def _detect_waiting(self) -> None:
        """Set `waits_for` if the worker is at the same place again, and nothing has changed."""
        changes_something = set(self.effects.values()) - {READ}
        if changes_something:
            self.reads_by_place.clear()
        for place, reads in self.reads_by_place.items():
            self.reads_by_place[place] = combine(reads, self.effects)
        if self.stepped.next_event is None:
            return
        current_place = self.stepped.next_event.facts.get("place")
        if current_place is None:
            return
        if self.reads_by_place.get(current_place):
            self.waits_for = self.reads_by_place[current_place]
        else:
            self.reads_by_place[current_place] = {}


def _waits_in_kernel(event: Event) -> bool:
    """Return whether this event is a request for a lock that may have to wait."""
    if event.name != "fcntl.flock":
        return False
    return not event.facts["operation"] & (fcntl.LOCK_NB | fcntl.LOCK_UN)
