"""The cost of a verb does not grow with the number of stored tasks.

Times depend on the machine, so they are measured by `make bench ONLY=growth`. Here, what decides
about them is compared at 100 and at 10,000 stored tasks: the plans of statements, and the number of
commands that Redis executes.
"""

from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from sampletool.state.postgres import PostgresStore
from sampletool.state.protocol import Fence, NewTask
from sampletool.state.redis import RedisStore
from sampletool.state.sql import SqlStore
from sampletool.state.sql_verbs import Session
from sampletool.state.sqlite import SqliteStore
from sampletool.state.store import Store
from tests.state.support.claims import LONG
from tests.state.support.servers import Server
from tests.state.support.store_client import make_policy
from tests.state.support.stores import SharedBackend

SIZES = (100, 10_000)
ADDED_AT_ONCE = 1000
FREE_TASKS = 20

Asked = list[tuple[str, dict[str, Any]]]
"""Statements, with their values."""

MakeBackend = Callable[[str], SharedBackend]


def fill(store: Store, count: int) -> None:
    for first in range(0, count, ADDED_AT_ONCE):
        added = min(ADDED_AT_ONCE, count - first)
        store.task_add("work", [NewTask(number, f"t{first + number}") for number in range(added)])


VERBS: dict[str, Callable[[Store], object]] = {
    "add": lambda store: store.task_add("work", [NewTask("x")]),
    "claim": lambda store: store.task_claim("work", "ann", lease_ms=LONG),
    "list failed": lambda store: store.task_list(None, "failed", 0, 10),
    "list failed of a queue": lambda store: store.task_list("work", "failed", 0, 10),
    "list newest failed": lambda store: store.task_list("work", "failed", 0, 10, newest_first=True),
    "list free of a queue": lambda store: store.task_list("work", "free", 0, 10),
    "list claimed": lambda store: store.task_list(None, "claimed", 0, 10),
    "list all": lambda store: store.task_list(None, None, 0, 10),
    "list expired": lambda store: store.task_list(None, "expired", 0, 10),
    "clean": lambda store: store.task_clean(0, ["done"], limit=10),
    "retry": lambda store: store.task_retry("t1"),
    "cancel": lambda store: store.task_cancel("t1"),
    "show": lambda store: store.task_show("t1"),
}


# SQL


class Watching:
    """A session that notes each statement."""

    def __init__(self, session: Session, asked: Asked) -> None:
        self._session = session
        self._asked = asked

    def __getattr__(self, name: str) -> Any:
        return getattr(self._session, name)

    def rows(self, statement: str, **values: Any) -> list[Any]:
        self._asked.append((statement, values))
        return self._session.rows(statement, **values)

    def execute_each(self, statement: str, values: list[dict[str, Any]]) -> list[dict[str, Any]]:
        self._asked += [(statement, each) for each in values]
        return self._session.execute_each(statement, values)


def ask(store: SqlStore, verb: Callable[[Store], object]) -> Asked:
    """Execute a verb, and return the statements that it has sent."""
    asked: Asked = []
    original_transact = store.transact
    original_look = store.look

    def transact(body: Callable[[Session], Any], *args: Any) -> Any:
        return original_transact(lambda db: body(Watching(db, asked)), *args)

    def look(body: Callable[[Session], Any]) -> Any:
        # On PostgreSQL, this calls transact().
        if isinstance(store, PostgresStore):
            return original_look(body)
        return original_look(lambda db: body(Watching(db, asked)))

    store.transact = transact  # type: ignore[method-assign, assignment]
    store.look = look  # type: ignore[method-assign]
    try:
        verb(store)
    finally:
        store.transact = original_transact  # type: ignore[method-assign]
        store.look = original_look  # type: ignore[method-assign]
    return asked


def plan_of(store: SqlStore, statement: str, values: dict[str, Any]) -> str:
    explain = "EXPLAIN (COSTS OFF)" if isinstance(store, PostgresStore) else "EXPLAIN QUERY PLAN"
    rows = store.look(lambda db: db.rows(f"{explain} {statement}", **values))
    return "\n".join(str(row[-1]) for row in rows)


@pytest.fixture(params=["sqlite", "postgres"])
def filled_sql_stores(
    request: pytest.FixtureRequest,
    make_backend: MakeBackend,
    tmp_path: Path,
) -> Iterator[list[SqlStore]]:
    """Yield a store with 100 tasks, and one with 10,000."""
    stores: list[SqlStore] = []
    for size in SIZES:
        if request.param == "sqlite":
            store: SqlStore = SqliteStore(tmp_path / f"{size}.db", make_policy())
        else:
            store = PostgresStore(make_backend("postgres").url, make_policy())
        fill(store, size)
        store.transact(end_most_tasks)
        if isinstance(store, PostgresStore):
            store.current_connection().execute("VACUUM ANALYZE tool_tasks")
        stores.append(store)
    yield stores
    for store in stores:
        store.close()


def end_most_tasks(db: Session) -> None:
    """Let half of the tasks fail, and let nearly all others be done."""
    ((count,),) = db.rows("SELECT count(*) FROM tool_tasks")
    db.rows(
        """
        UPDATE tool_tasks SET
            status = CASE WHEN (position & 1) = 0 THEN 'failed' ELSE 'done' END,
            due_at = NULL, ended_at = 1
        WHERE position <= :last
        """,
        last=count - FREE_TASKS,
    )


def test_a_verb_sends_the_same_statements_however_many_tasks_there_are(
    filled_sql_stores: list[SqlStore],
) -> None:
    small, large = filled_sql_stores

    for name, verb in VERBS.items():
        statements_of_small = [statement for statement, _values in ask(small, verb)]
        statements_of_large = [statement for statement, _values in ask(large, verb)]

        assert statements_of_large == statements_of_small, name


def test_every_statement_finds_its_tasks_by_an_index_among_10_000(
    filled_sql_stores: list[SqlStore],
) -> None:
    """The planner has statistics, and chooses freely."""
    _small, large = filled_sql_stores
    scans = {}
    for name, verb in VERBS.items():
        for statement, values in ask(large, verb):
            plan = plan_of(large, statement, values)
            if "Seq Scan on tool_tasks" in plan or "SCAN tool_tasks" in plan:
                scans[name, statement] = plan
            # Sorting means that all rows of an index range are read, not only the first ones. Only
            # a statement that puts two pages together sorts these, and may sort the claims that
            # have expired, which are few.
            sort_count = plan.count("Sort Key") + plan.count("TEMP B-TREE")
            allowed_count = 3 * statement.count("UNION ALL")
            if sort_count > allowed_count:
                scans[name, statement] = plan

    # A list of everything follows the primary key: that is a scan of the table in its own order.
    scans = {place: plan for place, plan in scans.items() if place[0] != "list all"}
    assert scans == {}


# Redis

COMMANDS = {
    "add": 12,
    "claim": 15,
    "claim and finish": 23,
    "list failed": 16,
    "list failed of a queue": 16,
    "list newest failed": 18,
    "list free of a queue": 15,
    "list claimed": 7,
    "list all": 14,
    "list expired": 8,
    "clean": 14,
    "retry": 14,
    "cancel": 11,
    "show": 4,
}
"""How many commands Redis executes for a verb, with the call of the script."""


@pytest.mark.parametrize("size", SIZES)
def test_redis_executes_as_many_commands_however_many_tasks_there_are(
    private_server: Callable[[str], Server],
    size: int,
) -> None:
    # The server counts the commands of all clients.
    url = private_server("valkey").url
    with closing(RedisStore(url, make_policy())) as store:
        fill(store, size)
        store.task_claim("work", "ann", lease_ms=0, count=20, max_attempts=1)
        store.task_claim("work", "ann", lease_ms=LONG, count=0)
        (task,) = store.task_claim("work", "ann", lease_ms=LONG).tasks
        store.task_finish(task.id, task.generation)
        verbs = dict(VERBS)
        (task,) = store.task_claim("work", "ann", lease_ms=LONG).tasks
        claim = Fence(task.id, task.generation)
        verbs["claim and finish"] = lambda store: store.task_claim(
            "work", "ann", lease_ms=LONG, finish=[claim]
        )

        counts = {name: count_commands(store, verb) for name, verb in verbs.items()}

    assert counts == COMMANDS


def count_commands(store: RedisStore, verb: Callable[[Store], object]) -> int:
    """Return how many commands the server executes for a verb, those of the script included."""
    before = commands_of(store)
    verb(store)
    # The command that has counted the first time is counted the second time.
    return commands_of(store) - before - 1


def commands_of(store: RedisStore) -> int:
    stats = store._client.info("commandstats")
    return sum(command["calls"] for command in stats.values())
