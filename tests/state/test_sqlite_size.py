"""The file of a SQLite store does not shrink by itself. The page says so, and what to do."""

import sqlite3
from contextlib import closing
from pathlib import Path

from sampletool.state.protocol import NewTask
from sampletool.state.sqlite import SqliteStore
from tests.state.support.claims import LONG
from tests.state.support.store_client import make_policy

COUNT = 500
BODY = "x" * 2000


def fill_and_clean(path: Path) -> None:
    """Add tasks, finish them, and remove them."""
    with closing(SqliteStore(path, make_policy())) as store:
        store.task_add("work", [NewTask(BODY) for _ in range(COUNT)])
        claimed = store.task_claim("work", "ann", lease_ms=LONG, count=COUNT).tasks
        for task in claimed:
            store.task_finish(task.id, task.generation)
        assert store.task_clean(0, ["done"], limit=COUNT)[0] == COUNT


def test_removed_tasks_leave_space_that_later_tasks_use(tmp_path: Path) -> None:
    path = tmp_path / "state.db"
    fill_and_clean(path)
    size = path.stat().st_size
    assert size > COUNT * len(BODY)

    fill_and_clean(path)

    assert path.stat().st_size < 1.1 * size


def test_vacuum_gives_the_space_back_and_the_store_still_works(tmp_path: Path) -> None:
    path = tmp_path / "state.db"
    fill_and_clean(path)
    with closing(SqliteStore(path, make_policy())) as store:
        store.counter_add("hits", 5)

    with closing(sqlite3.connect(path)) as outsider:
        outsider.execute("VACUUM")

    assert path.stat().st_size < COUNT * len(BODY) / 2
    with closing(SqliteStore(path, make_policy())) as store:
        assert store.counter_add("hits", 1).value == 6
