"""The verbs of promises.py as every backend has them: what goes in is checked and written down, what comes out is read.

A backend says only what each verb does to its data. It is given the verb's name and plain values (JSON as text), and
answers plain values, in which a number may be a text, and nothing an empty one.
"""

import json
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

from sampletool.kit.contract.answer import Effect
from sampletool.kit.contract.errors import KeyNotFound
from sampletool.kit.program import PROGRAM
from sampletool.state import promises
from sampletool.state.errors import FenceReused, IdempotencyKeyReused
from sampletool.state.promises import FREELY, KEY_LIFE_MS, LARGEST, NewTask, Once, TaskState, Value, Written
from sampletool.state.values import check, digest, encode, once_key, with_ids


@dataclass(frozen=True)
class Write:
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
        if self.once.key is None:
            return FenceReused(key=self.arguments[0])
        return IdempotencyKeyReused(key=self.once.key)


class Verbs(ABC):
    """See promises.py."""

    @abstractmethod
    def write(self, write: Write) -> tuple[Any, bool]:
        """With the answer comes whether it is the remembered one of an earlier call."""

    @abstractmethod
    def read(self, verb: str, *arguments: Any) -> Any:
        """Changes nothing; from one moment."""

    def counter_add(self, name: str, amount: int, once: Once = FREELY) -> promises.Counted:
        check(name=name, amount=amount)
        (value, effect), replayed = self._write_once(once, "counter_add", name, amount)
        return promises.Counted(int(value), effect, replayed)

    def counter_get(self, name: str) -> int:
        check(name=name)
        return int(self.read("counter_get", name))

    def counter_list(self, after: str, limit: int) -> list[tuple[str, int]]:
        check(cursor=after or None)
        return [(name, int(value)) for name, value in self.read("counter_list", after, limit)]

    def state_get(self, key: str) -> Value:
        check(key=key)
        for row in self.read("state_get", key):
            return _value(row)
        raise KeyNotFound(key=key, where="the store", suggestion=f"`{PROGRAM} state list` shows the keys there are.")

    def state_set(
        self, key: str, value: Any, *, if_version: int | None = None, expires_ms: int | None = None, once: Once = FREELY
    ) -> Written:
        check(key=key, if_version=if_version, expires=expires_ms)
        (version, effect), replayed = self._write_once(once, "state_set", key, encode(value), if_version, expires_ms)
        return Written(int(version), effect, replayed)

    def state_unset(self, key: str, *, if_version: int | None = None, once: Once = FREELY) -> Written:
        check(key=key, if_version=if_version)
        (version, effect), replayed = self._write_once(once, "state_unset", key, if_version)
        return Written(int(version), effect, replayed)

    def state_list(self, prefix: str, after: str, limit: int) -> list[Value]:
        check(prefix=prefix or None, cursor=after or None)
        return [_value(row) for row in self.read("state_list", prefix, after, limit)]

    def task_add(self, queue: str, tasks: list[NewTask], once: Once = FREELY, *, delay_ms: int = 0) -> promises.Added:
        check(queue=queue, delay=delay_ms)
        given: list[Any] = [[task.id, task.body] for task in tasks]
        said = [*given, delay_ms] if delay_ms else given
        effects, replayed = self._write_once(once, "task_add", queue, with_ids(tasks), delay_ms, said=said)
        return promises.Added([(task, effect) for task, effect in effects], replayed)

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
    ) -> promises.Claim:
        check(queue=queue, worker=worker, lease=lease_ms, count=count, max_attempts=max_attempts)
        arguments = (worker, lease_ms, count, max_attempts)
        said = arguments if is_named else arguments[1:]
        rows, replayed = self._write_once(once, "task_claim", queue, *arguments, said=said)
        tasks = [
            promises.Claimed(task, int(generation), json.loads(body), int(attempts), int(ends))
            for task, generation, body, attempts, ends in rows
        ]
        return promises.Claim(tasks, replayed)

    def task_renew(self, task: str, generation: int, *, lease_ms: int) -> int:
        check(task=task, generation=generation, lease=lease_ms)
        return int(self.write(Write("task_renew", (task, generation, lease_ms)))[0])

    def task_finish(self, task: str, generation: int) -> Effect:
        check(task=task, generation=generation)
        effect: Effect = self.write(Write("task_finish", (task, generation)))[0]
        return effect

    def task_release(self, task: str, generation: int, *, delay_ms: int = 0) -> Effect:
        check(task=task, generation=generation, delay=delay_ms)
        effect: Effect = self.write(Write("task_release", (task, generation, delay_ms)))[0]
        return effect

    def task_retry(self, task: str) -> Effect:
        check(task=task)
        effect: Effect = self.write(Write("task_retry", (task,)))[0]
        return effect

    def task_clean(self, older_ms: int, statuses: list[str], after: int = 0, limit: int = 500) -> tuple[int, int]:
        check(older=older_ms)
        chosen = (status if status in statuses else "" for status in ("done", "failed"))
        removed, cursor = self.write(Write("task_clean", (older_ms, *chosen, after, limit)))[0]
        return int(removed), int(cursor)

    def task_left(self, queue: str, most: int = LARGEST) -> int:
        check(queue=queue)
        return int(self.read("task_left", queue, most))

    def task_list(self, queue: str | None, status: str | None, after: int, limit: int) -> list[TaskState]:
        check(queue=queue, cursor=after)
        return [_task_state(row) for row in self.read("task_list", queue, status, after, limit)]

    def task_count(self, queue: str | None) -> dict[str, int]:
        check(queue=queue)
        return {status: int(number) for status, number in self.read("task_count", queue)}

    def _write_once(self, once: Once, verb: str, name: str, *arguments: Any, said: Any = None) -> tuple[Any, bool]:
        """`said` if a repetition has to agree with something else than the arguments."""
        key = once_key(once, verb, name)
        agreed = "" if key is None else digest(verb, name, arguments if said is None else said)
        return self.write(Write(verb, (name, *arguments), once, key, agreed, may_repeat=key is not None))


def _value(row: Any) -> Value:
    key, text, version, ends = row
    return Value(key, json.loads(text), int(version), _number(ends))


def _task_state(row: Any) -> TaskState:
    task, queue, status, generation, attempts, by, at, due, position, body = row
    counts = (int(generation), int(attempts), by or None, _number(at), _number(due), int(position))
    return TaskState(task, queue, status, *counts, json.loads(body))


def _number(value: Any) -> int | None:
    return int(value) if value not in (None, "") else None
