"""What every store promises, whatever it is made of. The conformance suite executes this prose on each of them.

A verb is one atomic step: it happens wholly or not at all, and nobody sees half of it. All times are the store's
own, in milliseconds since 1970: a caller's clock never matters. Every verb ends by its deadline, with one of our
errors. Work is done **at least once**; a fenced write happens **at most once** for a task, a verb and a name.

Not promised: a global order under concurrency, fairness, that effects outside the store happen once, order across
keys. A default body here would check and then act, which is wrong in every backend: so there is none.
"""

# The methods of a protocol: a docstring is their body.
# pyright: reportReturnType=false

from dataclasses import dataclass, field
from typing import Any, Protocol

from sampletool.kit.contract.answer import Effect

LARGEST = 2**53 - 1
"""Counters stay within plus or minus this: JSON readers round beyond."""
KEY_LIFE_MS = 24 * 60 * 60 * 1000
"""How long an idempotency key is remembered; one that a fence implies, as long as its task."""


@dataclass(frozen=True)
class Fence:
    """Who writes: the task, and which claim of it."""

    task: str
    generation: int


@dataclass(frozen=True)
class Once:
    """What keeps a write from happening twice, or too late.

    `key`: the same key again gets the first answer and changes nothing, from any client, for 24 hours; with other
    arguments it is IDEMPOTENCY_KEY_REUSED. `fence`: refused with LEASE_LOST unless that claim is still the current
    one, in the same step as the write; and it implies a key made of task, verb and name, whatever the generation,
    so that a second execution gets the answer of the first. Both together: a key within that task.
    """

    key: str | None = None
    fence: Fence | None = None


FREELY = Once()


@dataclass(frozen=True)
class Counted:
    value: int
    effect: Effect
    replayed: bool = False


@dataclass(frozen=True)
class Value:
    key: str
    value: Any
    version: int
    expires_at: int | None = None


@dataclass(frozen=True)
class Written:
    """The version that a value now has; the one it had, if it was removed."""

    version: int
    effect: Effect
    replayed: bool = False


@dataclass(frozen=True)
class NewTask:
    """`body` is any JSON value. Without an id it gets one of its own."""

    body: Any
    id: str | None = None


@dataclass(frozen=True)
class Added:
    """`created` or `unchanged` for each id, in the order of the bodies."""

    effects: list[tuple[str, Effect]]
    replayed: bool = False


@dataclass(frozen=True)
class Claimed:
    """A task that is ours until `lease_expires_at`, as this generation."""

    id: str
    generation: int
    body: Any
    attempts: int
    lease_expires_at: int


@dataclass(frozen=True)
class Claim:
    tasks: list[Claimed]
    replayed: bool = False


@dataclass(frozen=True)
class TaskState:
    """`status`: free, claimed, expired (claimed, but past its lease), done, or failed (its attempts are used up)."""

    id: str
    queue: str
    status: str
    generation: int
    attempts: int
    claimed_by: str | None
    claimed_at: int | None
    due_at: int | None
    """When a free task may be claimed, or when the lease of a claimed one ends."""
    position: int
    """Where it stands in the order of adding: the cursor of the page after it."""
    body: Any


@dataclass(frozen=True)
class Health:
    server: str
    problems: list[str]
    """Everything about it that could lose what it has acknowledged."""
    clock_skew_ms: int
    settings: dict[str, str] = field(default_factory=dict)


class Store(Protocol):
    """The verbs. Names are texts of 1 to 200 printable characters; lists are in the order of their names."""

    def counter_add(self, name: str, amount: int, once: Once = FREELY) -> Counted:
        """Add, and answer the value that this call made: N callers adding 1 leave N, and get N different answers.

        A counter that nobody added to is 0. COUNTER_RANGE if it would leave what JSON carries exactly; it stays.
        """

    def counter_get(self, name: str) -> int: ...

    def counter_list(self, after: str, limit: int) -> list[tuple[str, int]]:
        """Up to `limit` counters whose names come after that one."""

    def state_get(self, key: str) -> Value:
        """The value and its version, from one moment. KEY_NOT_FOUND if there is none, or it has expired."""

    def state_set(
        self, key: str, value: Any, *, if_version: int | None = None, expires_ms: int | None = None, once: Once = FREELY
    ) -> Written:
        """Replace the value. Its version grows with every change and is never used twice, not even after `unset`.

        With `if_version` only if that is the version it has, else VERSION_CONFLICT with the actual one and the value
        untouched; 0 means that there must be none. With `expires_ms` it ends by itself after that long, without it
        never: setting it again replaces that too.
        """

    def state_unset(self, key: str, *, if_version: int | None = None, once: Once = FREELY) -> Written:
        """Remove it; `unchanged`, version 0, if there is none."""

    def state_list(self, prefix: str, after: str, limit: int) -> list[Value]: ...

    def task_add(self, queue: str, tasks: list[NewTask], once: Once = FREELY, *, delay_ms: int = 0) -> Added:
        """Add all of them, in this order, or none; they may be claimed after the delay.

        Ids are the store's, not the queue's. A known id with the same body and queue is `unchanged`, whatever has
        become of it; with another it is TASK_CONFLICT.
        """

    def task_claim(
        self,
        queue: str,
        worker: str,
        *,
        lease_ms: int,
        count: int = 1,
        max_attempts: int = 0,
        once: Once = FREELY,
        is_named: bool = True,
    ) -> Claim:
        """The oldest tasks that are free or past their lease, up to `count`, each with a new, higher generation.

        A task is in at most one living claim. None is no error. If the claim ends without `finish` and was the
        `max_attempts`th (0: no limit), the task is failed instead of free. `is_named`: the caller chose the worker's
        name, so a repetition with the same key has to agree with it.
        """

    def task_renew(self, task: str, generation: int, *, lease_ms: int) -> int:
        """A new end of the lease, counted from now. LEASE_LOST after expiry, even if nobody has claimed it since."""

    def task_finish(self, task: str, generation: int) -> Effect:
        """Done, for ever. Again with the same generation is `unchanged`; after expiry it is fine until a re-claim."""

    def task_release(self, task: str, generation: int, *, delay_ms: int = 0) -> Effect:
        """Give it back, to be claimed by anybody after the delay. Ends the claim; again is `unchanged`."""

    def task_retry(self, task: str) -> Effect:
        """Make a failed task free again, with all its attempts; `unchanged` if it is free, else TASK_NOT_FAILED."""

    def task_clean(self, older_ms: int, statuses: list[str], after: int = 0, limit: int = 500) -> tuple[int, int]:
        """Look at `limit` tasks in the order of adding, and remove those that ended that long ago, as `done` or
        `failed`, with what their fences remember. How many were removed, and where to go on; 0 if there is nothing
        left to look at. The id of a removed task means nothing any more: adding it adds a new task."""

    def task_left(self, queue: str, most: int = LARGEST) -> int:
        """How many tasks of the queue are neither done nor failed, counting up to `most`."""

    def task_list(self, queue: str | None, status: str | None, after: int, limit: int) -> list[TaskState]:
        """In the order of adding."""

    def task_count(self, queue: str | None) -> dict[str, int]:
        """How many tasks have each status; one that none has is left out."""

    def health(self) -> Health: ...

    def close(self) -> None: ...
