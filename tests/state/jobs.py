"""What many clients do at once. Written once, for stores in other processes and for the one in this."""

import random
from typing import Any

from sampletool.contract.errors import VersionConflict
from sampletool.contract.store_errors import LeaseLost
from sampletool.state.promises import Fence, NewTask, Once


async def count(store: Any, _number: int, times: int) -> list[int]:
    """The values that these additions made."""
    return [(await store.counter_add("hits", 1)).value for _ in range(times)]


async def count_once(store: Any, _number: int, key: str) -> int:
    return int((await store.counter_add("hits", 1, Once(key))).value)


async def add_tasks(store: Any, number: int, times: int) -> int:
    for index in range(times):
        await store.task_add("work", [NewTask(index, f"{number}-{index}")])
    return times


async def add_same_task(store: Any, _number: int) -> str:
    return str((await store.task_add("work", [NewTask("body", "one")])).effects[0][1])


async def drain(store: Any, number: int) -> list[str]:
    """Everything that this worker claimed and finished; each has one fenced effect."""
    finished = []
    while tasks := (await store.task_claim("work", f"worker-{number}", lease_ms=60_000)).tasks:
        for task in tasks:
            await store.counter_add("effects", 1, Once(fence=_fence(task)))
            await store.task_finish(task.id, task.generation)
            finished.append(task.id)
    return finished


async def drain_briefly(store: Any, number: int) -> list[str]:
    """With leases so short that claims are lost all the time: what is finished twice, or has two effects, is a bug."""
    finished = []
    while any(status != "done" for status in await store.task_count("work")):
        claimed = (await store.task_claim("work", f"worker-{number}", lease_ms=random.choice([0, 1, 500]))).tasks
        for task in claimed:
            try:
                await store.counter_add(f"effect-{task.id}", 1, Once(fence=_fence(task)))
                if await store.task_finish(task.id, task.generation) == "updated":
                    finished.append(task.id)
            except LeaseLost:
                continue
    return finished


async def append(store: Any, number: int, times: int) -> int:
    """A list that everybody appends to, by compare-and-set."""
    for index in range(times):
        while True:
            found = await store.state_get("list")
            try:
                await store.state_set("list", [*found.value, f"{number}-{index}"], if_version=found.version)
                break
            except VersionConflict:
                continue
    return times


async def create(store: Any, number: int) -> bool:
    """Whether this one was the first."""
    try:
        await store.state_set("leader", number, if_version=0)
    except VersionConflict:
        return False
    return True


def _fence(task: Any) -> Fence:
    return Fence(task.id, task.generation)
