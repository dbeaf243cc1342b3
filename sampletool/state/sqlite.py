"""A store in one SQLite file: the embedded default. Nothing to set up, safe between the processes of one machine.

Here are the tables and the verbs; how the file is opened, locked and committed is in sqlite_file.py. Within a
transaction nobody else writes, so a verb may read and then write. The clock is SQLite's own, not Python's.
"""

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from sampletool.contract.errors import (
    CounterRange,
    IdempotencyKeyReused,
    KeyNotFound,
    LeaseLost,
    TaskConflict,
    TaskNotFound,
    VersionConflict,
)
from sampletool.state import promises
from sampletool.state.promises import FREELY, KEY_LIFE_MS, LARGEST, Fence, NewTask, Once, TaskState, Value, Written
from sampletool.state.sqlite_file import Connection, SqliteFile
from sampletool.state.terms import Terms
from sampletool.state.values import check, digest, encode, given, once_key, with_ids

_NOW = "CAST((julianday('now') - 2440587.5) * 86400000 AS INTEGER)"
_STATUS = """CASE WHEN status <> 'claimed' OR due_at > :now THEN status
             WHEN max_attempts > 0 AND attempts >= max_attempts THEN 'failed' ELSE 'expired' END"""
_SWEPT = 20
"""What has expired is removed in passing, this much at a time."""

Change = Callable[[Connection, int], Any]


class SqliteStore:
    """See promises.py."""

    steps: tuple[str, ...] = (
        """
        CREATE TABLE counters (name TEXT PRIMARY KEY, value INTEGER NOT NULL) WITHOUT ROWID;
        CREATE TABLE state (key TEXT PRIMARY KEY, value TEXT NOT NULL, version INTEGER NOT NULL, expires_at INTEGER);
        CREATE INDEX state_expiring ON state (expires_at) WHERE expires_at IS NOT NULL;
        CREATE TABLE floor (version INTEGER NOT NULL);
        INSERT INTO floor VALUES (0);
        CREATE TABLE tasks (
            position INTEGER PRIMARY KEY AUTOINCREMENT, id TEXT NOT NULL UNIQUE, queue TEXT NOT NULL,
            body TEXT NOT NULL, status TEXT NOT NULL, generation INTEGER NOT NULL, attempts INTEGER NOT NULL,
            max_attempts INTEGER NOT NULL, claimed_by TEXT, claimed_at INTEGER, due_at INTEGER);
        CREATE INDEX tasks_open ON tasks (queue, position) WHERE due_at IS NOT NULL;
        CREATE TABLE once (key TEXT PRIMARY KEY, digest TEXT NOT NULL, answer TEXT NOT NULL, expires_at INTEGER);
        CREATE INDEX once_expiring ON once (expires_at) WHERE expires_at IS NOT NULL
        """,
    )
    """Only ever append. `floor` is the highest version of any value that is gone: new values begin above it, so that
    no version comes twice. `due_at` is when a task may be claimed: at once, after a delay, when its lease ends."""

    def __init__(self, path: Path, lock_path: Path, terms: Terms, make_directory: Callable[[], object]) -> None:
        self._file = SqliteFile(path, lock_path, terms, make_directory, self.steps)

    def counter_add(self, name: str, amount: int, once: Once = FREELY) -> promises.Counted:
        check(name=name, amount=amount)

        def add(db: Connection, _now: int) -> Any:
            found = db.execute("SELECT value FROM counters WHERE name = ?", (name,)).fetchone()
            before = found[0] if found else 0
            if abs(before + amount) > LARGEST:
                raise CounterRange(name, before, amount)
            db.execute("REPLACE INTO counters VALUES (?, ?)", (name, before + amount))
            return before + amount, "updated" if found else "created"

        (value, effect), replayed = self._write(add, once, "counter add", name, amount)
        return promises.Counted(value, effect, replayed)

    def counter_get(self, name: str) -> int:
        found = self._file.read("SELECT value FROM counters WHERE name = :name", name=name)
        return found[0][0] if found else 0

    def counter_list(self, after: str, limit: int) -> list[tuple[str, int]]:
        return self._file.read(
            "SELECT name, value FROM counters WHERE name > :after ORDER BY name LIMIT :limit", after=after, limit=limit
        )

    def state_get(self, key: str) -> Value:
        found = self._file.read(
            f"SELECT * FROM state WHERE key = :key AND (expires_at IS NULL OR expires_at > {_NOW})", key=key
        )
        if not found:
            raise KeyNotFound(key, "the store", [], "tool state list")
        return _value(found[0])

    def state_set(
        self, key: str, value: Any, *, if_version: int | None = None, expires_ms: int | None = None, once: Once = FREELY
    ) -> Written:
        check(key=key, if_version=if_version, expires=expires_ms)
        text = encode(value)

        def put(db: Connection, now: int) -> Any:
            stored, before = self._versions(db, now, key, if_version)
            version = (stored or db.execute("SELECT version FROM floor").fetchone()[0]) + 1
            ends = None if expires_ms is None else now + expires_ms
            db.execute("REPLACE INTO state VALUES (?, ?, ?, ?)", (key, text, version, ends))
            expired = "(SELECT key, version FROM state WHERE expires_at <= ? AND key <> ? ORDER BY expires_at LIMIT ?)"
            swept = (now, key, _SWEPT)
            db.execute(
                f"UPDATE floor SET version = max(version, (SELECT ifnull(max(version), 0) FROM {expired}))", swept
            )
            db.execute(f"DELETE FROM state WHERE key IN (SELECT key FROM {expired})", swept)
            return version, "updated" if before else "created"

        (version, effect), replayed = self._write(put, once, "state set", key, value, if_version, expires_ms)
        return Written(version, effect, replayed)

    def state_unset(self, key: str, *, if_version: int | None = None, once: Once = FREELY) -> Written:
        check(key=key, if_version=if_version)

        def remove(db: Connection, now: int) -> Any:
            stored, before = self._versions(db, now, key, if_version)
            db.execute("UPDATE floor SET version = max(version, ?)", (stored,))
            db.execute("DELETE FROM state WHERE key = ?", (key,))
            return before, "deleted" if before else "unchanged"

        (version, effect), replayed = self._write(remove, once, "state unset", key, if_version)
        return Written(version, effect, replayed)

    def state_list(self, prefix: str, after: str, limit: int) -> list[Value]:
        found = self._file.read(
            f"""SELECT * FROM state WHERE key > :after AND substr(key, 1, length(:prefix)) = :prefix
                AND (expires_at IS NULL OR expires_at > {_NOW}) ORDER BY key LIMIT :limit""",
            prefix=prefix,
            after=after,
            limit=limit,
        )
        return [_value(row) for row in found]

    def task_add(self, queue: str, tasks: list[NewTask], once: Once = FREELY) -> promises.Added:
        check(queue=queue)
        written = with_ids(tasks)

        def add(db: Connection, now: int) -> Any:
            effects = []
            for task, body in written:
                known = db.execute("SELECT queue, body FROM tasks WHERE id = ?", (task,)).fetchone()
                if known is None:
                    row = (task, queue, body, now)
                    db.execute("INSERT INTO tasks VALUES (NULL, ?, ?, ?, 'free', 0, 0, 0, NULL, NULL, ?)", row)
                elif known != (queue, body):
                    raise TaskConflict(task)
                effects.append((task, "created" if known is None else "unchanged"))
            return effects

        effects, replayed = self._write(add, once, "task add", queue, given(tasks))
        return promises.Added([(task, effect) for task, effect in effects], replayed)

    def task_claim(
        self, queue: str, worker: str, *, lease_ms: int, count: int = 1, max_attempts: int = 0, once: Once = FREELY
    ) -> promises.Claim:
        check(queue=queue, worker=worker, lease=lease_ms, count=count, max_attempts=max_attempts)

        def claim(db: Connection, now: int) -> Any:
            found = db.execute(
                f"""SELECT id, generation + 1, body, attempts + 1 FROM tasks
                    WHERE queue = :queue AND due_at <= :now AND {_STATUS} <> 'failed' ORDER BY position LIMIT :count""",
                {"queue": queue, "now": now, "count": count},
            ).fetchall()
            db.executemany(
                """UPDATE tasks SET status = 'claimed', generation = generation + 1, attempts = attempts + 1,
                   max_attempts = ?, claimed_by = ?, claimed_at = ?, due_at = ? WHERE id = ?""",
                [(max_attempts, worker, now, now + lease_ms, task) for task, *_ in found],
            )
            return [(task, gen, json.loads(body), attempts, now + lease_ms) for task, gen, body, attempts in found]

        claimed, replayed = self._write(claim, once, "task claim", queue, worker, lease_ms, count, max_attempts)
        return promises.Claim([promises.Claimed(*task) for task in claimed], replayed)

    def task_renew(self, task: str, generation: int, *, lease_ms: int) -> int:
        check(lease=lease_ms)

        def renew(db: Connection, now: int) -> Any:
            written, status = self._held(db, now, task, generation)
            if status != "claimed":
                raise LeaseLost(task, generation, generation, "expired" if written == "claimed" else status)
            db.execute("UPDATE tasks SET due_at = ? WHERE id = ?", (now + lease_ms, task))
            return now + lease_ms

        return int(self._write(renew)[0])

    def task_finish(self, task: str, generation: int) -> str:
        def finish(db: Connection, now: int) -> Any:
            written, status = self._held(db, now, task, generation)
            if written not in ("claimed", "done"):
                raise LeaseLost(task, generation, generation, status)
            db.execute("UPDATE tasks SET status = 'done', due_at = NULL WHERE id = ?", (task,))
            return "unchanged" if written == "done" else "updated"

        return str(self._write(finish)[0])

    def task_release(self, task: str, generation: int, *, delay_ms: int = 0) -> str:
        check(delay=delay_ms)

        def release(db: Connection, now: int) -> Any:
            written, status = self._held(db, now, task, generation)
            if written == "done":
                raise LeaseLost(task, generation, generation, status)
            if written != "claimed":
                return "unchanged"
            is_last = "max_attempts > 0 AND attempts >= max_attempts"
            db.execute(
                f"""UPDATE tasks SET claimed_by = NULL, claimed_at = NULL,
                    status = CASE WHEN {is_last} THEN 'failed' ELSE 'free' END,
                    due_at = CASE WHEN {is_last} THEN NULL ELSE ? END WHERE id = ?""",
                (now + delay_ms, task),
            )
            return "updated"

        return str(self._write(release)[0])

    def task_list(self, queue: str | None, status: str | None, after: int, limit: int) -> list[TaskState]:
        found = self._file.read(
            f"""WITH clock AS (SELECT {_NOW} AS now) SELECT id, queue, {_STATUS.replace(":now", "now")} AS is_now,
                generation, attempts, claimed_by, claimed_at, due_at, position, body FROM tasks, clock
                WHERE position > :after AND (:queue IS NULL OR queue = :queue)
                AND (:status IS NULL OR is_now = :status) ORDER BY position LIMIT :limit""",
            queue=queue,
            status=status,
            after=after,
            limit=limit,
        )
        return [TaskState(*row[:-1], json.loads(row[-1])) for row in found]

    def task_count(self, queue: str | None) -> dict[str, int]:
        found = self._file.read(
            f"""WITH clock AS (SELECT {_NOW} AS now) SELECT {_STATUS.replace(":now", "now")} AS is_now, count(*)
                FROM tasks, clock WHERE :queue IS NULL OR queue = :queue GROUP BY is_now""",
            queue=queue,
        )
        return dict(found)

    def health(self) -> promises.Health:
        now, version = self._file.read(f"SELECT {_NOW}, sqlite_version()")[0]
        problems = [said for (said,) in self._file.read("PRAGMA quick_check") if said != "ok"]
        skew_ms = round(now - time.time() * 1000)
        durable = {"journal": "truncate", "synchronous": "full"}
        return promises.Health(f"SQLite {version} ({self._file.path})", problems, skew_ms, durable)

    def close(self) -> None:
        self._file.close()

    def _write(
        self, change: Change, once: Once = FREELY, verb: str = "", name: str = "", *arguments: Any
    ) -> tuple[Any, bool]:
        """One transaction: the fence, the key, the change and its answer. With it, whether it was a replay."""
        key = once_key(once, verb, name)
        with self._file.writing() as db:
            now: int = db.execute(f"SELECT {_NOW}").fetchone()[0]
            if once.fence is not None:
                self._check_fence(db, now, once.fence)
            if key is None:
                return change(db, now), False
            known = db.execute(
                "SELECT digest, answer FROM once WHERE key = ? AND (expires_at IS NULL OR expires_at > ?)", (key, now)
            ).fetchone()
            said = digest(verb, name, arguments)
            if known is not None:
                if known[0] != said:
                    raise IdempotencyKeyReused(once.key or name, is_fenced=once.key is None)
                return json.loads(known[1]), True
            answer = change(db, now)
            ends = now + KEY_LIFE_MS if once.fence is None else None
            db.execute("REPLACE INTO once VALUES (?, ?, ?, ?)", (key, said, json.dumps(answer), ends))
            expired = "SELECT key FROM once WHERE expires_at <= ? LIMIT ?"
            db.execute(f"DELETE FROM once WHERE key IN ({expired})", (now, _SWEPT))
            return answer, False

    def _check_fence(self, db: Connection, now: int, fence: Fence) -> None:
        written, status = self._held(db, now, fence.task, fence.generation)
        if written != "claimed":
            raise LeaseLost(fence.task, fence.generation, fence.generation, status)

    @staticmethod
    def _held(db: Connection, now: int, task: str, generation: int) -> tuple[str, str]:
        """The status as written, and as it is now; LEASE_LOST if that generation is not the current one."""
        found = db.execute(
            f"SELECT status, {_STATUS}, generation FROM tasks WHERE id = :task", {"task": task, "now": now}
        ).fetchone()
        if found is None:
            raise TaskNotFound(task)
        if found[2] != generation:
            raise LeaseLost(task, generation, found[2], found[1])
        return found[0], found[1]

    @staticmethod
    def _versions(db: Connection, now: int, key: str, if_version: int | None) -> tuple[int, int]:
        """The version in the table, and the one that counts: an expired value has none."""
        found = db.execute("SELECT version, expires_at FROM state WHERE key = ?", (key,)).fetchone()
        stored, expires_at = found or (0, None)
        version = stored if expires_at is None or expires_at > now else 0
        if if_version is not None and if_version != version:
            raise VersionConflict(key, if_version, version)
        return stored, version


def _value(row: Any) -> Value:
    key, text, version, expires_at = row
    return Value(key, json.loads(text), version, expires_at)
