"""A store inside one process: the same verbs as coroutines, for many of them in one event loop. It dies with it.

Every change happens under one lock, and *awaits* the journal between deciding and applying: a coroutine that is
suspended there has read what is about to change, so without the lock updates are lost. Deciding comes first and may
refuse; what is applied afterwards cannot fail. Values are kept as JSON text: nobody shares a mutable object.
"""

import asyncio
import json
import time
from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any

from sampletool.contract.errors import KeyNotFound, VersionConflict
from sampletool.contract.store_errors import CounterRange, IdempotencyKeyReused, LeaseLost, TaskConflict, TaskNotFound
from sampletool.state import promises
from sampletool.state.memory_task import HeldTask
from sampletool.state.promises import FREELY, KEY_LIFE_MS, LARGEST, NewTask, Once, TaskState, Value, Written
from sampletool.state.values import check, digest, encode, given, once_key, with_ids

Journal = Callable[[str, str], Awaitable[None]]
"""Told the verb and the name of every change before it is applied; if it raises, nothing is changed."""
Decision = tuple[Any, Callable[[], None]]
"""The answer, and what makes it true."""


async def _no_journal(_verb: str, _name: str) -> None:
    await asyncio.sleep(0)


class MemoryStore:
    """See promises.py, with `await` before every verb."""

    def __init__(self, journal: Journal = _no_journal, clock: Callable[[], float] = time.time) -> None:
        self._journal = journal
        self._clock = clock
        self._lock = asyncio.Lock()
        self._counters: dict[str, int] = {}
        self._values: dict[str, tuple[str, int, int | None]] = {}
        self._floor = 0
        self._tasks: dict[str, HeldTask] = {}
        self._once: dict[str, tuple[str, Any, int | None]] = {}

    async def counter_add(self, name: str, amount: int, once: Once = FREELY) -> promises.Counted:
        check(name=name, amount=amount)

        def add(_now: int) -> Decision:
            before = self._counters.get(name, 0)
            if abs(before + amount) > LARGEST:
                raise CounterRange(name, before, amount)
            effect = "updated" if name in self._counters else "created"
            return (before + amount, effect), lambda: self._counters.update({name: before + amount})

        (value, effect), replayed = await self._write(add, once, "counter add", name, amount)
        return promises.Counted(value, effect, replayed)

    async def counter_get(self, name: str) -> int:
        return self._counters.get(name, 0)

    async def counter_list(self, after: str, limit: int) -> list[tuple[str, int]]:
        return sorted(item for item in self._counters.items() if item[0] > after)[:limit]

    async def state_get(self, key: str) -> Value:
        text, version, ends = self._values.get(key, ("", 0, None))
        if version == 0 or (ends is not None and ends <= self._now()):
            raise KeyNotFound(key, "the store", [], "tool state list")
        return Value(key, json.loads(text), version, ends)

    async def state_set(
        self, key: str, value: Any, *, if_version: int | None = None, expires_ms: int | None = None, once: Once = FREELY
    ) -> Written:
        check(key=key, if_version=if_version, expires=expires_ms)
        text = encode(value)

        def put(now: int) -> Decision:
            stored, before = self._versions(now, key, if_version)
            version = (stored or self._floor) + 1
            ends = None if expires_ms is None else now + expires_ms
            effect = "updated" if before else "created"

            def apply() -> None:
                self._values[key] = (text, version, ends)
                for other in [
                    name for name, (_, _, end) in self._values.items() if name != key and 0 < (end or 0) <= now
                ]:
                    self._floor = max(self._floor, self._values.pop(other)[1])

            return (version, effect), apply

        (version, effect), replayed = await self._write(put, once, "state set", key, value, if_version, expires_ms)
        return Written(version, effect, replayed)

    async def state_unset(self, key: str, *, if_version: int | None = None, once: Once = FREELY) -> Written:
        check(key=key, if_version=if_version)

        def remove(now: int) -> Decision:
            stored, before = self._versions(now, key, if_version)

            def apply() -> None:
                self._floor = max(self._floor, stored)
                self._values.pop(key, None)

            return (before, "deleted" if before else "unchanged"), apply

        (version, effect), replayed = await self._write(remove, once, "state unset", key, if_version)
        return Written(version, effect, replayed)

    async def state_list(self, prefix: str, after: str, limit: int) -> list[Value]:
        now = self._now()
        found = [
            Value(key, json.loads(text), version, ends)
            for key, (text, version, ends) in sorted(self._values.items())
            if key > after and key.startswith(prefix) and (ends is None or ends > now)
        ]
        return found[:limit]

    async def task_add(self, queue: str, tasks: list[NewTask], once: Once = FREELY) -> promises.Added:
        check(queue=queue)
        written = with_ids(tasks)

        def add(now: int) -> Decision:
            effects: list[tuple[str, str]] = []
            fresh: dict[str, HeldTask] = {}
            for task, body in written:
                known = self._tasks.get(task)
                if known is not None and (known.queue, known.body) != (queue, body):
                    raise TaskConflict(task)
                if known is None:
                    fresh[task] = HeldTask(task, queue, body, len(self._tasks) + len(fresh) + 1, now)
                effects.append((task, "created" if known is None else "unchanged"))
            return effects, lambda: self._tasks.update(fresh)

        effects, replayed = await self._write(add, once, "task add", queue, given(tasks))
        return promises.Added(effects, replayed)

    async def task_claim(
        self, queue: str, worker: str, *, lease_ms: int, count: int = 1, max_attempts: int = 0, once: Once = FREELY
    ) -> promises.Claim:
        check(queue=queue, worker=worker, lease=lease_ms, count=count, max_attempts=max_attempts)

        def claim(now: int) -> Decision:
            claimed = {
                task.id: task.claimed_by_another(worker, max_attempts, now, lease_ms)
                for task in self._claimable(queue, now)[:count]
            }
            return [task.claimed() for task in claimed.values()], lambda: self._tasks.update(claimed)

        claimed, replayed = await self._write(claim, once, "task claim", queue, worker, lease_ms, count, max_attempts)
        return promises.Claim(claimed, replayed)

    async def task_renew(self, task: str, generation: int, *, lease_ms: int) -> int:
        check(lease=lease_ms)

        def renew(now: int) -> Decision:
            found = self._held(now, task, generation)
            if found.status_at(now) != "claimed":
                status = "expired" if found.status == "claimed" else found.status
                raise LeaseLost(task, generation, generation, status)
            renewed = replace(found, due_at=now + lease_ms)
            return now + lease_ms, lambda: self._tasks.update({task: renewed})

        return int((await self._write(renew, FREELY, "task renew", task))[0])

    async def task_finish(self, task: str, generation: int) -> str:
        def finish(now: int) -> Decision:
            found = self._held(now, task, generation)
            if found.status not in ("claimed", "done"):
                raise LeaseLost(task, generation, generation, found.status)
            done = replace(found, status="done", due_at=None)
            return "unchanged" if found.status == "done" else "updated", lambda: self._tasks.update({task: done})

        return str((await self._write(finish, FREELY, "task finish", task))[0])

    async def task_release(self, task: str, generation: int, *, delay_ms: int = 0) -> str:
        check(delay=delay_ms)

        def release(now: int) -> Decision:
            found = self._held(now, task, generation)
            if found.status == "done":
                raise LeaseLost(task, generation, generation, "done")
            if found.status != "claimed":
                return "unchanged", lambda: None
            status, due_at = ("failed", None) if found.is_last else ("free", now + delay_ms)
            given_back = replace(found, status=status, due_at=due_at, claimed_by=None, claimed_at=None)
            return "updated", lambda: self._tasks.update({task: given_back})

        return str((await self._write(release, FREELY, "task release", task))[0])

    async def task_list(self, queue: str | None, status: str | None, after: int, limit: int) -> list[TaskState]:
        now = self._now()
        found = [
            task.shown(now)
            for task in self._tasks.values()
            if task.position > after and queue in (None, task.queue) and status in (None, task.status_at(now))
        ]
        return found[:limit]

    async def task_count(self, queue: str | None) -> dict[str, int]:
        now = self._now()
        return Counter(task.status_at(now) for task in self._tasks.values() if queue in (None, task.queue))

    async def health(self) -> promises.Health:
        return promises.Health("in process", ["it ends with the process"], 0)

    async def close(self) -> None: ...

    async def _write(
        self, decide: Callable[[int], Decision], once: Once, verb: str, name: str, *arguments: Any
    ) -> tuple[Any, bool]:
        """Alone. With the answer comes whether it was a replay."""
        key = once_key(once, verb, name)
        async with self._lock:
            now = self._now()
            if once.fence is not None:
                held = self._held(now, once.fence.task, once.fence.generation)
                if held.status != "claimed":
                    raise LeaseLost(held.id, held.generation, held.generation, held.status)
            said, answer, ends = self._once.get(key or "", ("", None, 0))
            if ends is None or ends > now:
                if said != digest(verb, name, arguments):
                    raise IdempotencyKeyReused(once.key or name, is_fenced=once.key is None)
                return answer, True
            answer, apply = decide(now)
            await self._journal(verb, name)
            apply()
            if key is not None:
                for old in [name for name, (_, _, ends) in self._once.items() if ends is not None and ends <= now]:
                    del self._once[old]
                life = now + KEY_LIFE_MS if once.fence is None else None
                self._once[key] = (digest(verb, name, arguments), answer, life)
            return answer, False

    def _claimable(self, queue: str, now: int) -> list[HeldTask]:
        return [
            task
            for task in self._tasks.values()
            if task.queue == queue and task.status_at(now) in ("free", "expired") and (task.due_at or 0) <= now
        ]

    def _held(self, now: int, task: str, generation: int) -> HeldTask:
        found = self._tasks.get(task)
        if found is None:
            raise TaskNotFound(task)
        if found.generation != generation:
            raise LeaseLost(task, generation, found.generation, found.status_at(now))
        return found

    def _versions(self, now: int, key: str, if_version: int | None) -> tuple[int, int]:
        """The version that is kept, and the one that counts: an expired value has none."""
        _, stored, ends = self._values.get(key, ("", 0, None))
        version = stored if ends is None or ends > now else 0
        if if_version is not None and if_version != version:
            raise VersionConflict(key, if_version, version)
        return stored, version

    def _now(self) -> int:
        return int(self._clock() * 1000)
