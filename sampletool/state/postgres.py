"""A store on a PostgreSQL server: for many machines, with transactions and real durability.

Here are the tables and the verbs; postgres_link.py has the connection. A verb waits for the rows it changes, or for
an advisory lock where there may be no row yet, and only then looks at them and at the clock: what it read before
waiting would be old. Locks are taken in one order: idempotency key, fence, name. A claim waits for nobody.
With asynchronous standbys a failover may lose what was acknowledged last.
"""

import json
import time
from collections.abc import Callable
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
from sampletool.state.postgres_link import ADVISORY, Link, PostgresLink
from sampletool.state.promises import FREELY, KEY_LIFE_MS, LARGEST, Fence, NewTask, Once, TaskState, Value, Written
from sampletool.state.terms import Terms
from sampletool.state.values import check, digest, encode, given, once_key, with_ids

_NOW = "(extract(epoch FROM clock_timestamp()) * 1000)::bigint"
_CLOCK = f"WITH clock AS MATERIALIZED (SELECT {_NOW} AS now)"
_STATUS = """CASE WHEN status <> 'claimed' OR due_at > now THEN status
             WHEN max_attempts > 0 AND attempts >= max_attempts THEN 'failed' ELSE 'expired' END"""
_SWEPT = 20
"""What has expired is removed in passing, this much at a time."""

Change = Callable[[Link], Any]


class PostgresStore:
    """See promises.py."""

    steps: tuple[str, ...] = (
        """
        CREATE TABLE tool_store (version integer NOT NULL, floor bigint NOT NULL);
        INSERT INTO tool_store VALUES (0, 0);
        CREATE TABLE tool_counters (name text COLLATE "C" PRIMARY KEY, value bigint NOT NULL);
        CREATE TABLE tool_state (
            key text COLLATE "C" PRIMARY KEY, value text NOT NULL, version bigint NOT NULL, expires_at bigint);
        CREATE INDEX tool_state_expiring ON tool_state (expires_at) WHERE expires_at IS NOT NULL;
        CREATE TABLE tool_tasks (
            id text COLLATE "C" PRIMARY KEY, queue text COLLATE "C" NOT NULL, body text NOT NULL,
            status text NOT NULL DEFAULT 'free', generation bigint NOT NULL DEFAULT 0,
            attempts bigint NOT NULL DEFAULT 0, max_attempts bigint NOT NULL DEFAULT 0, claimed_by text,
            claimed_at bigint, due_at bigint, position bigint GENERATED ALWAYS AS IDENTITY UNIQUE);
        CREATE INDEX tool_tasks_open ON tool_tasks (queue, position) WHERE due_at IS NOT NULL;
        CREATE TABLE tool_once (
            key text COLLATE "C" PRIMARY KEY, digest text NOT NULL, answer text NOT NULL, expires_at bigint);
        CREATE INDEX tool_once_expiring ON tool_once (expires_at) WHERE expires_at IS NOT NULL;
        """,
    )
    """Only ever append. `floor` is the highest version of any value that is gone: new values begin above it, so that
    no version comes twice. `due_at` is when a task may be claimed: at once, after a delay, when its lease ends."""

    def __init__(self, url: str, terms: Terms) -> None:
        self._link = PostgresLink(url, terms, self.steps)

    def counter_add(self, name: str, amount: int, once: Once = FREELY) -> promises.Counted:
        check(name=name, amount=amount)

        def add(db: Link) -> Any:
            found = db.execute(
                """INSERT INTO tool_counters AS c VALUES (%s, %s) ON CONFLICT (name)
                   DO UPDATE SET value = c.value + excluded.value WHERE abs(c.value + excluded.value) <= %s
                   RETURNING value, xmax::text = '0'""",
                (name, amount, LARGEST),
            ).fetchone()
            if found is None:
                before = db.execute("SELECT value FROM tool_counters WHERE name = %s", (name,)).fetchone()
                raise CounterRange(name, before[0] if before else 0, amount)
            return found[0], "created" if found[1] else "updated"

        (value, effect), replayed = self._write(add, once, "counter add", name, amount)
        return promises.Counted(value, effect, replayed)

    def counter_get(self, name: str) -> int:
        found = self._read("SELECT value FROM tool_counters WHERE name = %(name)s", name=name)
        return found[0][0] if found else 0

    def counter_list(self, after: str, limit: int) -> list[tuple[str, int]]:
        return self._read(
            "SELECT name, value FROM tool_counters WHERE name > %(after)s ORDER BY name LIMIT %(limit)s",
            after=after,
            limit=limit,
        )

    def state_get(self, key: str) -> Value:
        found = self._read(
            f"SELECT * FROM tool_state WHERE key = %(key)s AND (expires_at IS NULL OR expires_at > {_NOW})", key=key
        )
        if not found:
            raise KeyNotFound(key, "the store", [], "tool state list")
        return _value(found[0])

    def state_set(
        self, key: str, value: Any, *, if_version: int | None = None, expires_ms: int | None = None, once: Once = FREELY
    ) -> Written:
        check(key=key, if_version=if_version, expires=expires_ms)
        text = encode(value)

        def put(db: Link) -> Any:
            stored, before, now = self._versions(db, key, if_version)
            if stored == 0:
                stored = db.execute("SELECT floor FROM tool_store").fetchone()[0]  # type: ignore[index]
            ends = None if expires_ms is None else now + expires_ms
            db.execute(
                """INSERT INTO tool_state VALUES (%s, %s, %s, %s) ON CONFLICT (key) DO UPDATE
                   SET value = excluded.value, version = excluded.version, expires_at = excluded.expires_at""",
                (key, text, stored + 1, ends),
            )
            gone = db.execute(
                """DELETE FROM tool_state WHERE key IN (SELECT key FROM tool_state WHERE expires_at <= %s AND key <> %s
                   LIMIT %s FOR UPDATE SKIP LOCKED) RETURNING version""",
                (now, key, _SWEPT),
            ).fetchall()
            self._raise_floor(db, max((version for (version,) in gone), default=0))
            return stored + 1, "updated" if before else "created"

        (version, effect), replayed = self._write(put, once, "state set", key, value, if_version, expires_ms)
        return Written(version, effect, replayed)

    def state_unset(self, key: str, *, if_version: int | None = None, once: Once = FREELY) -> Written:
        check(key=key, if_version=if_version)

        def remove(db: Link) -> Any:
            stored, before, _ = self._versions(db, key, if_version)
            db.execute("DELETE FROM tool_state WHERE key = %s", (key,))
            self._raise_floor(db, stored)
            return before, "deleted" if before else "unchanged"

        (version, effect), replayed = self._write(remove, once, "state unset", key, if_version)
        return Written(version, effect, replayed)

    def state_list(self, prefix: str, after: str, limit: int) -> list[Value]:
        found = self._read(
            f"""SELECT * FROM tool_state WHERE key > %(after)s AND starts_with(key, %(prefix)s)
                AND (expires_at IS NULL OR expires_at > {_NOW}) ORDER BY key LIMIT %(limit)s""",
            prefix=prefix,
            after=after,
            limit=limit,
        )
        return [_value(row) for row in found]

    def task_add(self, queue: str, tasks: list[NewTask], once: Once = FREELY) -> promises.Added:
        check(queue=queue)
        written = with_ids(tasks)
        ids, bodies = [task for task, _ in written], [body for _, body in written]

        def add(db: Link) -> Any:
            created = db.execute(
                f"""INSERT INTO tool_tasks (id, queue, body, due_at)
                    SELECT id, %s, body, {_NOW} FROM unnest(%s::text[], %s::text[])
                    WITH ORDINALITY AS given (id, body, n) ORDER BY n ON CONFLICT (id) DO NOTHING RETURNING id""",
                (queue, ids, bodies),
            ).fetchall()
            new = {task for (task,) in created}
            known = {}
            if len(new) < len(ids):
                found = db.execute("SELECT id, queue, body FROM tool_tasks WHERE id = ANY(%s)", (ids,))
                known = {task: (of_queue, body) for task, of_queue, body in found}
            for task, body in written:
                if task not in new and known[task] != (queue, body):
                    raise TaskConflict(task)
            return [(task, "created" if task in new else "unchanged") for task in ids]

        effects, replayed = self._write(add, once, "task add", queue, given(tasks))
        return promises.Added([(task, effect) for task, effect in effects], replayed)

    def task_claim(
        self, queue: str, worker: str, *, lease_ms: int, count: int = 1, max_attempts: int = 0, once: Once = FREELY
    ) -> promises.Claim:
        check(queue=queue, worker=worker, lease=lease_ms, count=count, max_attempts=max_attempts)

        def claim(db: Link) -> Any:
            found = db.execute(
                f"""{_CLOCK} UPDATE tool_tasks SET status = 'claimed', generation = generation + 1,
                    attempts = attempts + 1, max_attempts = %(most)s, claimed_by = %(worker)s, claimed_at = now,
                    due_at = now + %(lease)s FROM clock WHERE id = ANY(ARRAY(
                        SELECT id FROM tool_tasks, clock WHERE queue = %(queue)s AND due_at <= now
                        AND {_STATUS} <> 'failed' ORDER BY position LIMIT %(count)s
                        FOR UPDATE OF tool_tasks SKIP LOCKED))
                    RETURNING position, id, generation, body, attempts, due_at""",
                {"queue": queue, "worker": worker, "lease": lease_ms, "count": count, "most": max_attempts},
            ).fetchall()
            return [(task, gen, json.loads(body), attempts, due) for _, task, gen, body, attempts, due in sorted(found)]

        claimed, replayed = self._write(claim, once, "task claim", queue, worker, lease_ms, count, max_attempts)
        return promises.Claim([promises.Claimed(*task) for task in claimed], replayed)

    def task_renew(self, task: str, generation: int, *, lease_ms: int) -> int:
        check(lease=lease_ms)

        def renew(db: Link) -> Any:
            written, status, now = self._held(db, task, generation)
            if status != "claimed":
                raise LeaseLost(task, generation, generation, "expired" if written == "claimed" else status)
            db.execute("UPDATE tool_tasks SET due_at = %s WHERE id = %s", (now + lease_ms, task))
            return now + lease_ms

        return int(self._link.run(renew, may_repeat=True))

    def task_finish(self, task: str, generation: int) -> str:
        def finish(db: Link) -> Any:
            written, status, _ = self._held(db, task, generation)
            if written not in ("claimed", "done"):
                raise LeaseLost(task, generation, generation, status)
            db.execute("UPDATE tool_tasks SET status = 'done', due_at = NULL WHERE id = %s", (task,))
            return "unchanged" if written == "done" else "updated"

        return str(self._link.run(finish, may_repeat=True))

    def task_release(self, task: str, generation: int, *, delay_ms: int = 0) -> str:
        check(delay=delay_ms)

        def release(db: Link) -> Any:
            written, status, now = self._held(db, task, generation)
            if written == "done":
                raise LeaseLost(task, generation, generation, status)
            if written != "claimed":
                return "unchanged"
            is_last = "max_attempts > 0 AND attempts >= max_attempts"
            db.execute(
                f"""UPDATE tool_tasks SET claimed_by = NULL, claimed_at = NULL,
                    status = CASE WHEN {is_last} THEN 'failed' ELSE 'free' END,
                    due_at = CASE WHEN {is_last} THEN NULL ELSE %s::bigint END WHERE id = %s""",
                (now + delay_ms, task),
            )
            return "updated"

        return str(self._link.run(release, may_repeat=True))

    def task_list(self, queue: str | None, status: str | None, after: int, limit: int) -> list[TaskState]:
        found = self._read(
            f"""{_CLOCK} SELECT id, queue, {_STATUS}, generation, attempts,
                claimed_by, claimed_at, due_at, position, body FROM tool_tasks, clock WHERE position > %(after)s
                AND (%(queue)s::text IS NULL OR queue = %(queue)s)
                AND (%(status)s::text IS NULL OR {_STATUS} = %(status)s)
                ORDER BY position LIMIT %(limit)s""",
            queue=queue,
            status=status,
            after=after,
            limit=limit,
        )
        return [TaskState(*row[:-1], json.loads(row[-1])) for row in found]

    def task_count(self, queue: str | None) -> dict[str, int]:
        found = self._read(
            f"""{_CLOCK} SELECT {_STATUS} AS is_now, count(*) FROM tool_tasks, clock
                WHERE %(queue)s::text IS NULL OR queue = %(queue)s GROUP BY is_now""",
            queue=queue,
        )
        return dict(found)

    def health(self) -> promises.Health:
        began = time.time()
        now, version = self._read(f"SELECT {_NOW}, current_setting('server_version')")[0]
        skew_ms = round(now - (began + time.time()) / 2 * 1000)
        names = ["fsync", "synchronous_commit", "full_page_writes"]
        settings = dict(self._read("SELECT name, setting FROM pg_settings WHERE name = ANY(%(names)s)", names=names))
        problems = [f"{name} is off" for name, setting in settings.items() if setting == "off"]
        return promises.Health(f"PostgreSQL {version} ({self._link.shown})", problems, skew_ms, settings)

    def close(self) -> None:
        self._link.close()

    def _read(self, statement: str, **values: Any) -> list[Any]:
        def read(db: Link) -> list[Any]:
            return db.execute(statement, values).fetchall()

        return self._link.run(read, may_repeat=True)

    def _write(self, change: Change, once: Once, verb: str, name: str, *arguments: Any) -> tuple[Any, bool]:
        """One transaction: the key, the fence, the change and its answer. With it, whether it was a replay."""
        key = once_key(once, verb, name)

        def body(db: Link) -> tuple[Any, bool]:
            if key is not None:
                db.execute("SELECT pg_advisory_xact_lock(%s, hashtext(%s))", (ADVISORY, key))
            if once.fence is not None:
                self._check_fence(db, once.fence)
            if key is None:
                return change(db), False
            said = digest(verb, name, arguments)
            known = db.execute(
                f"SELECT digest, answer FROM tool_once WHERE key = %s AND (expires_at IS NULL OR expires_at > {_NOW})",
                (key,),
            ).fetchone()
            if known is not None:
                if known[0] != said:
                    raise IdempotencyKeyReused(once.key or name, is_fenced=once.key is None)
                return json.loads(known[1]), True
            answer = change(db)
            self._remember(db, key, said, answer, KEY_LIFE_MS if once.fence is None else None)
            return answer, False

        return self._link.run(body, may_repeat=key is not None)

    def _remember(self, db: Link, key: str, said: str, answer: Any, life_ms: int | None) -> None:
        db.execute(
            f"""INSERT INTO tool_once VALUES (%s, %s, %s, {_NOW} + %s::bigint) ON CONFLICT (key) DO UPDATE
                SET digest = excluded.digest, answer = excluded.answer, expires_at = excluded.expires_at""",
            (key, said, json.dumps(answer), life_ms),
        )
        db.execute(
            f"""DELETE FROM tool_once WHERE key IN (SELECT key FROM tool_once WHERE expires_at <= {_NOW}
                LIMIT %s FOR UPDATE SKIP LOCKED)""",
            (_SWEPT,),
        )

    def _check_fence(self, db: Link, fence: Fence) -> None:
        written, status, _ = self._held(db, fence.task, fence.generation)
        if written != "claimed":
            raise LeaseLost(fence.task, fence.generation, fence.generation, status)

    @staticmethod
    def _held(db: Link, task: str, generation: int) -> tuple[str, str, int]:
        """Its row until the end of the transaction: the status as written, and as it is now, and the time."""
        db.execute("SELECT FROM tool_tasks WHERE id = %s FOR UPDATE", (task,))
        found = db.execute(
            f"{_CLOCK} SELECT status, {_STATUS}, now, generation FROM tool_tasks, clock WHERE id = %s", (task,)
        ).fetchone()
        if found is None:
            raise TaskNotFound(task)
        if found[3] != generation:
            raise LeaseLost(task, generation, found[3], found[1])
        return found[0], found[1], found[2]

    @staticmethod
    def _versions(db: Link, key: str, if_version: int | None) -> tuple[int, int, int]:
        """Alone with this key: the version in the table, the one that counts (an expired value has none), the time."""
        db.execute("SELECT pg_advisory_xact_lock(%s, hashtext(%s))", (ADVISORY, f"state:{key}"))
        stored, expires_at, now = db.execute(  # type: ignore[misc]
            f"""{_CLOCK} SELECT coalesce(version, 0), expires_at, now FROM clock
                LEFT JOIN (SELECT * FROM tool_state WHERE key = %s) AS found ON true""",
            (key,),
        ).fetchone()
        version = stored if expires_at is None or expires_at > now else 0
        if if_version is not None and if_version != version:
            raise VersionConflict(key, if_version, version)
        return stored, version, now

    @staticmethod
    def _raise_floor(db: Link, version: int) -> None:
        if version:
            db.execute("UPDATE tool_store SET floor = %s WHERE floor < %s", (version, version))


def _value(row: Any) -> Value:
    key, text, version, expires_at = row
    return Value(key, json.loads(text), version, expires_at)
