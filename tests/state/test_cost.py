"""The cost of a verb, where it does not depend on the machine: its statements and indexes."""

import re
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from sampletool.state.postgres import PostgresStore
from sampletool.state.protocol import Fence, NewTask, Once
from sampletool.state.sql import SqlStore
from sampletool.state.sql_verbs import Session
from sampletool.state.sqlite import SqliteStore
from sampletool.state.store import Store
from tests.state.support.outcomes import raises, statuses
from tests.state.support.store_client import make_policy

LONG = 3_600_000
STATEMENTS = {
    "counter_add": 2,
    "counter_get": 1,
    "state_set": 4,
    "state_get": 1,
    "state_unset": 2,
    "task_add": 1,
    "task_claim": 3,
    "task_renew": 3,
    "task_release": 1,
    "task_finish": 1,
    "task_retry": 3,
    "task_left": 1,
    "task_list": 1,
    "task_clean": 3,
}
"""The statements of each verb without an idempotency key, except for BEGIN and COMMIT.

On a server, each is one round trip.
"""

_LOCKING = ("task_renew", "task_retry")
"""They lock a row before they look at it, where there are such locks."""
_SMALL = ("tool_floor",)
"""Of one row."""


class Watching:
    """A session that tells what it is asked."""

    def __init__(self, session: Session, asked: list[tuple[str, dict[str, Any]]]) -> None:
        self._session, self._asked = session, asked

    def __getattr__(self, name: str) -> Any:
        return getattr(self._session, name)

    def rows(self, statement: str, **values: Any) -> list[Any]:
        self._asked.append((statement, values))
        return self._session.rows(statement, **values)

    def execute_each(self, statement: str, values: list[dict[str, Any]]) -> list[dict[str, Any]]:
        self._asked += [(statement, one) for one in values[:1]]
        return self._session.execute_each(statement, values)


class Watched:
    """A store whose statements are remembered."""

    def __init__(self, store: SqlStore) -> None:
        self.store, self.asked, self.begun = store, [], 0
        self._transact, self.look = store.transact, store.look
        watched: Any = store
        watched.transact = self._begin
        if isinstance(store, SqliteStore):
            watched.look = lambda body: self.look(lambda db: body(Watching(db, self.asked)))

    asked: list[tuple[str, dict[str, Any]]]

    def _begin(self, body: Callable[[Any], Any], *args: Any) -> Any:
        self.begun += 1
        return self._transact(lambda db: body(Watching(db, self.asked)), *args)

    def asked_for(self, verb: str, *args: Any, **named: Any) -> list[tuple[str, dict[str, Any]]]:
        self.asked.clear()
        getattr(self.store, verb)(*args, **named)
        return [*self.asked]

    def __getattr__(self, name: str) -> Any:
        return getattr(self.store, name)


@pytest.fixture(params=["sqlite", "postgres"])
def store(
    request: pytest.FixtureRequest, make_backend: Callable[[str], Any], tmp_path: Path
) -> Iterator[Watched]:
    database: SqlStore
    if request.param == "sqlite":
        database = SqliteStore(tmp_path / "state.db", make_policy())
    else:
        database = PostgresStore(make_backend("postgres").url, make_policy())
    with closing(Watched(database)) as store:
        yield store


def every_verb(store: Any) -> dict[str, list[tuple[str, dict[str, Any]]]]:
    asked = {
        "counter_add": store.asked_for("counter_add", "hits", 1),
        "counter_get": store.asked_for("counter_get", "hits"),
        "state_set": store.asked_for("state_set", "key", 1),
        "state_get": store.asked_for("state_get", "key"),
        "state_unset": store.asked_for("state_unset", "key"),
        "task_add": store.asked_for(
            "task_add", "work", [NewTask(number, f"t{number}") for number in range(4)]
        ),
        "task_claim": store.asked_for("task_claim", "work", "ann", lease_ms=LONG, max_attempts=1),
        "task_renew": store.asked_for("task_renew", "t0", 1, lease_ms=LONG),
        "task_release": store.asked_for("task_release", "t0", 1),
        "task_retry": store.asked_for("task_retry", "t0"),
    }
    tasks = store.task_claim("work", "ann", lease_ms=LONG, count=2).tasks
    asked["task_finish"] = store.asked_for("task_finish", tasks[0].id, tasks[0].generation)
    asked["task_left"] = store.asked_for("task_left", "work")
    asked["task_list"] = store.asked_for("task_list", "work", None, 0, 9)
    asked["task_clean"] = store.asked_for("task_clean", 0, ["done"])
    return asked


def test_no_verb_asks_more_than_it_has_to(store: Any) -> None:
    store.counter_add("hits", 1)

    asked = every_verb(store)

    wanted = STATEMENTS | (
        dict.fromkeys(_LOCKING, 2) if isinstance(store.store, SqliteStore) else {}
    )
    assert {verb: len(statements) for verb, statements in asked.items()} == wanted


def test_finishing_and_claiming_the_next_is_one_transaction(store: Any) -> None:
    store.task_add("work", [NewTask(1), NewTask(2)])
    (task,) = store.task_claim("work", "ann", lease_ms=LONG).tasks
    store.begun = 0

    store.task_claim("work", "ann", lease_ms=LONG, finish=[Fence(task.id, task.generation)])

    assert (store.begun, statuses(store, "work")) == (1, {"claimed": 1, "done": 1})


def test_every_statement_of_every_verb_uses_an_index(store: Any) -> None:
    """So that its cost does not grow with what the store keeps."""
    store.state_set("short", 1, expires_ms=0)
    store.counter_add("hits", 1, Once("key"))
    asked = every_verb(store)
    asked["with a key"] = store.asked_for("counter_add", "hits", 1, Once("other"))
    asked["pages"] = store.asked_for("state_list", "a", "", 9) + store.asked_for(
        "counter_list", "", 9
    )

    def plans(db: Session) -> dict[str, str]:
        if isinstance(store.store, PostgresStore):
            db.rows("SET LOCAL enable_seqscan = off")
        explain = "EXPLAIN" if isinstance(store.store, PostgresStore) else "EXPLAIN QUERY PLAN"
        statements = {said: values for statements in asked.values() for said, values in statements}
        return {
            said: "; ".join(str(row[-1]) for row in db.rows(f"{explain} {said}", **values))
            for said, values in statements.items()
        }

    found = store.look(plans)
    scanned = {
        said: plan
        for said, plan in found.items()
        for table in re.findall(r"(?:SCAN|Seq Scan on) (tool_\w+)(?! USING)", plan)
        if table not in _SMALL
    }

    assert scanned == {}
    due = [plan for said, plan in found.items() if "ORDER BY due_at" in said]
    assert len(due) == 2
    assert all(re.search("due_at ?<", plan) for plan in due), due


def test_what_is_lost_is_neither_finished_nor_is_anything_claimed_with_it(backend: Any) -> None:
    from sampletool.state.errors import LeaseLost

    store: Store = backend.open()
    store.task_add("work", [NewTask(1, "a"), NewTask(2, "b"), NewTask(3, "c")])
    mine, other = store.task_claim("work", "ann", lease_ms=LONG, count=2).tasks
    store.task_release(other.id, other.generation)
    claims = [Fence(one.id, one.generation) for one in (mine, other)]

    with raises(LeaseLost):
        store.task_claim("work", "ann", lease_ms=LONG, finish=claims)

    assert statuses(store, "work") == {"claimed": 1, "free": 2}
    assert [
        one.id for one in store.task_claim("work", "ann", lease_ms=LONG, finish=claims[:1]).tasks
    ] == ["b"]
    assert statuses(store, "work") == {"claimed": 1, "done": 1, "free": 1}
    assert store.task_claim("work", "ann", lease_ms=LONG, finish=claims[:1]).tasks[0].id == "c"


def test_a_repeated_claim_has_to_finish_the_same(backend: Any) -> None:
    from sampletool.state.errors import IdempotencyKeyReused

    store: Store = backend.open()
    store.task_add("work", [NewTask(1, "a"), NewTask(2, "b")])
    (task,) = store.task_claim("work", "ann", lease_ms=LONG).tasks
    done = [Fence(task.id, task.generation)]
    first = store.task_claim("work", "ann", lease_ms=LONG, once=Once("k"), finish=done)

    again = store.task_claim("work", "ann", lease_ms=LONG, once=Once("k"), finish=done)

    assert (again.tasks, again.replayed) == (first.tasks, True)
    with raises(IdempotencyKeyReused):
        store.task_claim("work", "ann", lease_ms=LONG, once=Once("k"))
