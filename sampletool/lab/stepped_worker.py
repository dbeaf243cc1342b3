"""One worker of a run: a stepped process that takes one step after the other, or has to wait.

A `Worker` stops at the steps that its scenario names. An `EveryStepWorker` stops at every call that
uses files. It also knows what each step has read and changed.

A worker may wait in a loop until another worker changes a file, for example
`while not os.path.exists("ready"): pass`. Such a worker would always have a next step, and the
number of schedules would be infinite. So an `EveryStepWorker` remembers the *places* to which it
has come, see place.py, and what it has read since. If it comes to a place again without having
changed anything, it will read the same again and do the same again. So it *waits for* what it has
read: it is not chosen until another worker changes one of these resources.
"""

import fcntl
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from ..kit.stepping.effects import (
    ADD,
    PROCESSES,
    READ,
    TAKE,
    WRITE,
    Effects,
    combine,
    conflict,
    is_lock,
)
from ..kit.stepping.protocol import BLOCKED
from ..kit.stepping.tracer import Ended, Event, SteppedProcess
from .every_step import belongs_to_step, name_of_step
from .scenario import Step, Variant, response_of


@dataclass(eq=False)
class Worker:
    """A worker that stops at the named steps."""

    name: str
    """The name of the worker: A, B and so on."""
    variant: Variant
    stepped: SteppedProcess
    check_signals: Callable[[], None]
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
        # Before the event, because a recording shows the line from which a step begins.
        self.record_position()
        # A blocked worker tries again. If it still has to wait, run_to_next_step() blocks it again.
        self.is_blocked = False
        self._run_event()
        self.run_to_next_step()

    def do_events(self, number: int) -> bool:
        """Run the first `number` events of the current step. Return False if it has fewer."""
        for events_run in range(number):
            event = self.stepped.next_event
            if event is None or event.name == BLOCKED:
                return False
            next_step = self.variant.step_at(event, self.current_step_name)
            if next_step is not None and events_run > 0:
                # This event belongs to the next step already.
                return False
            self._run_event()
        return True

    def signal(self, number: int) -> None:
        """Send a signal to the worker, and run it to its next step."""
        self.is_blocked = False
        if self.stepped.next_event is not None:
            # The worker stops before the same event again. This is no second request for the lock.
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
        while self.stepped.next_event is not None:
            self.check_signals()
            event = self.stepped.next_event
            if self._has_to_wait(event):
                self.is_blocked = True
                return
            if _is_lock_request(event):
                self.requested_locks.add(event.path)
            step = self.variant.step_at(event, self.current_step_name)
            if step is not None:
                # A worker that comes back to such a step waits in a loop.
                self.is_blocked = step.waits_in_loop and step.name == self.current_step_name
                self.next_step = step
                return
            self._run_event()
        self._finish()

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
        if last_line:
            return f"failed: {last_line}"
        return f"failed: exit code {self.ended.status}"

    def _has_to_wait(self, event: Event) -> bool:
        """Return whether the worker cannot get the lock that it asks for with this event.

        A worker that asks again for a lock polls: its first request has failed.
        """
        if event.name == BLOCKED:
            return True
        is_repetition = _is_lock_request(event) and event.path in self.requested_locks
        return is_repetition and bool(self.variant.steps)

    def _run_event(self) -> None:
        """Let the worker execute its next event."""
        if self.stepped.next_event is not None:
            self._update_locks(self.stepped.next_event)
        self.stepped.step()

    def _update_locks(self, event: Event) -> None:
        """Update the requested locks and `holds` for an event that is about to happen."""
        if event.name == "open":
            # A worker that opens the lock file again does not repeat a request that has failed.
            self.requested_locks.discard(event.path)
        if _is_release(event):
            self.requested_locks.discard(event.path)
            # A worker that releases the gate in front of a lock of the kit still holds the lock.
            is_gate = event.path.endswith(".gate")
            self.holds = self.holds and is_gate

    def _finish(self) -> None:
        """Store the exit code and output of a worker that has run to its end."""
        self.next_step = None
        self.ended = self.stepped.finish()


def _is_lock_request(event: Event) -> bool:
    """Return whether the event asks for a lock."""
    return event.name == "fcntl.flock" and not event.facts["operation"] & fcntl.LOCK_UN


def _is_release(event: Event) -> bool:
    """Return whether the event releases a lock."""
    if event.name == "os.close":
        return True
    return event.name == "fcntl.flock" and bool(event.facts["operation"] & fcntl.LOCK_UN)


def _may_wait_for_lock(event: Event) -> bool:
    """Return whether the event asks for a lock, and waits until the lock is free."""
    return _is_lock_request(event) and not event.facts["operation"] & fcntl.LOCK_NB


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
        if event.name == BLOCKED or _may_wait_for_lock(event):
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
        # First add what this step has read, then look what was read since the worker was here.
        self._update_reads_by_place()
        self.waits_for = self._reads_since_same_place()

    def has_succeeded(self) -> bool:
        """Return whether the last step got the lock that it asked for."""
        lock_effects = [kind for resource, kind in self.effects.items() if is_lock(resource)]
        if not lock_effects:
            return True
        return TAKE in lock_effects

    def do_events(self, number: int) -> bool:
        """Return False: each step has only one event, so no fault can come within a step."""
        return False

    def kill(self) -> None:
        """Kill the worker with SIGKILL. The kernel releases its locks."""
        super().kill()
        self.effects = {PROCESSES: ADD, **dict.fromkeys(self.taken_locks, WRITE)}

    def run_to_next_step(self) -> None:
        """Run the worker until its next step or its end."""
        while self.stepped.next_event is not None:
            self.check_signals()
            step = self._step_at(self.stepped.next_event)
            if step is not None:
                self.next_step = step
                return
            self._run_event()
        self._finish()

    def notice_changes(self, effects: Effects) -> None:
        """Stop waiting if a step of another worker, with these effects, changed what was read."""
        changes = {resource: kind for resource, kind in effects.items() if kind != READ}
        for place, reads in list(self.reads_by_place.items()):
            if conflict(reads, changes):
                del self.reads_by_place[place]
        if self.waits_for is not None and conflict(self.waits_for, changes):
            self.waits_for = None

    def begin_step(self) -> Step | None:
        """Count the next step as begun, and return it. Return None if the worker has ended."""
        step = super().begin_step()
        if step in self.variant.steps:
            self.last_named_step = self.current_step_name
        return step

    def _step_at(self, event: Event) -> Step | None:
        """Return the step that begins with this event, or None if the event belongs to a step."""
        for step in self.variant.steps:
            if step.begins_with(event, self.last_named_step):
                return step
        if event.name == BLOCKED:
            return Step(name=self.current_step_name, event=event.name)
        if belongs_to_step(event, self.step_events):
            return None
        name = name_of_step(event)
        if not name:
            return None
        return Step(name=name, event=event.name)

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
            if kind == TAKE and is_lock(resource):
                self.taken_locks.add(resource)
        if self.is_over:
            # The kernel releases the locks of a process that exits.
            released = dict.fromkeys(self.taken_locks, WRITE)
            self.effects = combine(self.effects, {PROCESSES: ADD, **released})

    def _update_reads_by_place(self) -> None:
        """Add the reads of the last step to all places. Forget the places if it changed anything.

        A worker that has changed something may do something else when it comes to a place again.
        """
        has_only_read = set(self.effects.values()) <= {READ}
        if not has_only_read:
            self.reads_by_place.clear()
        for place, reads in self.reads_by_place.items():
            self.reads_by_place[place] = combine(reads, self.effects)

    def _reads_since_same_place(self) -> Effects | None:
        """Return what the worker has read since it was at its current place before.

        Return None if it was not there before, or has read nothing since. Then remember the place.
        """
        if self.stepped.next_event is None:
            return None
        place = self.stepped.next_event.facts.get("place")
        if place is None:
            return None
        reads = self.reads_by_place.get(place)
        if reads:
            return reads
        self.reads_by_place[place] = {}
        return None
