"""A lock for threads that stops instead of waiting, so that the lab can see who waits for it.

Python's own locks would block a thread where the lab cannot see it. So `replace_locks` replaces
threading.Lock, and all that the standard library builds on it (RLock, Condition, Event, Semaphore,
Barrier, Queue) stops with it.
"""

import queue
import sys
import threading
import types
from dataclasses import dataclass
from types import FrameType
from typing import Any

from ..kit.stepping.effects import READ, TAKE, WRITE
from ..kit.stepping.protocol import BLOCKED
from .memory_access import mark_as_needing_no_stop
from .refusals import refuse
from .threads import Threads

_DEEPEST_SEARCH = 3
"""The number of objects inside of each other in which the name of a lock is searched."""

_MAIN_THREAD = "the main thread"


@dataclass(frozen=True)
class _Operation:
    """One kind of use of a lock, before which a worker stops."""

    event: str
    """The name of the event."""
    verb: str
    """The verb in the name of the step."""
    effect: str
    """The effect on the lock."""


_ACQUIRE = _Operation("lock.acquire", verb="acquire", effect=TAKE)
_WAIT = _Operation(BLOCKED, verb="acquire", effect=TAKE)
# An attempt that fails only reads. An attempt that succeeds reports TAKE afterwards.
_TRY = _Operation("lock.try", verb="try", effect=READ)
_RELEASE = _Operation("lock.release", verb="release", effect=WRITE)
_LOOK = _Operation("lock.look", verb="look at", effect=READ)


class SteppedLock:
    """A lock like threading.Lock, at which a worker stops."""

    _threads: Threads
    """The threads of this process. replace_locks() sets it before any lock exists."""
    _variables: dict[str, Any]
    """The variables of the file, in which a lock finds its name. replace_locks() sets them."""

    def __init__(self) -> None:
        self._resource = f"lock {self._threads.next_lock_number()}"
        """The name of this lock in the effects of a step."""
        self.holder: str | None = None
        """The worker that has taken the lock. None if the lock is free."""

    def acquire(self, blocking: bool = True, timeout: float = -1) -> bool:
        """Take the lock. Stop while another thread has it. Return whether the lock was taken."""
        worker = self._threads.current
        if worker is None:
            return self._acquire_in_main_thread(blocking)
        if timeout > 0:
            refuse("waits for a lock with a time limit; leave the limit out")
        caller = sys._getframe(1)
        if blocking:
            self._stop_until_free(caller)
        else:
            self._stop_before(_TRY, caller)
            if self.holder is not None:
                return False
        worker.effects = {self._resource: TAKE}
        self._set_holder(worker.name)
        return True

    def release(self) -> None:
        """Release the lock. As in Python, any thread may do this."""
        if self._threads.current is not None:
            self._stop_before(_RELEASE, caller=sys._getframe(1))
        if self.holder is None:
            raise RuntimeError("release unlocked lock")
        self.holder = None
        self._threads.locks_held.discard(self._resource)

    def locked(self) -> bool:
        """Return whether a thread has the lock."""
        if self._threads.current is not None:
            self._stop_before(_LOOK, caller=sys._getframe(1))
        return self.holder is not None

    def __enter__(self) -> bool:
        return self.acquire()

    def __exit__(self, *_error: object) -> None:
        self.release()

    def __repr__(self) -> str:
        if self.holder is None:
            return "free"
        return f"held by {self.holder}"

    def _is_owned(self) -> bool:
        """Return whether a thread has the lock. threading.Condition calls this."""
        return self.holder is not None

    def _at_fork_reinit(self) -> None:
        """Release the lock in a child process. threading.Condition has a method for this, too."""
        self.holder = None

    def name(self) -> str:
        """Return the name of this lock in the file."""
        return _find_name(self, self._variables, _DEEPEST_SEARCH) or "a lock"

    def _acquire_in_main_thread(self, blocking: bool) -> bool:
        """Take the lock for the main thread. Return False or raise an error if it is taken."""
        if self.holder is None:
            self._set_holder(_MAIN_THREAD)
            return True
        if not blocking:
            return False
        raise RuntimeError(f"{self.name()} was never released by {self.holder}")

    def _stop_until_free(self, caller: FrameType) -> None:
        """Stop the current worker before it takes the lock, until no other thread has it."""
        self._stop_before(_ACQUIRE, caller)
        # The lab lets this worker continue after a release. A third one may have the lock by then.
        while self.holder is not None:
            self._stop_before(_WAIT, caller)

    def _set_holder(self, holder: str) -> None:
        """Store that a worker or the main thread has taken the lock."""
        self.holder = holder
        self._threads.locks_held.add(self._resource)

    def _stop_before(self, operation: _Operation, caller: FrameType) -> None:
        """Stop the current worker before it uses this lock. `caller` is the frame that uses it."""
        # The effect on this lock is the only effect of the step.
        effects = {self._resource: operation.effect}
        self._threads.stop(
            frame=caller,
            event=operation.event,
            name=self.name(),
            effects=effects,
            # The lab needs these facts for the name of the step, and to ask whether the lock is
            # free.
            verb=operation.verb,
            lock=self._resource,
        )


mark_as_needing_no_stop(SteppedLock)
for _method in (SteppedLock.acquire, SteppedLock.release, SteppedLock.locked):
    mark_as_needing_no_stop(_method)


def _find_name(wanted: object, names: dict[Any, Any], depth: int) -> str | None:
    """Return the variable that holds the object, or an object around it, such as `account.lock`.

    `depth` is the number of objects inside of each other that are searched. Return None if no
    variable holds the object.
    """
    for name, value in names.items():
        if value is wanted:
            return str(name)
    if depth == 0:
        return None
    for name, value in names.items():
        is_skipped = isinstance(value, types.ModuleType | type) or str(name).startswith("__")
        if is_skipped:
            continue
        inner_name = _find_name(wanted, _parts_of(value), depth - 1)
        if inner_name is not None:
            return _name_of_part(str(name), value, inner_name)
    return None


def _name_of_part(name: str, value: object, inner_name: str) -> str:
    """Return the name of a part of this object, such as `account.lock` or `locks[0]`."""
    if isinstance(value, list | tuple | dict):
        return f"{name}[{inner_name}]"
    is_private = inner_name.startswith("_")
    if is_private:
        # An attribute such as _block of an RLock means nothing to a learner.
        return name
    return f"{name}.{inner_name}"


def _parts_of(value: object) -> dict[Any, Any]:
    """Return the items or the attributes of an object, by index, key or name."""
    if isinstance(value, dict):
        return value
    if isinstance(value, list | tuple):
        return dict(enumerate(value))
    return getattr(value, "__dict__", {})


def replace_locks(threads: Threads, variables: dict[str, Any]) -> None:
    """Replace the locks of `threading` with locks at which a worker stops.

    This affects only locks that are created from now on. `variables` are those of the file, in
    which a lock finds its name.
    """
    SteppedLock._threads = threads
    SteppedLock._variables = variables
    module: Any = threading
    module.Lock = SteppedLock
    module._allocate_lock = SteppedLock
    # Without the variant in C, threading.RLock() is written in Python, and uses the lock above.
    module._CRLock = None
    for method in ("acquire", "release", "__enter__", "__exit__"):
        # Only the lock inside of an RLock is shared.
        mark_as_needing_no_stop(getattr(module._PyRLock, method))
    # The variant in C would wait where the lab cannot see it.
    queue.SimpleQueue = queue._PySimpleQueue  # type: ignore[attr-defined,misc]
