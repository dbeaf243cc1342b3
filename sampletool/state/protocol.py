"""What every store promises, whatever it is made of. The conformance suite executes this prose on each of them.

A verb is one atomic step: it happens wholly or not at all, and nobody sees half of it. All times are the store's
own: a caller's clock never matters. Every verb ends by its deadline, with one of our errors. Work is done **at least
once**; a fenced write happens **at most once** for a task, a verb and a name.

Not promised: a global order under concurrency, fairness, that effects outside the store happen once, order across
keys. What each verb promises is in store.py; here is what they take and answer.
"""

from typing import Annotated, Any, Literal, NamedTuple

from ..kit.contract.response import UNTRUSTED, Effect, value_text

LARGEST = 2**53 - 1
"""Counters stay within plus or minus this: JSON readers round beyond."""
KEY_LIFE_MS = 24 * 60 * 60 * 1000
"""How long an idempotency key is remembered; one that a fence implies, as long as its task."""


class Fence(NamedTuple):
    """Who writes: the task, and which claim of it."""

    task: str
    generation: int


class Once(NamedTuple):
    """What keeps a write from happening twice, or too late.

    `key`: the same key again gets the first answer and changes nothing, from any client, for 24 hours; with other
    arguments it is IDEMPOTENCY_KEY_REUSED. `fence`: refused with LEASE_LOST unless that claim is still the current
    one, in the same step as the write; and it implies a key made of task, verb and name, whatever the generation,
    so that a second execution gets the answer of the first. Both together: a key within that task.
    """

    key: str | None = None
    fence: Fence | None = None


FREELY = Once()


class Counted(NamedTuple):
    value: int
    effect: Effect
    replayed: bool = False


class Value(NamedTuple):
    key: str
    value: Annotated[Any, UNTRUSTED]
    version: int
    """Pass it to --if-version."""
    expires_at: str | None = None

    def lines(self) -> list[str]:
        return [value_text(self.value)]


class Written(NamedTuple):
    """The version that a value now has; the one it had, if it was removed."""

    version: int
    effect: Effect
    replayed: bool = False


class NewTask(NamedTuple):
    """`body` is any JSON value. Without an id it gets one of its own."""

    body: Any
    id: str | None = None


class Added(NamedTuple):
    """`created` or `unchanged` for each id, in the order of the bodies."""

    effects: list[tuple[str, Effect]]
    replayed: bool = False


class Claimed(NamedTuple):
    """A task that is ours until `lease_expires_at`, as this generation."""

    id: str
    generation: int
    """Behind the id, as in `ann:1`, it is the claim: for finish, renew, release and --fence."""
    body: Annotated[Any, UNTRUSTED]
    attempts: int
    lease_expires_at: str


class Claim(NamedTuple):
    tasks: list[Claimed]
    replayed: bool = False


Status = Literal["free", "claimed", "expired", "done", "failed"]
"""expired: claimed, but past its lease; failed: its attempts are used up."""


class TaskState(NamedTuple):
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
    position: int
    """Where it stands in the order of adding."""


class Health(NamedTuple):
    server: str
    problems: list[str]
    """Everything about it that could lose what it has acknowledged."""
    clock_skew_ms: int
    settings: dict[str, str]
