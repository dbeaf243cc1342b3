"""The verbs of every store, each with what it promises: what goes in is checked and encoded, what comes out decoded.

A backend says only what each verb does to its data. It is given the verb's name and plain values (JSON as text), and
answers plain values, in which a number may be a text, and nothing an empty one.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, NamedTuple

from ..kit.contract.errors import KeyNotFound
from ..kit.contract.response import Effect
from ..kit.program import PROGRAM
from . import protocol
from .errors import IdempotencyKeyReused
from .protocol import FREELY, KEY_LIFE_MS, LARGEST, Fence, NewTask, Once, TaskState, Value, Written
from .values import check, decode, digest, encode, once_key, say_time, with_ids


class Write(NamedTuple):
    """One change: a single atomic step, together with what keeps it from happening twice or too late."""

    verb: str
    arguments: tuple[Any, ...]
    """The first one is the name of what is changed."""
    once: Once = FREELY
    key: str | None = None
    """What the answer is remembered under."""
    said: str = ""
    """What a repetition has to agree with."""
    may_repeat: bool = True
    """Doing it again is harmless if nobody knows whether it was done."""

    @property
    def key_life_ms(self) -> int | None:
        return KEY_LIFE_MS if self.once.fence is None else None

    def reused(self) -> IdempotencyKeyReused:
        return IdempotencyKeyReused(key=self.once.key or f"{self.verb} {self.arguments[0]}")


class Store(ABC):
    """The verbs. Names are texts of 1 to 200 printable characters; lists are in the order of their names."""

    @abstractmethod
    def write(self, write: Write) -> tuple[Any, bool]:
        """With the answer comes whether it is the remembered one of an earlier call."""

    @abstractmethod
    def read(self, verb: str, *arguments: Any) -> Any:
        """Changes nothing; from one moment."""

    def counter_add(self, name: str, amount: int, once: Once = FREELY) -> protocol.Counted:
        """Add, and answer the value that this call made: N callers adding 1 leave N, and get N different answers.

        A counter that nobody added to is 0. COUNTER_RANGE if it would leave what JSON carries exactly; it stays.
        """
        (value, effect), replayed = self._write("counter_add", once, name=name, amount=amount)
        return protocol.Counted(int(value), effect, replayed)

    def counter_get(self, name: str) -> int:
        return int(self._read("counter_get", name=name))

    def counter_list(self, after: str, limit: int) -> list[tuple[str, int]]:
        """Up to `limit` counters whose names come after that one."""
        return [(name, int(value)) for name, value in self._read("counter_list", cursor=after, limit=limit)]

    def state_get(self, key: str) -> Value:
        """The value and its version, from one moment. KEY_NOT_FOUND if there is none, or it has expired."""
        for row in self._read("state_get", key=key):
            return _value(row)
        raise KeyNotFound(key=key, where="the store", suggestion=f"`{PROGRAM} state list` shows the keys there are.")

    def state_set(
        self, key: str, value: Any, *, if_version: int | None = None, expires_ms: int | None = None, once: Once = FREELY
    ) -> Written:
        """Replace the value. Its version grows with every change and is never used twice, not even after `unset`.

        With `if_version` only if that is the version it has, else VERSION_CONFLICT with the actual one and the value
        untouched; 0 means that there must be none. With `expires_ms` it ends by itself after that long, without it
        never: setting it again replaces that too.
        """
        given = {"key": key, "value": encode(value), "if_version": if_version, "expires": expires_ms}
        (version, effect), replayed = self._write("state_set", once, **given)
        return Written(int(version), effect, replayed)

    def state_unset(self, key: str, *, if_version: int | None = None, once: Once = FREELY) -> Written:
        """Remove it; `unchanged`, version 0, if there is none."""
        (version, effect), replayed = self._write("state_unset", once, key=key, if_version=if_version)
        return Written(int(version), effect, replayed)

    def state_list(self, prefix: str, after: str, limit: int) -> list[Value]:
        return [_value(row) for row in self._read("state_list", prefix=prefix, cursor=after, limit=limit)]

    def task_add(self, queue: str, tasks: list[NewTask], once: Once = FREELY, *, delay_ms: int = 0) -> protocol.Added:
        """Add all of them, in this order, or none; they may be claimed after the delay.

        Ids are the store's, not the queue's. A known id with the same body and queue is `unchanged`, whatever has
        become of it; with another it is TASK_CONFLICT.
        """
        said = [*([task.id, task.body] for task in tasks), *([delay_ms] if delay_ms else [])]
        effects, replayed = self._write("task_add", once, said, queue=queue, tasks=with_ids(tasks), delay=delay_ms)
        return protocol.Added([(task, effect) for task, effect in effects], replayed)

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
        finish: Sequence[Fence] = (),
    ) -> protocol.Claim:
        """The oldest tasks that are free or past their lease, up to `count`, each with a new, higher generation.

        A task is in at most one living claim. None is no error. If the claim ends without `finish` and was the
        `max_attempts`th (0: no limit), the task is failed instead of free. `is_named`: the caller chose the worker's
        name, so a repetition with the same key has to agree with it. `finish`: claims of ours that are done, finished
        in the same step; one that is lost refuses it all, and then nothing is finished and nothing claimed.
        """
        for claim in finish:
            check(task=claim.task, generation=claim.generation)
        given = {"worker": worker, "lease": lease_ms, "count": count, "max_attempts": max_attempts}
        said = [*given.values(), *finish][0 if is_named else 1 :]
        rows, replayed = self._write("task_claim", once, said, queue=queue, **given, finish=list(finish))
        return protocol.Claim([_claimed(row) for row in rows], replayed)

    def task_renew(self, task: str, generation: int, *, lease_ms: int) -> str:
        """A new end of the lease, counted from now. LEASE_LOST after expiry, even if nobody has claimed it since."""
        return say_time(self._write("task_renew", task=task, generation=generation, lease=lease_ms)[0])

    def task_finish(self, task: str, generation: int) -> Effect:
        """Done, for ever. Again with the same generation is `unchanged`; after expiry it is fine until a re-claim."""
        effect: Effect = self._write("task_finish", task=task, generation=generation)[0]
        return effect

    def task_release(self, task: str, generation: int, *, delay_ms: int = 0) -> Effect:
        """Give it back, to be claimed by anybody after the delay. Ends the claim; again is `unchanged`."""
        effect: Effect = self._write("task_release", task=task, generation=generation, delay=delay_ms)[0]
        return effect

    def task_retry(self, task: str) -> Effect:
        """Make a failed task free again, with all its attempts; `unchanged` if it is free, else TASK_NOT_FAILED."""
        effect: Effect = self._write("task_retry", task=task)[0]
        return effect

    def task_clean(self, older_ms: int, statuses: Sequence[str], after: int = 0, limit: int = 500) -> tuple[int, int]:
        """Look at `limit` tasks in the order of adding, and remove those that ended that long ago, as `done` or
        `failed`, with what their fences remember. How many were removed, and where to go on; 0 if there is nothing
        left to look at. The id of a removed task means nothing any more: adding it adds a new task."""
        given = {"older": older_ms, "statuses": ",".join(statuses), "cursor": after, "limit": limit}
        removed, cursor = self._write("task_clean", **given)[0]
        return int(removed), int(cursor)

    def task_left(self, queue: str, most: int = LARGEST) -> int:
        """How many tasks of the queue are neither done nor failed, counting up to `most`."""
        return int(self._read("task_left", queue=queue, most=most))

    def task_list(self, queue: str | None, status: str | None, after: int, limit: int) -> list[TaskState]:
        """In the order of adding."""
        return [*map(_task_state, self._read("task_list", queue=queue, status=status, cursor=after, limit=limit))]

    @abstractmethod
    def health(self) -> protocol.Health: ...

    @abstractmethod
    def close(self) -> None: ...

    def _write(self, verb: str, once: Once | None = None, said: Any = None, /, **given: Any) -> tuple[Any, bool]:
        """Nothing keeps a verb without `once` from being repeated: it is harmless. `said` if a repetition has to agree
        with something else than all that is given."""
        check(**given)
        arguments = tuple(given.values())
        if once is None:
            return self.write(Write(verb, arguments))
        key = once_key(once, verb, arguments[0])
        agreed = "" if key is None else digest(verb, arguments[0], *(arguments[1:] if said is None else said))
        return self.write(Write(verb, arguments, once, key, agreed, may_repeat=key is not None))

    def _read(self, verb: str, /, **given: Any) -> Any:
        check(**given)
        return self.read(verb, *given.values())


def _value(row: Any) -> Value:
    key, text, version, ends = row
    return Value(key, decode(text), int(version), _when(ends))


def _claimed(row: Any) -> protocol.Claimed:
    task, generation, body, attempts, ends = row
    return protocol.Claimed(task, int(generation), decode(body), int(attempts), say_time(ends))


def _task_state(row: Any) -> TaskState:
    task, queue, status, generation, attempts, by, at, due, position, body = row
    head = (task, queue, status, int(generation), int(attempts), decode(body), by or None, _when(at))
    lease_ends, free = (due, None) if by else (None, due)
    return TaskState(*head, _when(lease_ends), _when(free), int(position))


def _when(at_ms: Any) -> str | None:
    return say_time(at_ms) if at_ms else None
