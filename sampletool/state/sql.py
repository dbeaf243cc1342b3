"""The verbs of a store that speaks SQL. What SQLite and PostgreSQL do differently is in their own files.

A verb is one transaction: it takes what it needs to be alone with (an idempotency key, a task, a name, in this
order), and only then looks at the rows and at the clock, because what it read before waiting would be old. Then it
may read and write like the only one there is. SQLite has one lock for everything, so there nothing is left to take.
"""

import json
import time
from collections.abc import Callable
from typing import Any

from sampletool.contract.errors import KeyNotFound, VersionConflict
from sampletool.contract.store_errors import CounterRange, IdempotencyKeyReused, LeaseLost, TaskConflict, TaskNotFound
from sampletool.state import promises
from sampletool.state.promises import FREELY, LARGEST, NewTask, Once, TaskState, Value, Written
from sampletool.state.sql_database import Database, Session
from sampletool.state.sql_once import recall, remember
from sampletool.state.values import check, digest, encode, given, once_key, with_ids

_STATUS = """CASE WHEN status <> 'claimed' OR due_at > now THEN status
             WHEN max_attempts > 0 AND attempts >= max_attempts THEN 'failed' ELSE 'expired' END"""
_COUNTER = "SELECT value FROM tool_counters WHERE name = :name"
_IS_LAST = "max_attempts > 0 AND attempts >= max_attempts"
_AT_ONCE = 500
"""How many ids one statement asks for."""


class SqlStore:
    """See promises.py."""

    def __init__(self, database: Database) -> None:
        self._db = database
        self._living = f"(expires_at IS NULL OR expires_at > {database.now})"
        self._clock = f"WITH clock AS (SELECT {database.now} AS now)"

    def counter_add(self, name: str, amount: int, once: Once = FREELY) -> promises.Counted:
        check(name=name, amount=amount)

        def add(db: Session) -> Any:
            db.be_alone_with(f"counter {name}")
            found = db.rows(_COUNTER, name=name)
            before = found[0][0] if found else 0
            if abs(before + amount) > LARGEST:
                raise CounterRange(name, before, amount)
            upsert = "INSERT INTO tool_counters VALUES (:name, :value) ON CONFLICT (name) DO UPDATE SET value = :value"
            db.run(upsert, name=name, value=before + amount)
            return before + amount, "updated" if found else "created"

        (value, effect), replayed = self._write(add, once, "counter add", name, amount)
        return promises.Counted(value, effect, replayed)

    def counter_get(self, name: str) -> int:
        return next((value for (value,) in self._db.read(_COUNTER, name=name)), 0)

    def counter_list(self, after: str, limit: int) -> list[tuple[str, int]]:
        page = "SELECT * FROM tool_counters WHERE name > :after ORDER BY name LIMIT :limit"
        return self._db.read(page, after=after, limit=limit)

    def state_get(self, key: str) -> Value:
        for row in self._db.read(f"SELECT * FROM tool_state WHERE key = :key AND {self._living}", key=key):
            return _value(row)
        raise KeyNotFound(key, "the store", [], "tool state list")

    def state_set(
        self, key: str, value: Any, *, if_version: int | None = None, expires_ms: int | None = None, once: Once = FREELY
    ) -> Written:
        check(key=key, if_version=if_version, expires=expires_ms)
        text = encode(value)

        def put(db: Session) -> Any:
            stored, before, now = self._versions(db, key, if_version)
            version = (stored or db.rows("SELECT version FROM tool_floor")[0][0]) + 1
            ends = None if expires_ms is None else now + expires_ms
            upsert = """INSERT INTO tool_state VALUES (:key, :value, :version, :ends) ON CONFLICT (key)
                        DO UPDATE SET value = :value, version = :version, expires_at = :ends"""
            db.run(upsert, key=key, value=text, version=version, ends=ends)
            expired = f"expires_at <= :now AND key <> :key LIMIT 20 {self._db.unclaimed}"
            _forget(db, db.rows(f"SELECT key, version FROM tool_state WHERE {expired}", now=now, key=key))
            return version, "updated" if before else "created"

        (version, effect), replayed = self._write(put, once, "state set", key, value, if_version, expires_ms)
        return Written(version, effect, replayed)

    def state_unset(self, key: str, *, if_version: int | None = None, once: Once = FREELY) -> Written:
        check(key=key, if_version=if_version)

        def remove(db: Session) -> Any:
            stored, before, _ = self._versions(db, key, if_version)
            _forget(db, [(key, stored)] if stored else [])
            return before, "deleted" if before else "unchanged"

        (version, effect), replayed = self._write(remove, once, "state unset", key, if_version)
        return Written(version, effect, replayed)

    def state_list(self, prefix: str, after: str, limit: int) -> list[Value]:
        page = f"""SELECT * FROM tool_state WHERE key > :after AND substr(key, 1, :length) = :prefix
                   AND {self._living} ORDER BY key LIMIT :limit"""
        found = self._db.read(page, prefix=prefix, length=len(prefix), after=after, limit=limit)
        return list(map(_value, found))

    def task_add(self, queue: str, tasks: list[NewTask], once: Once = FREELY) -> promises.Added:
        check(queue=queue)
        written = with_ids(tasks)

        def add(db: Session) -> Any:
            db.be_alone_with("task add")
            known = {}
            for start in range(0, len(written), _AT_ONCE):
                ids = {f"id{number}": task for number, (task, _) in enumerate(written[start : start + _AT_ONCE])}
                named = ", ".join(f":{name}" for name in ids)
                for task, *known_as in db.rows(f"SELECT id, queue, body FROM tool_tasks WHERE id IN ({named})", **ids):
                    known[task] = known_as
            for task, body in written:
                if known.get(task, [queue, body]) != [queue, body]:
                    raise TaskConflict(task)
            put = f"INSERT INTO tool_tasks (id, queue, body, due_at) VALUES (:id, :queue, :body, {self._db.now})"
            db.each(put, [{"id": task, "queue": queue, "body": body} for task, body in written if task not in known])
            return [(task, "unchanged" if task in known else "created") for task, _ in written]

        effects, replayed = self._write(add, once, "task add", queue, given(tasks))
        return promises.Added([(task, effect) for task, effect in effects], replayed)

    def task_claim(
        self, queue: str, worker: str, *, lease_ms: int, count: int = 1, max_attempts: int = 0, once: Once = FREELY
    ) -> promises.Claim:
        check(queue=queue, worker=worker, lease=lease_ms, count=count, max_attempts=max_attempts)

        def claim(db: Session) -> Any:
            oldest = f"""{self._clock} SELECT id, generation + 1, body, attempts + 1, now + :lease
                         FROM tool_tasks, clock WHERE queue = :queue AND due_at <= now AND {_STATUS} <> 'failed'
                         ORDER BY position LIMIT :count {self._db.unclaimed}"""
            found = db.rows(oldest, queue=queue, lease=lease_ms, count=count)
            take = """UPDATE tool_tasks SET status = 'claimed', generation = generation + 1, attempts = attempts + 1,
                      max_attempts = :most, claimed_by = :worker, claimed_at = :due - :lease, due_at = :due
                      WHERE id = :id"""
            for task, *_, due in found:
                db.run(take, most=max_attempts, worker=worker, lease=lease_ms, id=task, due=due)
            return [(task, generation, json.loads(body), *rest) for task, generation, body, *rest in found]

        claimed, replayed = self._write(claim, once, "task claim", queue, worker, lease_ms, count, max_attempts)
        return promises.Claim([promises.Claimed(*task) for task in claimed], replayed)

    def task_renew(self, task: str, generation: int, *, lease_ms: int) -> int:
        check(lease=lease_ms)

        def renew(db: Session) -> Any:
            written, status, now = self._held(db, task, generation)
            if status != "claimed":
                raise LeaseLost(task, generation, generation, "expired" if written == "claimed" else status)
            db.run("UPDATE tool_tasks SET due_at = :due WHERE id = :id", due=now + lease_ms, id=task)
            return now + lease_ms

        return int(self._write(renew)[0])

    def task_finish(self, task: str, generation: int) -> str:
        def finish(db: Session) -> Any:
            written, status, _ = self._held(db, task, generation)
            if written not in ("claimed", "done"):
                raise LeaseLost(task, generation, generation, status)
            db.run("UPDATE tool_tasks SET status = 'done', due_at = NULL WHERE id = :id", id=task)
            return "unchanged" if written == "done" else "updated"

        return str(self._write(finish)[0])

    def task_release(self, task: str, generation: int, *, delay_ms: int = 0) -> str:
        check(delay=delay_ms)

        def release(db: Session) -> Any:
            written, status, now = self._held(db, task, generation)
            if written == "done":
                raise LeaseLost(task, generation, generation, status)
            if written != "claimed":
                return "unchanged"
            put = f"""UPDATE tool_tasks SET claimed_by = NULL, claimed_at = NULL,
                      status = CASE WHEN {_IS_LAST} THEN 'failed' ELSE 'free' END,
                      due_at = CASE WHEN {_IS_LAST} THEN NULL ELSE CAST(:due AS bigint) END WHERE id = :id"""
            db.run(put, due=now + delay_ms, id=task)
            return "updated"

        return str(self._write(release)[0])

    def task_list(self, queue: str | None, status: str | None, after: int, limit: int) -> list[TaskState]:
        page = f"""{self._clock} SELECT id, queue, {_STATUS}, generation, attempts, claimed_by, claimed_at, due_at,
                   position, body FROM tool_tasks, clock WHERE position > :after
                   AND (CAST(:queue AS text) IS NULL OR queue = :queue)
                   AND (CAST(:status AS text) IS NULL OR {_STATUS} = :status) ORDER BY position LIMIT :limit"""
        found = self._db.read(page, queue=queue, status=status, after=after, limit=limit)
        return [TaskState(*(*row[:-1], json.loads(row[-1]))) for row in found]

    def task_count(self, queue: str | None) -> dict[str, int]:
        of_queue = "CAST(:queue AS text) IS NULL OR queue = :queue"
        counted = f"{self._clock} SELECT {_STATUS}, count(*) FROM tool_tasks, clock WHERE {of_queue} GROUP BY 1"
        return dict(self._db.read(counted, queue=queue))

    def health(self) -> promises.Health:
        server, problems, settings = self._db.health()
        now = self._db.read(f"SELECT {self._db.now}")[0][0]
        return promises.Health(server, problems, round(now - time.time() * 1000), settings)

    def close(self) -> None:
        self._db.close()

    def _write(
        self, change: Callable[[Session], Any], once: Once = FREELY, verb: str = "", name: str = "", *arguments: Any
    ) -> tuple[Any, bool]:
        """One transaction, and whether it was a replay. Without a verb a generation makes repeating it harmless."""
        key = once_key(once, verb, name)

        def body(db: Session) -> tuple[Any, bool]:
            if key is not None:
                db.be_alone_with(key)
            if once.fence is not None:
                written, status, _ = self._held(db, once.fence.task, once.fence.generation)
                if written != "claimed":
                    raise LeaseLost(once.fence.task, once.fence.generation, once.fence.generation, status)
            if key is None:
                return change(db), False
            said = digest(verb, name, arguments)
            if (known := recall(db, self._db, key)) is not None:
                if known[0] != said:
                    raise IdempotencyKeyReused(once.key or name, is_fenced=once.key is None)
                return json.loads(known[1]), True
            answer = change(db)
            remember(db, self._db, key, said, json.dumps(answer), is_for_ever=once.fence is not None)
            return answer, False

        return self._db.transact(body, may_repeat=key is not None or not verb)

    def _held(self, db: Session, task: str, generation: int) -> tuple[str, str, int]:
        """Alone with it: the status as written, and as it is now, and the time."""
        db.hold_task(task)
        asked = f"{self._clock} SELECT status, {_STATUS}, now, generation FROM tool_tasks, clock WHERE id = :id"
        for written, status, now, actual in db.rows(asked, id=task):
            if actual != generation:
                raise LeaseLost(task, generation, actual, status)
            return written, status, now
        raise TaskNotFound(task)

    def _versions(self, db: Session, key: str, if_version: int | None) -> tuple[int, int, int]:
        """Alone with it: the version in the table, the one that counts (an expired value has none), and the time."""
        db.be_alone_with(f"state {key}")
        asked = f"""{self._clock} SELECT coalesce(version, 0), expires_at, now FROM clock
                    LEFT JOIN tool_state ON key = :key"""
        stored, expires_at, now = db.rows(asked, key=key)[0]
        version = stored if expires_at is None or expires_at > now else 0
        if if_version is not None and if_version != version:
            raise VersionConflict(key, if_version, version)
        return stored, version, now


def _forget(db: Session, gone: list[tuple[str, int]]) -> None:
    if gone:
        db.run("UPDATE tool_floor SET version = :v WHERE version < :v", v=max(version for _, version in gone))
        db.each("DELETE FROM tool_state WHERE key = :key", [{"key": key} for key, _ in gone])


def _value(row: Any) -> Value:
    key, text, version, expires_at = row
    return Value(key, json.loads(text), version, expires_at)
