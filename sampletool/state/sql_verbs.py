"""The tables, and what each verb does to them, in a transaction of its own. See protocol.py for what it means."""

# The methods of a protocol: a docstring is their body.
# pyright: reportReturnType=false

from typing import Any, Protocol

from ..kit.contract.errors import VersionConflict
from .errors import CounterRange, LeaseLost, TaskConflict, TaskNotFailed, TaskNotFound
from .protocol import LARGEST

_IS_LAST = "max_attempts > 0 AND attempts >= max_attempts"
_STATUS = f"""CASE WHEN status <> 'claimed' OR due_at > now THEN status
              WHEN {_IS_LAST} THEN 'failed' ELSE 'expired' END"""
_AT_ONCE = 500
"""How many rows one statement looks at."""


class Session(Protocol):
    """An open transaction, or a connection to read on. Statements name their values `:like_this`."""

    now: str
    """The server's clock, in milliseconds."""
    locked: str
    """Ends a query of tasks: until the transaction ends nobody else changes them."""
    unclaimed: str
    """The same, and leaves out those that another worker is just claiming."""

    def rows(self, statement: str, **values: Any) -> list[Any]:
        """What it finds; nothing if it only changes something."""

    def each(self, statement: str, values: list[dict[str, Any]]) -> list[int]:
        """The statement for each of these; how many rows that changed, each time."""

    def be_alone_with(self, name: str) -> None:
        """Until the transaction ends nobody else is."""


def schema(*, text: str, serial: str) -> str:
    """`floor` is the highest version of any value that is gone: new values begin above it, so no version comes twice.
    `due_at` is when a task may be claimed: at once, after a delay, or when its lease ends."""
    return f"""
        CREATE TABLE tool_counters (name {text} PRIMARY KEY, value bigint NOT NULL);
        CREATE TABLE tool_state (
            key {text} PRIMARY KEY, value text NOT NULL, version bigint NOT NULL, expires_at bigint);
        CREATE INDEX tool_state_expiring ON tool_state (expires_at) WHERE expires_at IS NOT NULL;
        CREATE TABLE tool_floor (version bigint NOT NULL);
        INSERT INTO tool_floor VALUES (0);
        CREATE TABLE tool_tasks (
            position {serial}, id {text} NOT NULL UNIQUE, queue {text} NOT NULL, body text NOT NULL,
            due_at bigint, status text NOT NULL DEFAULT 'free', generation bigint NOT NULL DEFAULT 0,
            attempts bigint NOT NULL DEFAULT 0, max_attempts bigint NOT NULL DEFAULT 0, claimed_by text,
            claimed_at bigint);
        CREATE INDEX tool_tasks_open ON tool_tasks (queue, position) WHERE due_at IS NOT NULL;
        CREATE TABLE tool_once (key text PRIMARY KEY, digest text NOT NULL, answer text NOT NULL, expires_at bigint);
        CREATE INDEX tool_once_expiring ON tool_once (expires_at) WHERE expires_at IS NOT NULL"""


def schema_of_0_2(*, now: str, task_of_key: str) -> str:
    """`due_at` is 0 for a task that may be claimed at once, so that the oldest one is the first of its index, however
    many are leased, delayed, done or failed. A remembered answer knows its task, so that both go together."""
    return f"""
        ALTER TABLE tool_tasks ADD COLUMN ended_at bigint;
        UPDATE tool_tasks SET due_at = 0 WHERE status = 'free' AND due_at <= {now};
        DROP INDEX tool_tasks_open;
        CREATE INDEX tool_tasks_due ON tool_tasks (queue, due_at, position) WHERE due_at IS NOT NULL;
        ALTER TABLE tool_once ADD COLUMN task text;
        UPDATE tool_once SET task = {task_of_key} WHERE key LIKE 'task:[%';
        CREATE INDEX tool_once_task ON tool_once (task) WHERE task IS NOT NULL"""


def counter_add(db: Session, name: str, amount: int) -> tuple[int, str]:
    db.be_alone_with(f"counter {name}")
    found = db.rows("SELECT value FROM tool_counters WHERE name = :name", name=name)
    before = found[0][0] if found else 0
    if abs(before + amount) > LARGEST:
        raise CounterRange(counter=name, value=before, amount=amount)
    upsert = "INSERT INTO tool_counters VALUES (:name, :value) ON CONFLICT (name) DO UPDATE SET value = :value"
    db.rows(upsert, name=name, value=before + amount)
    return before + amount, "updated" if found else "created"


def counter_get(db: Session, name: str) -> int:
    found = db.rows("SELECT value FROM tool_counters WHERE name = :name", name=name)
    return found[0][0] if found else 0


def counter_list(db: Session, after: str, limit: int) -> list[Any]:
    page = "SELECT * FROM tool_counters WHERE name > :after ORDER BY name LIMIT :limit"
    return db.rows(page, after=after, limit=limit)


def state_get(db: Session, key: str) -> list[Any]:
    return db.rows(f"SELECT * FROM tool_state WHERE key = :key AND {living(db)}", key=key)


def state_set(db: Session, key: str, text: str, if_version: int | None, expires_ms: int | None) -> tuple[int, str]:
    stored, before, now = _versions(db, key, if_version)
    _sweep_values(db, key, now)
    version = (stored or db.rows("SELECT version FROM tool_floor")[0][0]) + 1
    ends = None if expires_ms is None else now + expires_ms
    upsert = """INSERT INTO tool_state VALUES (:key, :value, :version, :ends) ON CONFLICT (key)
                DO UPDATE SET value = :value, version = :version, expires_at = :ends"""
    db.rows(upsert, key=key, value=text, version=version, ends=ends)
    return version, "updated" if before else "created"


def state_unset(db: Session, key: str, if_version: int | None) -> tuple[int, str]:
    """Its row stays, expired, until it is swept: so that nobody has to wait here for the one floor of all values."""
    _, before, _ = _versions(db, key, if_version)
    db.rows("UPDATE tool_state SET value = '', expires_at = 0 WHERE key = :key", key=key)
    return before, "deleted" if before else "unchanged"


def state_list(db: Session, prefix: str, after: str, limit: int) -> list[Any]:
    page = f"""SELECT * FROM tool_state WHERE key > :after AND substr(key, 1, :length) = :prefix
               AND {living(db)} ORDER BY key LIMIT :limit"""
    return db.rows(page, prefix=prefix, length=len(prefix), after=after, limit=limit)


def task_add(db: Session, queue: str, tasks: list[tuple[str, str]], delay_ms: int) -> list[tuple[str, str]]:
    """Who adds an id that another caller is just adding waits for that one, and for nobody else."""
    put = f"""INSERT INTO tool_tasks (id, queue, body, due_at) VALUES (:id, :queue, :body, {_after(db, delay_ms)})
              ON CONFLICT (id) DO NOTHING"""
    rows = [{"id": task, "queue": queue, "body": body, "delay": delay_ms} for task, body in tasks]
    created = db.each(put, rows)
    known = [row for row, is_new in zip(rows, created, strict=True) if not is_new]
    is_other = "UPDATE tool_tasks SET id = id WHERE id = :id AND (queue <> :queue OR body <> :body)"
    others = db.each(is_other, known)
    if 1 in others:
        raise TaskConflict(task=known[others.index(1)]["id"])
    return [(task, "created" if is_new else "unchanged") for (task, _), is_new in zip(tasks, created, strict=True)]


def task_claim(
    db: Session, queue: str, worker: str, lease_ms: int, count: int, max_attempts: int, finish: list[tuple[str, int]]
) -> list[Any]:
    for task, generation in finish:
        task_finish(db, task, generation)
    _free_what_is_due(db, queue)
    oldest = f"""SELECT id, generation + 1, body, attempts + 1, (SELECT {db.now}) + :lease
                 FROM tool_tasks WHERE queue = :queue AND due_at <= 0
                 ORDER BY due_at, position LIMIT :count {db.unclaimed}"""
    found = db.rows(oldest, queue=queue, lease=lease_ms, count=count)
    take = """UPDATE tool_tasks SET status = 'claimed', generation = generation + 1, attempts = attempts + 1,
              max_attempts = :most, claimed_by = :worker, claimed_at = :due - :lease, due_at = :due
              WHERE id = :id"""
    for task, *_, due in found:
        db.rows(take, most=max_attempts, worker=worker, lease=lease_ms, id=task, due=due)
    return [tuple(row) for row in found]


def _free_what_is_due(db: Session, queue: str) -> None:
    """Some of it, so that no claim takes long; a task whose last attempt is over leaves the index instead."""
    due = f"""SELECT position FROM tool_tasks WHERE queue = :queue AND due_at > 0 AND due_at <= (SELECT {db.now})
              ORDER BY due_at, position LIMIT {_AT_ONCE} {db.unclaimed}"""
    is_over = f"status = 'claimed' AND {_IS_LAST}"
    free = f"""UPDATE tool_tasks SET ended_at = CASE WHEN {is_over} THEN due_at END,
               due_at = CASE WHEN {is_over} THEN NULL ELSE 0 END WHERE position IN ({due})"""
    db.rows(free, queue=queue)


def task_left(db: Session, queue: str, most: int) -> int:
    opened = f"""SELECT 1 AS one FROM tool_tasks, clock WHERE queue = :queue AND due_at IS NOT NULL
                 AND NOT (due_at BETWEEN 1 AND now AND status = 'claimed' AND {_IS_LAST}) LIMIT :most"""
    return int(db.rows(f"{_clock(db)} SELECT count(*) FROM ({opened}) AS opened", queue=queue, most=most)[0][0])


def task_retry(db: Session, task: str) -> str:
    _, status, _ = held(db, task, None)
    if status == "free":
        return "unchanged"
    if status != "failed":
        raise TaskNotFailed(task=task, status=status)
    free = """UPDATE tool_tasks SET status = 'free', attempts = 0, due_at = 0, ended_at = NULL, claimed_by = NULL,
              claimed_at = NULL, generation = generation + 1 WHERE id = :id"""
    db.rows(free, id=task)
    return "updated"


def task_clean(db: Session, older_ms: int, statuses: str, after: int, limit: int) -> tuple[int, int]:
    page = f"""{_clock(db)} SELECT position, id, {_STATUS}, coalesce(ended_at, due_at, claimed_at, 0) <= now - :older
               FROM tool_tasks, clock WHERE position > :after ORDER BY position LIMIT :limit"""
    found = db.rows(page, older=older_ms, after=after, limit=limit)
    gone = [{"id": task} for _, task, status, is_old in found if is_old and status in statuses.split(",")]
    db.each("DELETE FROM tool_once WHERE task = :id", gone)
    removed = sum(db.each("DELETE FROM tool_tasks WHERE id = :id AND status <> 'free'", gone))
    return removed, found[-1][0] if len(found) == limit else 0


def task_renew(db: Session, task: str, generation: int, lease_ms: int) -> int:
    _, status, now = held(db, task, generation, "claimed")
    if status != "claimed":
        raise LeaseLost(task, generation, generation, status)
    db.rows("UPDATE tool_tasks SET due_at = :due WHERE id = :id", due=now + lease_ms, id=task)
    return now + lease_ms


def task_finish(db: Session, task: str, generation: int) -> str:
    return _end(db, task, generation, f"status = 'done', due_at = NULL, ended_at = {db.now}", "done")


def task_release(db: Session, task: str, generation: int, delay_ms: int) -> str:
    put = f"""claimed_by = NULL, claimed_at = NULL, status = CASE WHEN {_IS_LAST} THEN 'failed' ELSE 'free' END,
              ended_at = CASE WHEN {_IS_LAST} THEN {db.now} END,
              due_at = CASE WHEN {_IS_LAST} THEN NULL ELSE {_after(db, delay_ms)} END"""
    return _end(db, task, generation, put, "free", "failed", delay_ms=delay_ms)


def _end(db: Session, task: str, generation: int, put: str, *ended: str, delay_ms: int = 0) -> str:
    """End a claim, in one statement if nothing is wrong; unchanged if that is how it has ended before."""
    put = f"UPDATE tool_tasks SET {put} WHERE id = :id AND generation = :generation AND status = 'claimed'"
    if db.each(put, [{"id": task, "generation": generation, "delay": delay_ms}]) == [1]:
        return "updated"
    held(db, task, generation, *ended)
    return "unchanged"


def task_list(db: Session, queue: str | None, status: str | None, after: int, limit: int) -> list[Any]:
    page = f"""{_clock(db)} SELECT id, queue, {_STATUS}, generation, attempts, claimed_by, claimed_at,
               nullif(due_at, 0), position, body FROM tool_tasks, clock WHERE position > :after
               AND (CAST(:queue AS text) IS NULL OR queue = :queue)
               AND (CAST(:status AS text) IS NULL OR {_STATUS} = :status) ORDER BY position LIMIT :limit"""
    return db.rows(page, queue=queue, status=status, after=after, limit=limit)


def held(db: Session, task: str, generation: int | None, *allowed: str) -> tuple[str, str, int]:
    """Alone with the task, if that is its generation and it was written as one of these: how, and as what it counts
    now, and the time. Without a generation whatever it is."""
    if db.locked:
        db.rows(f"SELECT id FROM tool_tasks WHERE id = :id {db.locked}", id=task)
    asked = f"{_clock(db)} SELECT status, {_STATUS}, now, generation FROM tool_tasks, clock WHERE id = :id"
    for written, status, now, actual in db.rows(asked, id=task):
        if generation is not None and (actual != generation or written not in allowed):
            raise LeaseLost(task, generation, actual, status)
        return written, status, now
    raise TaskNotFound(task=task)


def _versions(db: Session, key: str, if_version: int | None) -> tuple[int, int, int]:
    """Alone with the key: the version in the table, the one that counts (an expired value has none), and the time."""
    db.be_alone_with(f"state {key}")
    asked = f"""{_clock(db)} SELECT coalesce(version, 0), expires_at, now FROM clock
                LEFT JOIN tool_state ON key = :key"""
    stored, expires_at, now = db.rows(asked, key=key)[0]
    version = stored if expires_at is None or expires_at > now else 0
    if if_version is not None and if_version != version:
        raise VersionConflict(key=key, expected=if_version, actual=version)
    return stored, version, now


def _sweep_values(db: Session, key: str, now: int) -> None:
    """Removes some of what has expired, and lifts the floor above it, unless another caller is just doing that."""
    expired = f"expires_at <= :now AND key <> :key LIMIT 20 {db.unclaimed}"
    gone = db.rows(f"SELECT key, version FROM tool_state WHERE {expired}", now=now, key=key)
    if gone and db.rows(f"SELECT version FROM tool_floor {db.unclaimed}"):
        db.rows("UPDATE tool_floor SET version = :v WHERE version < :v", v=max(version for _, version in gone))
        db.each("DELETE FROM tool_state WHERE key = :key", [{"key": key} for key, _ in gone])


def _after(db: Session, delay_ms: int) -> str:
    """When a task is due that may be claimed after this `:delay`: without one at once."""
    return f"{db.now} + CAST(:delay AS bigint)" if delay_ms else "0"


def living(db: Session) -> str:
    return f"(expires_at IS NULL OR expires_at > {db.now})"


def _clock(db: Session) -> str:
    """One moment for a whole statement, as `now`."""
    return f"WITH clock AS (SELECT {db.now} AS now)"
