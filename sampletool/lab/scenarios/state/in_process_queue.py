"""One process, no threads, one event loop. Two coroutines take jobs from one list.

Each coroutine looks for a job, asks another service for permission, and takes the job. While one of
them waits for permission, the other one runs: at every `await`, the data may change. The two
coroutines never run at the same time, but both take the same job.
"""

import asyncio
from collections.abc import Coroutine
from contextlib import suppress
from pathlib import Path
from typing import Any

from ....state.memory import MemoryStore
from ....state.protocol import NewTask
from ...scenario import Mutation, Scenario, Step, Variant
from ._one_job import do_job, invariant, read_state

__all__ = ["invariant", "read_state"]


class SharedMemory:
    """One job in two forms: as an item of a list, and as a task of a store in memory."""

    def __init__(self) -> None:
        self.items = ["the item"]
        self.store = MemoryStore()
        run_to_end(self.store.task_add("queue", [NewTask("the item", "item")]))


async def naive(worker: str, memory: SharedMemory) -> None:
    if memory.items:
        item = memory.items[0]
        await ask_for_permission()
        memory.items.remove(item)
        do_job(worker)


async def wrong_look_again(worker: str, memory: SharedMemory) -> None:
    """Look again after the first wait. Wrong: the item may be taken during the second wait."""
    for item in list(memory.items):
        await ask_for_permission()
        if item in memory.items:
            await ask_for_permission()
            do_job(worker)
            memory.items = [other for other in memory.items if other != item]


async def fixed_without_await(worker: str, memory: SharedMemory) -> None:
    await ask_for_permission()
    if memory.items:
        memory.items.pop()
        do_job(worker)


async def fixed(worker: str, memory: SharedMemory) -> None:
    claim = await memory.store.task_claim("queue", worker, lease_ms=60_000)
    if claim.tasks:
        do_job(worker)


def run_to_end(coroutine: Coroutine[Any, Any, object]) -> None:
    """Run the coroutine to its end without an event loop, before the workers start."""
    # A coroutine raises StopIteration at its end.
    with suppress(StopIteration):
        while True:
            coroutine.send(None)


async def ask_for_permission() -> None:
    """Wait for another service. Meanwhile, the other worker may run."""
    await asyncio.sleep(0)


def prepare(directory: Path) -> None:
    """Create nothing: the item is in memory."""


scenario = Scenario(
    title="asyncio race condition: two coroutines take the same job",
    subtitle="The data changes during an `await`.",
    rule=(
        "Data may change at every await. Decide and act without an await in between, or hold an "
        "asyncio.Lock."
    ),
    happened=(
        "In buildhub, which lists the builds of Firefox, coroutines read a list while another "
        "coroutine was still filling it, with an await for each part. A lock fixed it.",
        "https://github.com/mozilla-services/buildhub/pull/166",
    ),
    question="Nothing runs in parallel here. Can both coroutines still take the same job?",
    shared="who did it",
    private_variables=("item",),
    create_shared_memory=SharedMemory,
    variants={
        "naive": Variant(
            summary="looks at the list, awaits, takes the job",
            explanation="While A waited for permission, B looked at the list and saw the same job.",
        ),
        "wrong-look-again": Variant(
            summary="looks again after the await, but awaits once more before it takes the job",
            steps=(
                Step(name="look, then await", event=""),
                Step(name="look again, then await", event=""),
                Step(name="take", event=""),
            ),
            explanation="A second look helps only if no await follows before the job is taken.",
        ),
        "fixed": Variant(
            summary="looks, awaits and takes the job under one asyncio.Lock",
            schedule="A1 B1 A2",
            explanation=(
                "B waited for the lock while A waited for permission, and then found no job."
            ),
        ),
        "fixed-without-await": Variant(
            summary="awaits first, then looks and takes the job without an await in between",
            steps=(Step(name="await", event=""), Step(name="look and take", event="")),
            explanation="A looked and took the job in one step, so B found no job.",
        ),
    },
    steps=(Step(name="look, then await", event=""), Step(name="take", event="")),
    mechanisms=(
        Mutation(
            function="state/memory.py:MemoryStore._change",
            summary="do not take the lock",
            original_code="async with self._lock:\n    ...",
            replacement_code="if self._lock:\n    ...",
            expected_problem="the job was done by A and B",
        ),
    ),
    production_code="sampletool.state.memory:MemoryStore._change",
    no_verb=(
        "No command of this tool runs coroutines. The fix on this page is `MemoryStore`, a class "
        "for "
        "programs that use asyncio."
    ),
)
