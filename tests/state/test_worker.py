"""sampletool/state/worker.py: how long a lease lasts, as the worker sees it, and what an outage does to it."""

import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from sampletool.kit.context import Context
from sampletool.kit.safety.signals import Signals
from sampletool.state.opening import open_store
from sampletool.state.promises import NewTask
from sampletool.state.store import Store
from sampletool.state.worker import Worker
from tests.state.support.store_client import make_terms

ANSWER_SECONDS = 0.2


class SlowToAnswer:
    """A store that does everything at once, and whose answers take a while."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def __getattr__(self, verb: str) -> Any:
        def ask(*args: Any, **options: Any) -> Any:
            answer = getattr(self._store, verb)(*args, **options)
            time.sleep(ANSWER_SECONDS)
            return answer

        return ask


@pytest.fixture
def worker(tmp_path: Path) -> Iterator[Worker]:
    context = Context(Signals())
    context.options = {"lock_timeout": "100ms"}
    url = f"sqlite://{tmp_path}/state.db"
    with context.opened:
        worker = Worker(context, url, "work", ["/bin/sleep", "600"], 1, lease_ms=60_000, max_attempts=0)
        worker.store.task_add("work", [NewTask("x", "a")])
        slow: Any = SlowToAnswer(worker.store)
        worker.store = slow
        yield worker


def test_a_lease_is_counted_from_when_it_was_asked_for(worker: Worker) -> None:
    """The store counts from before its answer: who counts from the answer works on when the task is another's."""
    with worker.children:
        for _ in range(2):
            worker.turn()
            (task,) = worker.store.task_list("work", None, 0, 9)
            (one,) = worker.running.values()
            ends_at = datetime.fromisoformat(str(task.lease_expires_at)).timestamp()
            assert one.lease_ends_at - time.monotonic() <= ends_at - time.time() + ANSWER_SECONDS / 4
            one.lease_ends_at -= 30  # in the second turn it is renewed


def test_a_renewal_that_meets_an_outage_is_tried_again(worker: Worker, tmp_path: Path) -> None:
    with worker.children, closing(sqlite3.connect(tmp_path / "state.db", isolation_level=None)) as outsider:
        worker.turn()
        (one,) = worker.running.values()
        before = one.lease_ends_at = one.lease_ends_at - 30
        outsider.execute("BEGIN EXCLUSIVE")
        worker.turn()
        outsider.execute("ROLLBACK")
        assert ([*worker.running.values()], one.lease_ends_at) == ([one], before)

        worker.turn()
        assert one.lease_ends_at > before


def test_while_the_store_is_away_no_command_outlives_its_lease_however_many_there_are(
    worker: Worker, tmp_path: Path
) -> None:
    """Each question takes its time to fail, and the commands ignore SIGTERM."""
    worker.jobs, worker.lease_ms, worker.argv = 8, 4000, ["/bin/sh", "-c", 'trap "" TERM; while :; do sleep 1; done']
    worker.store = open_store(f"sqlite://{tmp_path}/state.db", None, make_terms(patience=0.5))
    worker.store.task_add("work", [NewTask("x") for _ in range(7)])
    with worker.children, closing(sqlite3.connect(tmp_path / "state.db", isolation_level=None)) as outsider:
        worker.turn()
        lease_ends_at = min(one.lease_ends_at for one in worker.running.values())
        outsider.execute("BEGIN EXCLUSIVE")

        while worker.running:
            worker.turn()

        assert time.monotonic() < lease_ends_at
        outsider.execute("ROLLBACK")
