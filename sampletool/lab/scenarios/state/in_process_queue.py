"""One process, no threads, one event loop: what could go wrong? Two coroutines take items from one list.

Each looks whether there is an item, asks another service whether it may take it, and takes it. While it asks, the
other one goes on: every `await` is a moment at which the world may change. Nothing is written at the same time, and
still two took what was there once.

By name: an `asyncio.Lock` around the look, the await and the taking; or an `asyncio.Queue`, whose `get` does all three.
"""

import asyncio
from collections.abc import Coroutine
from contextlib import suppress
from pathlib import Path
from typing import Any

from ....state.memory import MemoryStore
from ....state.protocol import NewTask
from ...scenario import Removal, Scenario, Step, Way
from ._one_job import do_it, invariant, look

__all__ = ["invariant", "look"]


class World:
    def __init__(self) -> None:
        self.items = ["the item"]
        self.store = MemoryStore()
        run_alone(self.store.task_add("queue", [NewTask("the item", "item")]))


async def naive(worker: str, world: World) -> None:
    if world.items:
        item = world.items[0]
        await permission()
        world.items.remove(item)
        do_it(worker)


async def wrong_look_again(worker: str, world: World) -> None:
    for item in list(world.items):
        await permission()
        if item in world.items:
            await permission()
            do_it(worker)
            world.items = [other for other in world.items if other != item]


async def fixed(worker: str, world: World) -> None:
    claim = await world.store.task_claim("queue", worker, lease_ms=60_000)
    if claim.tasks:
        do_it(worker)


def run_alone(coroutine: Coroutine[Any, Any, object]) -> None:
    """To its end, before there is anybody else."""
    with suppress(StopIteration):
        while True:
            coroutine.send(None)


async def permission() -> None:
    await asyncio.sleep(0)


def prepare(directory: Path) -> None:
    """The item is in memory."""


scenario = Scenario(
    title="Two coroutines, one item",
    rule="Every await is a moment at which the world changes: decide and take without one between, or under a lock.",
    happened=(
        "buildhub, which lists the builds of Firefox: coroutines read a list while another one was still filling it, "
        "awaiting each part of it. A lock made it one at a time.",
        "https://github.com/mozilla-services/buildhub/pull/166",
    ),
    question="Nothing runs in parallel here. Can both coroutines still take the one item?",
    shared="who did it",
    private=("item",),
    world=World,
    ways={
        "naive": Way(
            says="look at the list, await, take",
            because="while A awaited its permission, B looked too, and saw the same item.",
        ),
        "wrong-look-again": Way(
            says="look again after the await, and await once more before taking",
            steps=(Step("look, then await", ""), Step("look again, then await", ""), Step("take", "")),
            because="looking again helps only if no await follows before it is taken.",
        ),
        "fixed": Way(
            says="our in-process store: looking, awaiting and taking under one asyncio.Lock",
            shows="A1 B1 A2",
            because="B had to wait for the lock while A awaited, and found the item taken.",
        ),
    },
    steps=(Step("look, then await", ""), Step("take", "")),
    mechanisms=(
        Removal(
            "state/memory.py:MemoryStore._change",
            says="no lock around it",
            pattern="async with self._lock:\n    ...",
            instead="if self._lock:\n    ...",
            breaks="the one job was done by A and B",
        ),
    ),
    symbol="sampletool.state.memory:MemoryStore._change",
    no_verb="No command of this tool runs coroutines: the right way is `MemoryStore`, a class for programs.",
    still_broken_by="a second process: an asyncio.Lock is one process's own.",
)
