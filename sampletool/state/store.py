"""The verbs of every store, and what each of them promises.

`Store` checks and encodes the arguments of a verb, and decodes its result. A backend implements
`write` and `read`: it gets the name of a verb and plain arguments (JSON as text), and returns plain
data. In this data, a number may be a text, and a missing value an empty text.

No verb has a default implementation that looks first and changes something later. In every
backend, another client could come between.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from ..kit.contract.errors import KeyNotFound
from ..kit.contract.response import Effect
from ..kit.program import PROGRAM
from .errors import FencedWriteRepeated, IdempotencyKeyReused
from .protocol import (
    KEY_LIFETIME_MS,
    MAX_INTEGER,
    UNCONDITIONAL,
    Added,
    Claim,
    Claimed,
    CleanedPage,
    Counted,
    FailedRun,
    Fence,
    Health,
    NewTask,
    Once,
    QueueStats,
    Repetition,
    TaskDetails,
    TaskState,
    Value,
    Written,
)
from .values import (
    check_arguments,
    decode,
    encode,
    fingerprint,
    format_time,
    ids_and_bodies,
    remembered_key,
)


@dataclass(frozen=True)
class Write:
    """A change of the store, and what protects it from happening twice or too late."""

    verb: str
    name: str
    """The name of what is changed. It is the first argument of the verb."""

    arguments: dict[str, Any]
    """All arguments of the verb by their names, in order."""

    once: Once
    key: str | None
    """The key under which the store remembers the result. None if it does not."""

    fingerprint: str
    """A hash of the arguments. A repetition with the same key must have the same."""

    repetition: Repetition

    @property
    def key_lifetime_ms(self) -> int | None:
        """How long the result is remembered. None if that is as long as the task of the fence."""
        if self.once.fence is not None:
            return None
        return KEY_LIFETIME_MS

    def describe(self) -> str:
        """Return the change for messages, such as `counter add hits`."""
        verb = self.verb.replace("_", " ")
        return f"{verb} {self.name}"

    def key_reused_error(self) -> IdempotencyKeyReused:
        """Return the error for a `key` that the store knows from a write with other arguments.

        If the caller has passed a key, the error names it. With a fence alone, `key` was built from
        the task, the verb and the name. The caller has never seen such a key, so the error names
        the claim and the change instead.
        """
        if self.once.key is not None:
            return IdempotencyKeyReused(key=self.once.key)
        fence = self.once.fence
        # A write has a `key` only if the caller has passed a key or a fence.
        assert fence is not None
        claim = f"{fence.task}:{fence.generation}"
        return FencedWriteRepeated(claim=claim, change=self.describe())


class Reply(NamedTuple):
    """What a backend returns for a write."""

    data: Any
    is_replayed: bool = False
    """Whether this is the remembered result of an earlier write."""


class Store(ABC):
    """The verbs.

    Names are texts of 1 to 200 printable characters. Lists are sorted by name, tasks by the order
    in which they were added.

    The *effect* of a change is what it did to the store, such as `created` or `unchanged`.

    A verb that takes `once` can be protected from happening twice, or too late (see `Once`). By
    default (UNCONDITIONAL), it is not: the change is made each time. A change that is *replayed*
    has happened before. It is not made again, and returns the remembered result.
    """

    @abstractmethod
    def write(self, write: Write) -> Reply:
        """Make the change."""

    @abstractmethod
    def read(self, verb: str, arguments: dict[str, Any]) -> Any:
        """Return the data that the verb reads, all from one moment. Change nothing."""

    @abstractmethod
    def health(self) -> Health:
        """Return the state of the server or the file behind this store."""

    @abstractmethod
    def close(self) -> None:
        """Close all connections."""

    # Counters

    def counter_add(self, name: str, amount: int, once: Once = UNCONDITIONAL) -> Counted:
        """Add to a counter, and return the value that this call has produced.

        If N callers add 1, they get N different values, and the counter has grown by N. A new
        counter starts at 0. Raise CounterRange if the sum would be too large; the counter then
        keeps its value.
        """
        reply = self._write_once("counter_add", {"name": name, "amount": amount}, once)
        value, effect = reply.data
        return Counted(int(value), effect, reply.is_replayed)

    def counter_get(self, name: str) -> int:
        """Return the value of a counter. A counter that does not exist is 0."""
        return int(self._read("counter_get", {"name": name}))

    def counter_list(self, after: str, limit: int) -> list[tuple[str, int]]:
        """Return up to `limit` counters whose names follow `after`."""
        rows = self._read("counter_list", {"cursor": after, "limit": limit})
        return [(name, int(value)) for name, value in rows]

    # Values

    def state_get(self, key: str) -> Value:
        """Return a value and its version. Raise KeyNotFound if there is none, or it has expired."""
        rows = self._read("state_get", {"key": key})
        if not rows:
            hint = f"To list the keys, run `{PROGRAM} state list`."
            raise KeyNotFound(key=key, where="the store", suggestion=hint)
        return _to_value(rows[0])

    def state_set(
        self,
        key: str,
        value: Any,
        *,
        if_version: int | None = None,
        expires_ms: int | None = None,
        once: Once = UNCONDITIONAL,
    ) -> Written:
        """Set a value, and return its new version.

        The version grows with every change. No version of a key is ever used twice, not even after
        the value was removed.

        With `if_version`, raise VersionConflict unless this is the current version; 0 means that
        there must be no value. With `expires_ms`, the value is removed after that time. Without it,
        the value stays, even if it replaces one that would expire.
        """
        arguments = {
            "key": key,
            "value": encode(value),
            "if_version": if_version,
            "expires": expires_ms,
        }
        reply = self._write_once("state_set", arguments, once)
        version, effect = reply.data
        return Written(int(version), effect, reply.is_replayed)

    def state_unset(
        self,
        key: str,
        *,
        if_version: int | None = None,
        once: Once = UNCONDITIONAL,
    ) -> Written:
        """Remove a value, and return the version that it had: 0 if there was no value.

        With `if_version`, raise VersionConflict unless this is the current version. The effect is
        `deleted`, or `unchanged` if there was no value.
        """
        reply = self._write_once("state_unset", {"key": key, "if_version": if_version}, once)
        version, effect = reply.data
        return Written(int(version), effect, reply.is_replayed)

    def state_list(self, prefix: str, after: str, limit: int) -> list[Value]:
        """Return up to `limit` values whose keys have the prefix and follow `after`."""
        arguments = {"prefix": prefix, "cursor": after, "limit": limit}
        return [_to_value(row) for row in self._read("state_list", arguments)]

    # Tasks

    def task_add(
        self,
        queue: str,
        tasks: list[NewTask],
        once: Once = UNCONDITIONAL,
        *,
        delay_ms: int = 0,
        max_attempts: int | None = None,
    ) -> Added:
        """Add all of these tasks, in this order, or none. They can be claimed after the delay.

        `max_attempts` is a limit for these tasks, which wins over that of a claim.

        An id is unique in the store, not only in its queue. If a task with the same id, body and
        queue exists, its effect is `unchanged`, whatever its status is. Raise TaskConflict if a
        task has the same id, but another body or queue.
        """
        arguments = {
            "queue": queue,
            "tasks": ids_and_bodies(tasks),
            "delay": delay_ms,
            "max_attempts": max_attempts,
        }
        # What the caller has passed, and not the random ids: a repetition gets other random ids.
        compared_values: list[Any] = [[task.id, task.body] for task in tasks]
        # Defaults are left out. So the hash is the same as in older versions without these options.
        if delay_ms:
            compared_values.append(delay_ms)
        if max_attempts is not None:
            compared_values.append({"max_attempts": max_attempts})
        reply = self._write_once("task_add", arguments, once, compared_values)
        effects = [(task_id, effect) for task_id, effect in reply.data]
        return Added(effects, reply.is_replayed)

    def task_claim(
        self,
        queue: str,
        worker: str,
        *,
        lease_ms: int,
        count: int = 1,
        max_attempts: int = 0,
        once: Once = UNCONDITIONAL,
        is_named: bool = True,
        finish: Sequence[Fence] = (),
        request_id: str = "",
        is_repetition: bool = False,
        place: str | None = None,
    ) -> Claim:
        """Claim up to `count` tasks: the oldest ones that are free, or whose lease has expired.

        Each gets a new, higher generation. A task is in at most one current claim. If there is no
        task to claim, the result is empty.

        If a claim ends without `task_finish`, and it was the attempt number `max_attempts`, the
        task fails instead of becoming free. 0 means that there is no limit.

        `finish` are claims to finish in the same step. If one of them is not current, raise
        LeaseLost: nothing is finished then, and nothing is claimed.

        If the caller has chosen the name of the worker (`is_named`), a repetition with the same key
        must have the same name.

        A worker that does not know whether its claim has succeeded sends the same `request_id`
        again, and says that it is a repetition. It gets the tasks that the first request has
        claimed, if it still holds them. This costs less than an idempotency key. With a `count` of
        0, a repetition claims no other tasks.

        `place` says where the commands of the worker run. The result contains the places of earlier
        claims of the same tasks: commands of workers that were killed may still run there.
        """
        for claim in finish:
            check_arguments({"task": claim.task, "generation": claim.generation})
        arguments = {
            "queue": queue,
            "worker": worker,
            "lease": lease_ms,
            "count": count,
            "max_attempts": max_attempts,
            "request": request_id,
            "repetition": int(is_repetition),
            "place": place,
            "finish": list(finish),
        }
        compared_values = [lease_ms, count, max_attempts, *finish]
        if is_named:
            compared_values.insert(0, worker)
        reply = self._write_once("task_claim", arguments, once, compared_values)
        return Claim(
            tasks=[_to_claimed(row) for row in reply.data],
            replayed=reply.is_replayed,
            earlier_places=_find_earlier_places(reply.data),
        )

    def task_renew(self, task: str, generation: int, *, lease_ms: int) -> str:
        """Extend the lease of a claim: let it expire `lease_ms` from now. Return that time.

        Raise LeaseLost if the lease has expired, even if no other worker has claimed the task.
        """
        arguments = {"task": task, "generation": generation, "lease": lease_ms}
        return format_time(self._write_repeatable("task_renew", arguments).data)

    def task_finish(self, task: str, generation: int, *, result: Any = None) -> Effect:
        """Mark a task as done, permanently, and store its result: any JSON value.

        After its lease has expired, this still succeeds until another worker claims the task.
        Return `unchanged` if the claim was finished before. Raise LeaseLost if the claim is not
        current.
        """
        arguments = {
            "task": task,
            "generation": generation,
            "value": None if result is None else encode(result),
        }
        effect: Effect = self._write_repeatable("task_finish", arguments).data
        return effect

    def task_release(
        self,
        task: str,
        generation: int,
        *,
        delay_ms: int = 0,
        failure: FailedRun | None = None,
        is_unused: bool = False,
    ) -> Effect:
        """Give a task back, so that any worker can claim it after the delay.

        `failure` is how the attempt failed, for `task_show`. If this was the last attempt, the task
        fails. But an attempt that `is_unused` does not count: nothing was executed for the claim.

        This ends the claim. Return `unchanged` if the claim was released before. Raise LeaseLost if
        the claim is not current.
        """
        exit_code = None
        tail = None
        if failure is not None:
            exit_code = str(failure.exit_code)
            # Encoded: the output of a command can contain NUL.
            tail = encode(failure.tail)
        arguments = {
            "task": task,
            "generation": generation,
            "delay": delay_ms,
            "exit_code": exit_code,
            "value": tail,
            "unused": int(is_unused),
        }
        effect: Effect = self._write_repeatable("task_release", arguments).data
        return effect

    def task_cancel(self, task: str) -> Effect:
        """Cancel a task: it will not be claimed any more.

        If it is claimed, its claim ends. So the worker's next renewal is refused, and the worker
        terminates the command.

        Return `unchanged` if the task was cancelled before. Raise TaskEnded if the task is done or
        failed.
        """
        effect: Effect = self._write_repeatable("task_cancel", {"task": task}).data
        return effect

    def task_retry(self, task: str) -> Effect:
        """Make a failed task free again, as if none of its attempts had been made.

        Return `unchanged` if the task is free already. Raise TaskNotFailed if it is neither failed
        nor free.
        """
        effect: Effect = self._write_repeatable("task_retry", {"task": task}).data
        return effect

    def task_retry_all(self, queue: str, limit: int = 500) -> int:
        """Make up to `limit` failed tasks of a queue free, and return how many these were."""
        arguments = {"queue": queue, "limit": limit}
        return int(self._write_repeatable("task_retry_all", arguments).data)

    def task_clean(
        self,
        min_age_ms: int,
        statuses: Sequence[str],
        after: int = 0,
        limit: int = 500,
    ) -> CleanedPage:
        """Remove tasks that ended long ago, with the results of their fenced writes.

        One call looks at up to `limit` tasks, in the order in which they were added: those whose
        position is higher than `after`. It removes those that ended at least `min_age_ms` ago with
        one of these statuses: `done`, `failed`, `cancelled`. To continue, pass the `next_position`
        of the result as `after`, until it is 0.

        The id of a removed task can be used for a new task.
        """
        arguments = {
            "older": min_age_ms,
            "statuses": ",".join(statuses),
            "cursor": after,
            "limit": limit,
        }
        removed, next_position = self._write_repeatable("task_clean", arguments).data
        return CleanedPage(removed=int(removed), next_position=int(next_position))

    def task_left(self, queue: str, limit: int = MAX_INTEGER) -> int:
        """Return how many tasks of the queue are neither done nor failed. Count up to `limit`."""
        return int(self._read("task_left", {"queue": queue, "limit": limit}))

    def task_list(
        self,
        queue: str | None,
        status: str | None,
        after: int,
        limit: int,
        *,
        newest_first: bool = False,
    ) -> list[TaskState]:
        """Return up to `limit` tasks that follow the position `after`, the oldest first.

        Without a queue or a status, this is about all of them. With `newest_first`, the tasks are
        in the opposite order, and 0 means to start with the newest one.
        """
        arguments = {
            "queue": queue,
            "status": status,
            "cursor": after,
            "limit": limit,
            "newest": int(newest_first),
        }
        return [_to_task_state(row) for row in self._read("task_list", arguments)]

    def task_show(self, task: str) -> TaskDetails:
        """Return everything about a task. Raise TaskNotFound if there is none."""
        return _to_task_details(self._read("task_show", {"task": task}))

    def task_stats(self, queue: str | None = None) -> list[QueueStats]:
        """Return how many tasks have each status, for one queue or for each, sorted by name."""
        counts: dict[str, dict[str, int]] = {}
        if queue is not None:
            counts[queue] = {}
        for name, status, count in self._read("task_stats", {"queue": queue}):
            counts.setdefault(name, {})[status] = int(count)
        return [QueueStats(queue=name, **counts[name]) for name in sorted(counts)]

    def _write_repeatable(self, verb: str, arguments: dict[str, Any]) -> Reply:
        """Check the arguments, and make a change that no key or fence protects.

        Making such a change twice does no harm. The first argument is the name of what is changed.
        """
        check_arguments(arguments)
        name, *_other_values = arguments.values()
        write = Write(
            verb=verb,
            name=str(name),
            arguments=arguments,
            once=UNCONDITIONAL,
            key=None,
            fingerprint="",
            repetition="harmless",
        )
        return self.write(write)

    def _write_once(
        self,
        verb: str,
        arguments: dict[str, Any],
        once: Once,
        compared_values: list[Any] | None = None,
    ) -> Reply:
        """Check the arguments, and make a change that `once` can protect from happening twice.

        The first argument is the name of what is changed. A repetition with the same key must have
        the same name and the same `compared_values`. By default, these are the values of all other
        arguments.
        """
        check_arguments(arguments)
        name, *other_values = arguments.values()
        if compared_values is None:
            compared_values = other_values
        key = remembered_key(once, verb, str(name))
        hash_of_arguments = ""
        # Without a key, the store remembers nothing that a repetition could be compared with.
        if key is not None:
            hash_of_arguments = fingerprint(verb, name, *compared_values)
        write = Write(
            verb=verb,
            name=str(name),
            arguments=arguments,
            once=once,
            key=key,
            fingerprint=hash_of_arguments,
            repetition=_repetition_of(once),
        )
        return self.write(write)

    def _read(self, verb: str, arguments: dict[str, Any]) -> Any:
        check_arguments(arguments)
        return self.read(verb, arguments)


def _repetition_of(once: Once) -> Repetition:
    """Return what happens if the store gets a write with this `once` twice."""
    if once.key is not None:
        return "same key"
    if once.fence is not None:
        return "same fence"
    return "unsafe"


def _to_value(row: Sequence[Any]) -> Value:
    """Return the value in a row of state_get or state_list."""
    key, text, version, expires_at_ms = row
    return Value(
        key=key,
        value=decode(text),
        version=int(version),
        expires_at=_time_or_none(expires_at_ms),
    )


def _to_claimed(row: Sequence[Any]) -> Claimed:
    """Return the task in a row of task_claim."""
    task_id, generation, body, attempts, lease_expires_at_ms, *_earlier_place = row
    return Claimed(
        id=task_id,
        generation=int(generation),
        body=decode(body),
        attempts=int(attempts),
        lease_expires_at=format_time(lease_expires_at_ms),
    )


def _find_earlier_places(rows: Sequence[Sequence[Any]]) -> frozenset[str]:
    """Return the places of earlier claims in the rows of task_claim."""
    earlier_places: set[str] = set()
    for _id, _generation, _body, _attempts, _lease_expires_at_ms, *last_column in rows:
        # The last column is the place. It is missing in a result that version 0.2 has remembered,
        # and empty if the task has not been claimed before.
        earlier_places.update(place for place in last_column if place)
    return frozenset(earlier_places)


def _to_task_state(row: Sequence[Any]) -> TaskState:
    """Return the task in a row of task_list."""
    (
        task_id,
        queue,
        status,
        generation,
        attempts,
        claimed_by,
        claimed_at_ms,
        due_at_ms,
        position,
        body,
    ) = row
    # A task is due when its lease expires, or, if it is not claimed, when its delay ends.
    due_at = _time_or_none(due_at_ms)
    is_claimed = bool(claimed_by)
    return TaskState(
        id=task_id,
        queue=queue,
        status=status,
        generation=int(generation),
        attempts=int(attempts),
        body=decode(body),
        claimed_by=claimed_by or None,
        claimed_at=_time_or_none(claimed_at_ms),
        lease_expires_at=due_at if is_claimed else None,
        free_at=None if is_claimed else due_at,
        position=int(position),
    )


def _to_task_details(row: Sequence[Any]) -> TaskDetails:
    """Return the task in the row of task_show."""
    # Every backend returns the columns of a listed task, and then four more, in this order. If
    # there is a column more or less, `_to_task_state` raises a ValueError.
    *listed_columns, max_attempts, result, exit_codes_text, failure_tail = row
    exit_codes: list[int] = []
    if exit_codes_text:
        # One text with spaces, such as "1 137".
        exit_codes = [int(exit_code) for exit_code in exit_codes_text.split()]
    return TaskDetails(
        task=_to_task_state(listed_columns),
        max_attempts=int(max_attempts),
        result=_decoded_or_none(result),
        exit_codes=exit_codes,
        failure_tail=_decoded_or_none(failure_tail),
    )


def _decoded_or_none(text: str | None) -> Any:
    """Return the value of a JSON text, or None if there is none: a backend returns None or ""."""
    return decode(text) if text else None


def _time_or_none(at_ms: Any) -> str | None:
    """Return a time as text, or None if there is none: a backend returns None, 0 or ""."""
    return format_time(at_ms) if at_ms else None
