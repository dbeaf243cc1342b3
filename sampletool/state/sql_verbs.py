"""The tables of the SQL stores, and what each verb does to them in its transaction.

store.py says what each verb promises. The functions here are the same for SQLite and PostgreSQL.
What differs is in `Session`: the clock, and the locks that only PostgreSQL needs.

Many statements are f-strings. They insert only fragments of SQL that are written in this program:
conditions, columns and expressions. A value of a caller is never inserted, but passed as `:name`.
"""

# The methods of a protocol have only a docstring as their body.
# pyright: reportReturnType=false

from typing import Any, NamedTuple, Protocol

from ..kit.contract.errors import VersionConflict
from .errors import (
    CounterRange,
    LeaseLost,
    TaskConflict,
    TaskEnded,
    TaskNotFailed,
    TaskNotFound,
)
from .protocol import MAX_INTEGER, Fence

_IS_LAST_ATTEMPT = "max_attempts > 0 AND attempts >= max_attempts"
"""The condition that a task may not be claimed again. A limit of 0 means no limit."""

_HOLDS_CLAIM = """
    (status IN ('claimed', 'expired') OR (status = 'failed' AND claimed_by IS NOT NULL))
"""
"""The condition that the last claim of a task was neither finished nor released nor cancelled.

A task that failed because its last lease expired is still named after its worker, and can be
finished late.
"""

_NOW = "(SELECT now FROM clock)"
"""The time in a statement that begins with `_with_clock`.

Not a join with `clock`: SQLite does not see that it has one row, and would sort all tasks, instead
of reading the first ones of an index.
"""

_CURRENT_STATUS = f"""
    CASE
        WHEN status <> 'claimed' OR due_at > {_NOW} THEN status
        WHEN {_IS_LAST_ATTEMPT} THEN 'failed'
        ELSE 'expired'
    END
"""
"""The status of a task at the time `_NOW`. The column does not change when a lease expires."""

_LEASE_HAS_EXPIRED = f"status = 'claimed' AND due_at BETWEEN 1 AND {_NOW}"
"""The condition that a lease has expired and that no claim has noticed it yet.

The `due_at` of a claimed task is the end of its lease.
"""

_MAX_FREED_TASKS = 500
"""How many expired leases one claim processes. More would make one claim slow."""

_MAX_SWEPT_VALUES = 20
"""How many expired values one write removes."""


_RETRY_ASSIGNMENTS = """
    status = 'free', attempts = 0, due_at = 0, ended_at = NULL,
    claimed_by = NULL, claimed_at = NULL, generation = generation + 1
"""
"""The assignments of an UPDATE that makes a failed task free, with no attempts so far."""

_TASK_COLUMNS = f"""
    id, queue, {_CURRENT_STATUS} AS current_status, generation, attempts, claimed_by, claimed_at,
    nullif(due_at, 0) AS shown_due_at, position, body
"""
"""The columns of a listed task, as `_to_task_state` in store.py reads them.

A task that can be claimed at once has the `due_at` 0, which is not shown.
"""

MAX_EXIT_CODES = 20
"""How many exit codes of failed attempts a task keeps."""


class Session(Protocol):
    """A transaction, or a connection that only reads. A statement names its values `:like_this`."""

    now: str
    """The SQL expression for the time of the server, in milliseconds since 1970."""

    for_update: str
    """The end of a query that locks the rows it finds, until the transaction ends."""

    skip_locked: str
    """The same, but the query leaves out rows that another transaction has locked."""

    is_repetition: bool
    """Whether an earlier attempt at this transaction may have succeeded: its reply was lost."""

    def rows(self, statement: str, **values: Any) -> list[Any]:
        """Return the rows that a statement finds. There are none if it only changes something."""

    def execute_each(
        self,
        statement: str,
        values: list[dict[str, Any]],
    ) -> list[dict[str, Any]]:
        """Execute a statement for each of the values. Return those with which it changed a row."""

    def lock_name(self, name: str) -> None:
        """Wait until no other transaction has locked this name, and lock it for this one.

        This protects something that has no row yet, so that no row can be locked.
        """


def schema_of_0_1(*, text: str, serial: str) -> str:
    """Return the statements that create the tables.

    * `tool_floor` has the highest version of all values that were removed. New values start above
      it, so no version is ever used twice.
    * `due_at` is when a task can be claimed: now, after its delay, or when its lease expires. It is
      NULL if the task has ended.
    * `tool_once` has the results of writes with a key.

    `text` is the type of texts that are sorted by their code points. `serial` is the type of a
    column that numbers the rows in the order in which they are added.
    """
    return f"""
        CREATE TABLE tool_counters (name {text} PRIMARY KEY, value bigint NOT NULL);
        CREATE TABLE tool_state (
            key {text} PRIMARY KEY,
            value text NOT NULL,
            version bigint NOT NULL,
            expires_at bigint
        );
        CREATE INDEX tool_state_expiring ON tool_state (expires_at) WHERE expires_at IS NOT NULL;
        CREATE TABLE tool_floor (version bigint NOT NULL);
        INSERT INTO tool_floor VALUES (0);
        CREATE TABLE tool_tasks (
            position {serial},
            id {text} NOT NULL UNIQUE,
            queue {text} NOT NULL,
            body text NOT NULL,
            due_at bigint,
            status text NOT NULL DEFAULT 'free',
            generation bigint NOT NULL DEFAULT 0,
            attempts bigint NOT NULL DEFAULT 0,
            max_attempts bigint NOT NULL DEFAULT 0,
            claimed_by text,
            claimed_at bigint
        );
        CREATE INDEX tool_tasks_open ON tool_tasks (queue, position) WHERE due_at IS NOT NULL;
        CREATE TABLE tool_once (
            key text PRIMARY KEY,
            digest text NOT NULL,
            answer text NOT NULL,
            expires_at bigint
        );
        CREATE INDEX tool_once_expiring ON tool_once (expires_at) WHERE expires_at IS NOT NULL"""


def schema_of_0_2(*, now: str, task_of_key: str) -> str:
    """Return the statements that upgrade the tables of version 0.1 to those of 0.2.

    * `due_at` is now 0 for a task that can be claimed at once. So the oldest such task is the first
      in its index, however many tasks are claimed, delayed, done or failed.
    * `tool_once` now has the task of a fenced write, so that its result is removed with the task.

    `now` is the SQL expression for the time in milliseconds since 1970.

    The key of a fenced write is `task:` and a JSON list that begins with the id of the task, such
    as `task:["ann", "counter_add", "sent", null]`. `task_of_key` is the SQL expression that returns
    this id. In a LIKE pattern, `%` stands for any text. The pattern has the `[` because a key that
    would be too long is `task:` and a hash, which does not contain the id.
    """
    return f"""
        ALTER TABLE tool_tasks ADD COLUMN ended_at bigint;
        UPDATE tool_tasks SET due_at = 0 WHERE status = 'free' AND due_at <= {now};
        DROP INDEX tool_tasks_open;
        CREATE INDEX tool_tasks_due ON tool_tasks (queue, due_at, position)
            WHERE due_at IS NOT NULL;
        ALTER TABLE tool_once ADD COLUMN task text;
        UPDATE tool_once SET task = {task_of_key} WHERE key LIKE 'task:[%';
        CREATE INDEX tool_once_task ON tool_once (task) WHERE task IS NOT NULL"""


def schema_of_0_3() -> str:
    """Return the statements that upgrade the tables of version 0.2 to those of 0.3.

    * The result of a fenced write knows the generation that made it.
    * The status of a task whose lease has expired is stored, once a claim has noticed that. So an
      index finds the tasks of each status.
    * A task has a limit of attempts of its own, a result, and what is known of failed attempts.
    * A claim says where its worker starts commands, so that a later worker finds what is left.
    """
    return """
        ALTER TABLE tool_once ADD COLUMN generation bigint;
        ALTER TABLE tool_tasks ADD COLUMN request text;
        ALTER TABLE tool_tasks ADD COLUMN place text;
        ALTER TABLE tool_tasks ADD COLUMN own_max_attempts bigint;
        ALTER TABLE tool_tasks ADD COLUMN result text;
        ALTER TABLE tool_tasks ADD COLUMN exit_codes text;
        ALTER TABLE tool_tasks ADD COLUMN failure_tail text;
        UPDATE tool_tasks SET status = 'failed' WHERE status = 'claimed' AND due_at IS NULL;
        UPDATE tool_tasks SET status = 'expired' WHERE status = 'claimed' AND due_at = 0;
        CREATE INDEX tool_tasks_of_status ON tool_tasks (status, position);
        CREATE INDEX tool_tasks_of_queue ON tool_tasks (queue, status, position)"""


# Counters


def counter_add(db: Session, name: str, amount: int) -> tuple[int, str]:
    """Add to a counter (see Store.counter_add). Return its new value and the effect."""
    db.lock_name(f"counter {name}")
    rows = db.rows("SELECT value FROM tool_counters WHERE name = :name", name=name)
    value_before = 0
    if rows:
        value_before = single_value(rows)
    value = value_before + amount
    if abs(value) > MAX_INTEGER:
        raise CounterRange(counter=name, value=value_before, amount=amount)
    db.rows(
        """
        INSERT INTO tool_counters VALUES (:name, :value)
        ON CONFLICT (name) DO UPDATE SET value = :value
        """,
        name=name,
        value=value,
    )
    effect = "updated" if rows else "created"
    return value, effect


def counter_get(db: Session, name: str) -> int:
    """Return the value of a counter, or 0 if there is none (see Store.counter_get)."""
    rows = db.rows("SELECT value FROM tool_counters WHERE name = :name", name=name)
    if not rows:
        return 0
    return int(single_value(rows))


def counter_list(db: Session, after: str, limit: int) -> list[tuple[str, int]]:
    """Return the names and values of some counters (see Store.counter_list)."""
    return db.rows(
        "SELECT * FROM tool_counters WHERE name > :after ORDER BY name LIMIT :limit",
        after=after,
        limit=limit,
    )


# Values


def state_get(db: Session, key: str) -> list[Any]:
    """Return the row of a value, or no row if there is no value (see Store.state_get)."""
    statement = f"""
        SELECT key, value, version, expires_at FROM tool_state
        WHERE key = :key AND {has_not_expired(db)}
    """
    return db.rows(statement, key=key)


def state_set(
    db: Session,
    key: str,
    text: str,
    if_version: int | None,
    expires_ms: int | None,
) -> tuple[int, str]:
    """Set a value (see Store.state_set). Return its new version and the effect."""
    previous = _lock_value(db, key, if_version)
    _sweep_values(db, key, previous.now)
    new_version = _last_version(db, previous.stored_version) + 1
    expires_at = None
    if expires_ms is not None:
        expires_at = previous.now + expires_ms
    db.rows(
        """
        INSERT INTO tool_state (key, value, version, expires_at)
        VALUES (:key, :value, :version, :expires_at)
        ON CONFLICT (key) DO UPDATE SET
            value = :value, version = :version, expires_at = :expires_at
        """,
        key=key,
        value=text,
        version=new_version,
        expires_at=expires_at,
    )
    # A value that has expired does not count, although its row may still be in the table.
    effect = "updated" if previous.current_version > 0 else "created"
    return new_version, effect


def _last_version(db: Session, stored_version: int) -> int:
    """Return a version that is at least as high as those of all earlier values of a key.

    `stored_version` is the version in the row of the key, or 0 if the key has no row.
    """
    if stored_version > 0:
        return stored_version
    # The key may have had a row that was swept. The floor is not below the version of that row.
    return int(single_value(db.rows("SELECT version FROM tool_floor")))


def state_unset(db: Session, key: str, if_version: int | None) -> tuple[int, str]:
    """Remove a value (see Store.state_unset). Return the version that it had, and the effect."""
    previous = _lock_value(db, key, if_version)
    # The row stays, expired, until a later write sweeps it. Removing it here would have to raise
    # the floor, which all values share, and all callers would wait for each other.
    db.rows("UPDATE tool_state SET value = '', expires_at = 0 WHERE key = :key", key=key)
    effect = "deleted" if previous.current_version > 0 else "unchanged"
    return previous.current_version, effect


def state_list(db: Session, prefix: str, after: str, limit: int) -> list[Any]:
    """Return the rows of some values (see Store.state_list)."""
    # Not LIKE: `%` and `_` in the prefix would match other characters, and SQLite ignores case.
    return db.rows(
        f"""
        SELECT key, value, version, expires_at FROM tool_state
        WHERE key > :after AND substr(key, 1, :length) = :prefix AND {has_not_expired(db)}
        ORDER BY key LIMIT :limit
        """,
        prefix=prefix,
        length=len(prefix),
        after=after,
        limit=limit,
    )


class _LockedValue(NamedTuple):
    """The version of a value that no other transaction can change until this one ends."""

    stored_version: int
    """The version in the row of the key. 0 if it has no row. An expired value still has one."""

    current_version: int
    """The version that a caller sees: 0 if there is no value, or if it has expired."""

    now: int
    """The time at which the row was read."""


def _lock_value(db: Session, key: str, if_version: int | None) -> _LockedValue:
    """Lock a key, and return its version.

    Raise VersionConflict if `if_version` is not None and the current version is another one.
    """
    db.lock_name(f"state {key}")
    ((stored_version, expires_at, now),) = db.rows(
        f"""
        {_with_clock(db)} SELECT coalesce(version, 0), expires_at, now
        FROM clock LEFT JOIN tool_state ON key = :key
        """,
        key=key,
    )
    current_version = stored_version
    if expires_at is not None and expires_at <= now:
        current_version = 0
    if if_version is not None and if_version != current_version:
        raise VersionConflict(key=key, expected=if_version, actual=current_version)
    return _LockedValue(
        stored_version=stored_version,
        current_version=current_version,
        now=now,
    )


def _sweep_values(db: Session, key: str, now: int) -> None:
    """Remove a few expired values other than this one, and raise the floor above their versions."""
    expired_values = db.rows(
        f"""
        SELECT key, version FROM tool_state WHERE expires_at <= :now AND key <> :key
        LIMIT {_MAX_SWEPT_VALUES} {db.skip_locked}
        """,
        now=now,
        key=key,
    )
    if not expired_values:
        return
    # If another caller has locked the floor, leave the values to a later write.
    floor = db.rows(f"SELECT version FROM tool_floor {db.skip_locked}")
    if not floor:
        return
    highest_version = max(version for _key, version in expired_values)
    db.rows("UPDATE tool_floor SET version = :v WHERE version < :v", v=highest_version)
    expired_keys = [{"key": expired_key} for expired_key, _version in expired_values]
    db.execute_each("DELETE FROM tool_state WHERE key = :key", expired_keys)


# Tasks


def task_add(
    db: Session,
    queue: str,
    tasks: list[tuple[str, str]],
    delay_ms: int,
    max_attempts: int | None,
) -> list[tuple[str, str]]:
    """Add tasks (see Store.task_add). Return the id of each task, and the effect on it."""
    rows: list[dict[str, Any]] = []
    for task_id, body in tasks:
        row = {
            "id": task_id,
            "queue": queue,
            "body": body,
            "delay": delay_ms,
            "max_attempts": max_attempts,
        }
        rows.append(row)
    # This needs no lock of the queue. Because an id is unique, a caller waits only if another
    # caller is adding the same id.
    added_rows = db.execute_each(
        f"""
        INSERT INTO tool_tasks (id, queue, body, due_at, own_max_attempts)
        VALUES (:id, :queue, :body, {_due_after_delay(db, delay_ms)}, :max_attempts)
        ON CONFLICT (id) DO NOTHING
        """,
        rows,
    )
    added_ids = {row["id"] for row in added_rows}
    known_rows = [row for row in rows if row["id"] not in added_ids]
    # An UPDATE that changes nothing finds the known tasks with another queue or body.
    conflicting_rows = db.execute_each(
        "UPDATE tool_tasks SET id = id WHERE id = :id AND (queue <> :queue OR body <> :body)",
        known_rows,
    )
    if conflicting_rows:
        raise TaskConflict(task=conflicting_rows[0]["id"])
    effects: list[tuple[str, str]] = []
    for task_id, _body in tasks:
        effects.append((task_id, "created" if task_id in added_ids else "unchanged"))
    return effects


def task_claim(
    db: Session,
    queue: str,
    worker: str,
    lease_ms: int,
    count: int,
    max_attempts: int,
    request_id: str,
    is_repetition: int,
    place: str | None,
    finish: list[Fence],
) -> list[tuple[Any, ...]]:
    """Claim tasks (see Store.task_claim). Return a row for each: `_to_claimed` reads it."""
    for claim in finish:
        task_finish(db, claim.task, claim.generation, result=None)
    if is_repetition:
        already_claimed = _find_claimed(db, queue, request_id)
        if already_claimed:
            return already_claimed
    _free_expired(db, queue)
    # Now, each task that can be claimed has the `due_at` 0.
    oldest_tasks = db.rows(
        f"""
        SELECT id, generation + 1, body, attempts + 1, (SELECT {db.now}) + :lease, place
        FROM tool_tasks WHERE queue = :queue AND due_at <= 0
        ORDER BY due_at, position LIMIT :count {db.skip_locked}
        """,
        queue=queue,
        lease=lease_ms,
        count=count,
    )
    for task_id, _generation, _body, _attempts, expires_at, _earlier_place in oldest_tasks:
        db.rows(
            """
            UPDATE tool_tasks SET
                status = 'claimed', generation = generation + 1, attempts = attempts + 1,
                max_attempts = coalesce(own_max_attempts, :max_attempts), claimed_by = :worker,
                claimed_at = :expires_at - :lease, due_at = :expires_at, request = :request,
                place = coalesce(:place, place)
            WHERE id = :id
            """,
            request=request_id,
            place=place,
            max_attempts=max_attempts,
            worker=worker,
            lease=lease_ms,
            id=task_id,
            expires_at=expires_at,
        )
    return oldest_tasks


def _find_claimed(db: Session, queue: str, request_id: str) -> list[tuple[Any, ...]]:
    """Return the tasks that this request has claimed, and that it still holds."""
    return db.rows(
        f"""
        SELECT id, generation, body, attempts, due_at, NULL FROM tool_tasks
        WHERE queue = :queue AND due_at > (SELECT {db.now})
            AND status = 'claimed' AND request = :request
        ORDER BY position
        """,
        queue=queue,
        request=request_id,
    )


def _free_expired(db: Session, queue: str) -> None:
    """Let tasks be claimed whose delay is over or whose lease has expired: up to _MAX_FREED_TASKS.

    Such a task gets the `due_at` 0. But if the expired lease was that of the last attempt, the task
    has failed: its `due_at` becomes NULL, and it ended when the lease expired.
    """
    has_failed = f"status = 'claimed' AND {_IS_LAST_ATTEMPT}"
    db.rows(
        f"""
        UPDATE tool_tasks SET
            status = CASE
                WHEN {has_failed} THEN 'failed'
                WHEN status = 'claimed' THEN 'expired'
                ELSE status
            END,
            ended_at = CASE WHEN {has_failed} THEN due_at END,
            due_at = CASE WHEN {has_failed} THEN NULL ELSE 0 END
        WHERE position IN (
            SELECT position FROM tool_tasks
            WHERE queue = :queue AND due_at > 0 AND due_at <= (SELECT {db.now})
            ORDER BY due_at, position LIMIT {_MAX_FREED_TASKS} {db.skip_locked}
        )
        """,
        queue=queue,
    )


def task_renew(db: Session, task: str, generation: int, lease_ms: int) -> int:
    """Extend the lease of a claim (see Store.task_renew). Return when it expires now."""
    locked_task = lock_claim(db, Fence(task, generation))
    if locked_task.status != "claimed":
        raise LeaseLost(task, generation, generation, locked_task.status)
    expires_at = locked_task.now + lease_ms
    db.rows(
        "UPDATE tool_tasks SET due_at = :expires_at WHERE id = :id",
        expires_at=expires_at,
        id=task,
    )
    return expires_at


def task_finish(db: Session, task: str, generation: int, result: str | None) -> str:
    """Mark the task of a claim as done (see Store.task_finish). Return the effect."""
    claim = Fence(task, generation)
    assignments = f"status = 'done', due_at = NULL, ended_at = {db.now}, result = :result"
    if _update_if_current(db, claim, assignments, result=result):
        return "updated"
    # The claim was not current. If an earlier call has finished it, there is nothing to do.
    # Otherwise, the worker has lost the claim.
    _refuse_unless_ended_as(db, claim, ("done",))
    return "unchanged"


def task_release(
    db: Session,
    task: str,
    generation: int,
    delay_ms: int,
    exit_code: str | None,
    tail: str | None,
    unused: int,
) -> str:
    """Give the task of a claim back (see Store.task_release). Return the effect.

    `unused` is 1 if nothing was executed for the claim, and 0 otherwise.
    """
    claim = Fence(task, generation)
    if exit_code is not None:
        _add_exit_code(db, claim, exit_code, tail)
    if unused:
        assignments = _undo_attempt(db, delay_ms)
    else:
        assignments = _free_or_fail(db, delay_ms)
    if _update_if_current(db, claim, assignments, delay=delay_ms):
        return "updated"
    # The claim was not current. If an earlier call has released it, there is nothing to do.
    # Otherwise, the worker has lost the claim.
    _refuse_unless_ended_as(db, claim, ("free", "failed"))
    return "unchanged"


def _undo_attempt(db: Session, delay_ms: int) -> str:
    """Return the assignments of an UPDATE that makes a task free, as if it had not been claimed.

    The UPDATE gets the delay as its value `:delay`.
    """
    return f"""
        claimed_by = NULL, claimed_at = NULL, attempts = attempts - 1,
        status = 'free', ended_at = NULL, due_at = {_due_after_delay(db, delay_ms)}
    """


def _free_or_fail(db: Session, delay_ms: int) -> str:
    """Return the assignments of an UPDATE that makes a task free, or failed after its last attempt.

    The UPDATE gets the delay as its value `:delay`. A failed task is never due again.
    """
    due_at = _due_after_delay(db, delay_ms)
    return f"""
        claimed_by = NULL, claimed_at = NULL,
        status = CASE WHEN {_IS_LAST_ATTEMPT} THEN 'failed' ELSE 'free' END,
        ended_at = CASE WHEN {_IS_LAST_ATTEMPT} THEN {db.now} END,
        due_at = CASE WHEN {_IS_LAST_ATTEMPT} THEN NULL ELSE {due_at} END
    """


def _add_exit_code(db: Session, claim: Fence, exit_code: str, output_tail: str | None) -> None:
    """Add the exit code of a failed attempt to its task, and store the end of the output.

    Do nothing if the claim of the attempt is not current.
    """
    rows = db.rows(
        f"""
        SELECT exit_codes FROM tool_tasks
        WHERE id = :id AND generation = :generation AND {_HOLDS_CLAIM} {db.for_update}
        """,
        id=claim.task,
        generation=claim.generation,
    )
    is_current = len(rows) > 0
    if not is_current:
        return
    exit_codes = [exit_code]
    # A text such as "1 137". None if no attempt has failed before.
    earlier_exit_codes = single_value(rows)
    if earlier_exit_codes is not None:
        exit_codes = [*earlier_exit_codes.split(), exit_code]
    db.rows(
        "UPDATE tool_tasks SET exit_codes = :exit_codes, failure_tail = :tail WHERE id = :id",
        exit_codes=" ".join(exit_codes[-MAX_EXIT_CODES:]),
        tail=output_tail,
        id=claim.task,
    )


def _update_if_current(db: Session, claim: Fence, assignments: str, **values: Any) -> bool:
    """Update the task of a claim if the claim is current. Return whether it was.

    `assignments` is the part of the UPDATE after SET. `values` are the values that it names, such
    as `:result`. The check and the update are one statement, so nothing can come in between.
    """
    statement = f"""
        UPDATE tool_tasks SET {assignments}
        WHERE id = :id AND generation = :generation AND {_HOLDS_CLAIM}
    """
    all_values = {"id": claim.task, "generation": claim.generation, **values}
    updated_rows = db.execute_each(statement, [all_values])
    return len(updated_rows) > 0


def task_retry(db: Session, task: str) -> str:
    """Make a failed task free (see Store.task_retry). Return the effect."""
    locked_task = lock_task(db, task)
    if locked_task.status == "free":
        return "unchanged"
    if locked_task.status != "failed":
        raise TaskNotFailed(task=task, status=locked_task.status)
    db.rows(f"UPDATE tool_tasks SET {_RETRY_ASSIGNMENTS} WHERE id = :id", id=task)
    return "updated"


def task_retry_all(db: Session, queue: str, limit: int) -> int:
    """Make failed tasks of a queue free (see Store.task_retry_all). Return how many."""
    failed_ids = _lock_failed_tasks(db, queue, limit)
    # In others, the last lease has expired, but no claim has changed their status to `failed` yet.
    failed_ids += _lock_expired_last_attempts(db, queue, limit - len(failed_ids))
    failed_rows = [{"id": task_id} for task_id in failed_ids]
    freed_rows = db.execute_each(
        f"UPDATE tool_tasks SET {_RETRY_ASSIGNMENTS} WHERE id = :id",
        failed_rows,
    )
    return len(freed_rows)


def _lock_failed_tasks(db: Session, queue: str, limit: int) -> list[str]:
    """Lock the first tasks of a queue that have the status `failed`, and return their ids."""
    rows = db.rows(
        f"""
        SELECT id FROM tool_tasks WHERE queue = :queue AND status = 'failed'
        ORDER BY position LIMIT :limit {db.skip_locked}
        """,
        queue=queue,
        limit=limit,
    )
    return [task_id for (task_id,) in rows]


def _lock_expired_last_attempts(db: Session, queue: str, limit: int) -> list[str]:
    """Lock claimed tasks of a queue whose last lease has expired, and return their ids."""
    # Only a task that is delayed or claimed has a `due_at` above 0, and these are few.
    rows = db.rows(
        f"""
        SELECT id FROM tool_tasks
        WHERE queue = :queue AND due_at > 0 AND due_at <= (SELECT {db.now})
            AND status = 'claimed' AND {_IS_LAST_ATTEMPT}
        ORDER BY due_at, position LIMIT :limit {db.skip_locked}
        """,
        queue=queue,
        limit=limit,
    )
    return [task_id for (task_id,) in rows]


def task_cancel(db: Session, task: str) -> str:
    """Cancel a task (see Store.task_cancel). Return the effect."""
    locked_task = lock_task(db, task)
    if locked_task.status == "cancelled":
        return "unchanged"
    if locked_task.status in ("done", "failed"):
        raise TaskEnded(task=task, status=locked_task.status)
    # The new generation ends the claim, if there is one.
    db.rows(
        f"""
        UPDATE tool_tasks SET
            status = 'cancelled', generation = generation + 1, due_at = NULL, ended_at = {db.now},
            claimed_by = NULL, claimed_at = NULL
        WHERE id = :id
        """,
        id=task,
    )
    return "updated"


def task_clean(
    db: Session,
    min_age_ms: int,
    statuses: str,
    after: int,
    limit: int,
) -> tuple[int, int]:
    """Remove tasks that ended long ago (see Store.task_clean).

    `statuses` are separated by commas. Return how many tasks were removed, and the position to
    continue after: 0 at the end.
    """
    removable_statuses = statuses.split(",")
    # The end of some tasks is not in `ended_at`. If no claim has noticed that the last lease of a
    # task has expired, its end is in `due_at`. A task that ended in version 0.1 has only the time
    # of its claim, or no time at all.
    page = db.rows(
        f"""
        {_with_clock(db)} SELECT
            position, id, {_CURRENT_STATUS},
            coalesce(ended_at, due_at, claimed_at, 0) <= {_NOW} - :min_age
        FROM tool_tasks WHERE position > :after ORDER BY position LIMIT :limit
        """,
        min_age=min_age_ms,
        after=after,
        limit=limit,
    )
    old_tasks = []
    for _position, task_id, status, is_old in page:
        if is_old and status in removable_statuses:
            old_tasks.append({"id": task_id})
    db.execute_each("DELETE FROM tool_once WHERE task = :id", old_tasks)
    # `task_retry` may have freed the task since the page was read.
    removed_rows = db.execute_each(
        "DELETE FROM tool_tasks WHERE id = :id AND status <> 'free'",
        old_tasks,
    )
    next_position = 0
    is_last_page = len(page) < limit
    if not is_last_page:
        next_position, *_other_columns = page[-1]
    return len(removed_rows), next_position


def task_left(db: Session, queue: str, limit: int) -> int:
    """Return how many tasks are neither done nor failed, up to a limit (see Store.task_left)."""
    # Only such tasks have a `due_at`, with one exception: a task whose last lease has expired has
    # failed, but keeps its `due_at` until a claim notices that. The NOT excludes these.
    rows = db.rows(
        f"""
        {_with_clock(db)} SELECT count(*) FROM (
            SELECT 1 AS one FROM tool_tasks
            WHERE queue = :queue AND due_at IS NOT NULL AND NOT (
                due_at BETWEEN 1 AND {_NOW} AND status = 'claimed' AND {_IS_LAST_ATTEMPT}
            )
            LIMIT :limit
        ) AS open_tasks
        """,
        queue=queue,
        limit=limit,
    )
    return int(single_value(rows))


def task_list(
    db: Session,
    queue: str | None,
    status: str | None,
    after: int,
    limit: int,
    newest: int,
) -> list[Any]:
    """Return the rows of some tasks, with the columns _TASK_COLUMNS (see Store.task_list)."""
    order = "position DESC" if newest else "position"
    conditions = []
    if not newest:
        conditions.append("position > :after")
    elif after != 0:
        # With 0, the list starts with the newest task, so there is nothing to skip.
        conditions.append("position < :after")
    if queue is not None:
        conditions.append("queue = :queue")
    if status is not None:
        selected_tasks = _tasks_with_status(status, conditions, order)
    else:
        selected_tasks = _select_tasks(conditions, order)
    values = {"queue": queue, "status": status, "after": after, "limit": limit}
    return db.rows(f"{_with_clock(db)} {selected_tasks}", **values)


def _select_tasks(conditions: list[str], order: str) -> str:
    """Return the query for the first `:limit` tasks that meet all of these conditions."""
    # `1 = 1`, which is always true, in case there is no condition.
    where = " AND ".join(["1 = 1", *conditions])
    return f"""
        SELECT {_TASK_COLUMNS} FROM tool_tasks WHERE {where} ORDER BY {order} LIMIT :limit
    """


def _tasks_with_status(status: str, conditions: list[str], order: str) -> str:
    """Return the query for the first `:limit` tasks whose current status is `:status`.

    The current status of most tasks is in the column `status`. But when a lease expires, the column
    stays `claimed` until the next claim in the queue changes it to `expired` or `failed`. So a list
    of expired or failed tasks needs a second query.
    """
    column_is_current = f"(status <> 'claimed' OR due_at > {_NOW})"
    tasks_by_column = _select_tasks(["status = :status", column_is_current, *conditions], order)
    if status not in ("expired", "failed"):
        return tasks_by_column
    has_current_status = f"{_CURRENT_STATUS} = :status"
    tasks_by_lease = _select_tasks([_LEASE_HAS_EXPIRED, has_current_status, *conditions], order)
    # There are few claimed tasks, and an index finds the tasks of each of the two queries.
    #
    # Each query is in a SELECT of its own: the parts of a UNION may not have an ORDER BY.
    return f"""
        SELECT * FROM (
            SELECT * FROM ({tasks_by_column}) AS tasks_by_column
            UNION ALL
            SELECT * FROM ({tasks_by_lease}) AS tasks_by_lease
        ) AS tasks
        ORDER BY {order} LIMIT :limit
    """


def task_show(db: Session, task: str) -> tuple[Any, ...]:
    """Return a task: _TASK_COLUMNS and four more columns. Raise TaskNotFound if there is none."""
    rows = db.rows(
        f"""
        {_with_clock(db)} SELECT
            {_TASK_COLUMNS}, coalesce(own_max_attempts, max_attempts), result, exit_codes,
            failure_tail
        FROM tool_tasks WHERE id = :id
        """,
        id=task,
    )
    if not rows:
        raise TaskNotFound(task=task)
    (row,) = rows
    return tuple(row)


def task_stats(db: Session, queue: str | None) -> list[tuple[str, str, int]]:
    """Return rows of a queue, a status and a count of tasks (see Store.task_stats)."""
    where = "1 = 1" if queue is None else "queue = :queue"
    # An index has all that this query needs, so it does not read the bodies of tasks.
    stored_counts = db.rows(
        f"""
        SELECT queue, status, count(*) FROM tool_tasks WHERE {where} GROUP BY queue, status
        """,
        queue=queue,
    )
    # There, a claimed task whose lease has expired counts as `claimed`. Count these tasks by their
    # current status, which is `expired` or `failed`.
    counts_of_expired_leases = db.rows(
        f"""
        {_with_clock(db)} SELECT queue, {_CURRENT_STATUS} AS current_status, count(*)
        FROM tool_tasks WHERE {where} AND status = 'claimed' AND due_at <= {_NOW}
        GROUP BY queue, current_status
        """,
        queue=queue,
    )
    counts = {(name, status): count for name, status, count in stored_counts}
    for name, status, count in counts_of_expired_leases:
        counts[name, "claimed"] -= count
        counts[name, status] = counts.get((name, status), 0) + count
    return [(name, status, count) for (name, status), count in counts.items()]


READ_FROM_EMPTY_STORE: dict[str, Any] = {
    "counter_get": 0,
    "counter_list": [],
    "state_get": [],
    "state_list": [],
    "task_left": 0,
    "task_list": [],
    "task_stats": [],
}
"""What each reading verb returns for a store without tables."""


class LockedTask(NamedTuple):
    """A task that no other transaction can change until this one ends."""

    generation: int
    holds_claim: bool
    """Whether its last claim was neither finished nor released."""

    status: str
    """The status at the time `now`."""

    now: int


def lock_task(db: Session, task: str) -> LockedTask:
    """Lock a task, and return its generation and its status. Raise TaskNotFound if it is gone."""
    if db.for_update:
        # On PostgreSQL, lock the row first, and read it with a second statement. The statement that
        # waits for the lock would return the row as it was before.
        db.rows(f"SELECT id FROM tool_tasks WHERE id = :id {db.for_update}", id=task)
    rows = db.rows(
        f"""
        {_with_clock(db)} SELECT generation, {_HOLDS_CLAIM}, {_CURRENT_STATUS}, {_NOW}
        FROM tool_tasks WHERE id = :id
        """,
        id=task,
    )
    if not rows:
        raise TaskNotFound(task=task)
    (row,) = rows
    generation, holds_claim, status, now = row
    return LockedTask(
        generation=generation,
        holds_claim=bool(holds_claim),
        status=status,
        now=now,
    )


def lock_claim(db: Session, claim: Fence) -> LockedTask:
    """Lock the task of a claim. Raise LeaseLost if the claim is not current.

    The lease of a current claim may have expired, as long as no other worker has the task.
    """
    locked_task = lock_task(db, claim.task)
    if locked_task.generation != claim.generation or not locked_task.holds_claim:
        raise _lease_lost(claim, locked_task)
    return locked_task


def _refuse_unless_ended_as(db: Session, claim: Fence, statuses: tuple[str, ...]) -> None:
    """Raise LeaseLost unless this was the last claim, and its task has one of the statuses.

    A worker that has lost a reply repeats its call. The repetition is not refused if the first call
    has already ended the claim.
    """
    locked_task = lock_task(db, claim.task)
    was_last_claim = locked_task.generation == claim.generation
    if not was_last_claim or locked_task.status not in statuses:
        raise _lease_lost(claim, locked_task)


def _lease_lost(claim: Fence, task: LockedTask) -> LeaseLost:
    """Return the error for a claim that is not current. `task` is its task as it is now."""
    return LeaseLost(claim.task, claim.generation, task.generation, task.status)


def check_fence(db: Session, fence: Fence | None) -> None:
    """Raise LeaseLost if the claim of a fenced write is no longer current."""
    if fence is not None:
        lock_claim(db, fence)


def single_value(rows: list[Any]) -> Any:
    """Return the value in the only column of the only row."""
    ((value,),) = rows
    return value


def has_not_expired(db: Session) -> str:
    """Return the SQL condition that a row has not expired. It contains no value of a caller."""
    return f"(expires_at IS NULL OR expires_at > {db.now})"


def _due_after_delay(db: Session, delay_ms: int) -> str:
    """Return the SQL expression for the `due_at` of a task that is free: 0 means at once.

    The statement gets the delay as its value `:delay`, even if the expression does not need it.
    """
    if delay_ms == 0:
        return "0"
    return f"{db.now} + CAST(:delay AS bigint)"


def _with_clock(db: Session) -> str:
    """Return the start of a statement in which `_NOW` is the same moment everywhere."""
    return f"WITH clock AS (SELECT {db.now} AS now)"
