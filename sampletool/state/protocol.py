"""What every store promises, and the records that its verbs take and return.

There are four backends: SQLite, PostgreSQL, Redis, and one inside a process. They keep the same
promises, and the conformance suite (tests/state) checks each sentence of this page on all of them.

* A verb is atomic: it happens completely or not at all, and no caller ever sees half of it.
* A verb ends by its deadline. If it fails, it raises an error of this program, never one of a
  driver.
* All times come from the clock of the store. The clock of a caller does not matter.
* Tasks are executed *at least once*. A fenced write happens *at most once* for each task, verb and
  name.

Not promised: an order that all callers agree on, fairness, an order across keys, or that an effect
outside of the store happens once.

These terms describe the rest:

* A *claim* gives a task to one worker until its *lease* expires.
* The *generation* of a task is a number that grows with each claim. So a task and a generation
  name one claim: `ann:3`.
* A *fence* is such a claim. A write with a fence is refused unless the claim is still current.

What each verb promises is in store.py.
"""

from dataclasses import dataclass
from typing import Annotated, Any, Literal, NamedTuple

from ..kit.contract.response import UNTRUSTED, Effect, value_text

MAX_INTEGER = 2**53 - 1
"""Counters stay between minus and plus this number. JSON readers round larger ones."""

KEY_LIFETIME_MS = 24 * 60 * 60 * 1000
"""How long an idempotency key is remembered. The result of a fenced write is kept with its task."""


class Fence(NamedTuple):
    """The task and the generation of a claim. A write can have them as its condition."""

    task: str
    generation: int


class Once(NamedTuple):
    """What keeps a write from happening twice, or too late.

    With a `key`, the write happens once within 24 hours, whichever client sends it. A repetition
    with the same key changes nothing and gets the result of the first write. With other arguments,
    it raises IdempotencyKeyReused.

    With a `fence`, the write raises LeaseLost unless the claim is still current. The store compares
    the generations in the same step as the write. A fence also implies a key that consists of the
    task, the verb and the name. So a second execution of the task gets the result of the first one,
    even if it writes something else.

    With both, the key is a part of the implied key: one task can write several times.
    """

    key: str | None = None
    fence: Fence | None = None


UNCONDITIONAL = Once()
"""A write that happens each time it is sent."""


class Counted(NamedTuple):
    """The result of adding to a counter."""

    value: int
    effect: Effect
    replayed: bool = False
    """Whether the change was made before. Then this is the remembered result."""


Repetition = Literal["harmless", "same key", "same fence", "unsafe"]
"""What happens if a write is sent twice.

* "harmless": the second one changes nothing, or makes the same change again.
* "same key", "same fence": the store notices, and returns the result of the first one.
* "unsafe": the change can be made twice.
"""


@dataclass(frozen=True)
class Value:
    """A value and its version."""

    key: str
    value: Annotated[Any, UNTRUSTED]
    version: int
    """Pass it to --if-version."""

    expires_at: str | None = None

    def lines(self) -> list[str]:
        """Return the value as one line."""
        return [value_text(self.value)]


class Written(NamedTuple):
    """The result of changing a value."""

    version: int
    """The version that the value has now. If it was removed, the version that it had."""

    effect: Effect
    replayed: bool = False


class NewTask(NamedTuple):
    """A task to add. Its body is any JSON value. Without an id, it gets a random one."""

    body: Any
    id: str | None = None


class Added(NamedTuple):
    """The result of adding tasks."""

    effects: list[tuple[str, Effect]]
    """The id of each task and what happened to it, in the order in which they were given."""

    replayed: bool = False


@dataclass(frozen=True)
class Claimed:
    """A task that belongs to the caller until `lease_expires_at`."""

    id: str
    generation: int
    """With the id, as in `ann:1`, it names the claim: for finish, renew, release and --fence."""

    body: Annotated[Any, UNTRUSTED]
    attempts: int
    """How often the task has been claimed, this time included."""

    lease_expires_at: str


class Claim(NamedTuple):
    """The result of claiming tasks."""

    tasks: list[Claimed]
    replayed: bool = False
    earlier_places: frozenset[str] = frozenset()
    """Where commands for these tasks may still run, because their worker was killed."""


class CleanedPage(NamedTuple):
    """The result of looking at some tasks, and removing the old ones."""

    removed: int
    next_position: int
    """The position of the last task that was looked at. 0 if no tasks follow it."""


Status = Literal["free", "claimed", "expired", "done", "failed", "cancelled"]
"""The status of a task.

An expired task is claimed, but its lease has expired. A failed one has used up its attempts.
"""


@dataclass(frozen=True)
class TaskState:
    """Everything that the store knows about a task."""

    id: str
    queue: str
    status: Status
    generation: int
    attempts: int
    body: Annotated[Any, UNTRUSTED]
    claimed_by: str | None
    claimed_at: str | None
    lease_expires_at: str | None
    free_at: str | None
    """When the task may be claimed. None if that is now, or if it is not free."""

    position: int
    """The place of the task in the order in which tasks were added."""


@dataclass(frozen=True)
class TaskDetails:
    """A task with its result, and with what is known of its failed attempts."""

    task: TaskState
    max_attempts: int
    """The limit that counts for the last claim. 0 means that there is none."""

    result: Annotated[Any, UNTRUSTED]
    """What `task_finish` has stored. None if it has stored nothing."""

    exit_codes: list[int]
    """The exit codes of failed attempts, the oldest first: the last ones, if there are many."""

    failure_tail: Annotated[str | None, UNTRUSTED]
    """The end of the output of the last failed attempt. None if no worker has reported one."""


@dataclass(frozen=True)
class QueueStats:
    """How many tasks of a queue have each status."""

    queue: Annotated[str, UNTRUSTED]
    free: int = 0
    claimed: int = 0
    expired: int = 0
    done: int = 0
    failed: int = 0
    cancelled: int = 0


@dataclass(frozen=True)
class FailedRun:
    """How an attempt at a task failed: what a worker reports when it gives the task back."""

    exit_code: int
    tail: str


@dataclass(frozen=True)
class Health:
    """The state of the server or the file behind a store."""

    server: str
    problems: list[str]
    """Everything that could make it lose a write that it has acknowledged."""

    clock_skew_ms: int
    """How far its clock is ahead of the clock of this machine."""

    settings: dict[str, str]
