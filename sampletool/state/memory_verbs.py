"""What each verb does to the tables of the in-process store. See promises.py for what it means."""

from collections import Counter
from dataclasses import replace
from typing import Any

from sampletool.kit.contract.errors import VersionConflict
from sampletool.state.errors import CounterRange, LeaseLost, TaskConflict, TaskNotFound
from sampletool.state.memory_tables import HeldTask, Tables
from sampletool.state.promises import LARGEST


def counter_add(tables: Tables, _now: int, name: str, amount: int) -> tuple[int, str]:
    before = tables.counters.get(name, 0)
    if abs(before + amount) > LARGEST:
        raise CounterRange(counter=name, value=before, amount=amount)
    effect = "updated" if name in tables.counters else "created"
    tables.counters[name] = before + amount
    return before + amount, effect


def counter_get(tables: Tables, _now: int, name: str) -> int:
    return tables.counters.get(name, 0)


def counter_list(tables: Tables, _now: int, after: str, limit: int) -> list[Any]:
    return sorted(item for item in tables.counters.items() if item[0] > after)[:limit]


def state_get(tables: Tables, now: int, key: str) -> list[Any]:
    return [(key, *tables.values[key])] if _version(tables, now, key) else []


def state_set(
    tables: Tables, now: int, key: str, text: str, if_version: int | None, expires_ms: int | None
) -> tuple[int, str]:
    before = _version(tables, now, key, if_version)
    stored = tables.values[key][1] if key in tables.values else tables.floor
    tables.values[key] = (text, stored + 1, None if expires_ms is None else now + expires_ms)
    for other in [other for other in tables.values if other != key and not _version(tables, now, other)]:
        tables.forget(other)
    return stored + 1, "updated" if before else "created"


def state_unset(tables: Tables, now: int, key: str, if_version: int | None) -> tuple[int, str]:
    before = _version(tables, now, key, if_version)
    if key in tables.values:
        tables.forget(key)
    return before, "deleted" if before else "unchanged"


def state_list(tables: Tables, now: int, prefix: str, after: str, limit: int) -> list[Any]:
    keys = sorted(key for key in tables.values if key > after and key.startswith(prefix))
    return [(key, *tables.values[key]) for key in keys if _version(tables, now, key)][:limit]


def task_add(tables: Tables, now: int, queue: str, tasks: list[tuple[str, str]]) -> list[tuple[str, str]]:
    effects = []
    for task, body in tasks:
        known = tables.tasks.get(task)
        if known is None:
            position = len(tables.tasks) + 1
            tables.tasks[task] = HeldTask(task, queue, "free", 0, 0, None, None, now, position, body)
        elif (known.queue, known.body) != (queue, body):
            raise TaskConflict(task=task)
        effects.append((task, "created" if known is None else "unchanged"))
    return effects


def task_claim(
    tables: Tables, now: int, queue: str, worker: str, lease_ms: int, count: int, max_attempts: int
) -> list[Any]:
    free = [task for task in tables.tasks.values() if task.queue == queue and task.is_claimable(now)][:count]
    for task in free:
        tables.tasks[task.id] = replace(
            task,
            status="claimed",
            generation=task.generation + 1,
            attempts=task.attempts + 1,
            max_attempts=max_attempts,
            claimed_by=worker,
            claimed_at=now,
            due_at=now + lease_ms,
        )
    return [(task.id, task.generation + 1, task.body, task.attempts + 1, now + lease_ms) for task in free]


def task_renew(tables: Tables, now: int, task: str, generation: int, lease_ms: int) -> int:
    found = held(tables, now, task, generation)
    if found.status_at(now) != "claimed":
        raise LeaseLost(task, generation, generation, "expired" if found.status == "claimed" else found.status)
    tables.tasks[task] = replace(found, due_at=now + lease_ms)
    return now + lease_ms


def task_finish(tables: Tables, now: int, task: str, generation: int) -> str:
    found = held(tables, now, task, generation)
    if found.status not in ("claimed", "done"):
        raise LeaseLost(task, generation, generation, found.status)
    tables.tasks[task] = replace(found, status="done", due_at=None)
    return "unchanged" if found.status == "done" else "updated"


def task_release(tables: Tables, now: int, task: str, generation: int, delay_ms: int) -> str:
    found = held(tables, now, task, generation)
    if found.status == "done":
        raise LeaseLost(task, generation, generation, found.status)
    if found.status != "claimed":
        return "unchanged"
    status, due_at = ("failed", None) if found.is_last else ("free", now + delay_ms)
    tables.tasks[task] = replace(found, status=status, due_at=due_at, claimed_by=None, claimed_at=None)
    return "updated"


def task_list(tables: Tables, now: int, queue: str | None, status: str | None, after: int, limit: int) -> list[Any]:
    found = [
        task
        for task in tables.tasks.values()
        if task.position > after and queue in (None, task.queue) and status in (None, task.status_at(now))
    ]
    return [task.row(now) for task in found[:limit]]


def task_count(tables: Tables, now: int, queue: str | None) -> list[Any]:
    counted = Counter(task.status_at(now) for task in tables.tasks.values() if queue in (None, task.queue))
    return list(counted.items())


def held(tables: Tables, now: int, task: str, generation: int) -> HeldTask:
    """The task, if that is its generation."""
    found = tables.tasks.get(task)
    if found is None:
        raise TaskNotFound(task=task)
    if found.generation != generation:
        raise LeaseLost(task, generation, found.generation, found.status_at(now))
    return found


def _version(tables: Tables, now: int, key: str, wanted: int | None = None) -> int:
    """The one that counts: an expired value has none."""
    _, stored, ends = tables.values.get(key, ("", 0, None))
    version = stored if ends is None or ends > now else 0
    if wanted is not None and wanted != version:
        raise VersionConflict(key=key, expected=wanted, actual=version)
    return version
