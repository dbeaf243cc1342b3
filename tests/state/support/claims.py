"""Claims, as the tests of every backend make them."""

from typing import Any

from sampletool.state.protocol import Claimed, Fence, Once
from sampletool.state.store import Store

LONG = 3_600_000


def claim_one(store: Store, worker: str = "ann", lease_ms: int = LONG, **options: Any) -> Claimed:
    (task,) = store.task_claim("work", worker, lease_ms=lease_ms, **options).tasks
    return task


def fence(task: Claimed) -> Once:
    return Once(fence=Fence(task.id, task.generation))
