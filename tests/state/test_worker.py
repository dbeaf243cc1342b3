"""sampletool/state/worker.py: how long a lease lasts, as the worker sees it."""

import os
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from sampletool.kit.safety.children import Children
from sampletool.kit.safety.signals import Signals
from sampletool.state.opening import open_store
from sampletool.state.promises import NewTask
from sampletool.state.store import Store
from sampletool.state.worker import Worker
from tests.state.support.store_client import make_terms

ANSWER_SECONDS = 0.5


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
def worker(tmp_path: Path) -> Worker:
    store = open_store(f"sqlite://{tmp_path}/state.db", None, make_terms())
    store.task_add("work", [NewTask("x", "a")])
    signals = Signals()
    slow: Any = SlowToAnswer(store)
    (tmp_path / "request").mkdir()
    told = {"tell": lambda line: None, "cwd": tmp_path, "session_directory": tmp_path, "request_id": "request"}
    context: Any = SimpleNamespace(signals=signals, session_id="ann", **told)
    return Worker(
        context,
        slow,
        Children(signals, []),
        tmp_path / "workers.lock",
        url=None,
        queue="work",
        argv=["/bin/sleep", "600"],
        environment=dict(os.environ),
        jobs=1,
        lease_ms=60_000,
        max_attempts=0,
    )


def test_a_lease_is_counted_from_when_it_was_asked_for(worker: Worker) -> None:
    """The store counts from before its answer: who counts from the answer works on when the task is another's."""
    with worker.children:
        for _ in range(2):
            worker.turn()
            (task,) = worker.store.task_list("work", None, 0, 9)
            (one,) = worker.running.values()
            assert task.due_at is not None
            assert one.lease_ends_at - time.monotonic() <= task.due_at / 1000 - time.time() + ANSWER_SECONDS / 4
            one.renew_at = 0.0  # in the second turn it is renewed
