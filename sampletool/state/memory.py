"""A store inside one process: the same verbs as coroutines, for many of them in one event loop. It dies with it.

Every change happens under one lock. It is made to a copy of the tables, and the copy takes their place after the
journal, which is *awaited*: a coroutine that is suspended there has read what is about to change, so without the lock
updates are lost. What is refused, or what the journal refuses, has changed nothing.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any

from sampletool.state import memory_verbs
from sampletool.state.errors import LeaseLost
from sampletool.state.memory_tables import Tables
from sampletool.state.promises import Health, Store
from sampletool.state.verbs import Verbs, Write

Journal = Callable[[str, str], Awaitable[None]]
"""Told the verb and the name of every change before it is made; if it raises, nothing is changed."""

_READING = ("counter_get", "counter_list", "state_get", "state_list", "task_list", "task_count", "health")


async def _no_journal(_verb: str, _name: str) -> None:
    await asyncio.sleep(0)


class MemoryStore:
    """See promises.py, with `await` before every verb."""

    def __init__(self, journal: Journal = _no_journal) -> None:
        self._journal = journal
        self._lock = asyncio.Lock()
        self._tables = Tables()

    def __getattr__(self, verb: str) -> Callable[..., Coroutine[Any, Any, Any]]:
        if not hasattr(Store, verb):
            raise AttributeError(verb)

        async def ask(*args: Any, **named: Any) -> Any:
            if verb in _READING:
                return getattr(_Turn(self._tables), verb)(*args, **named)
            return await self._change(verb, args, named)

        return ask

    async def _change(self, verb: str, args: Any, named: Any) -> Any:
        """Alone, from looking until it is changed."""
        async with self._lock:
            turn = _Turn(self._tables)
            answer = getattr(turn, verb)(*args, **named)
            if turn.written is not None:
                await self._journal(turn.written.verb, turn.written.arguments[0])
                self._tables = turn.tables
            return answer


class _Turn(Verbs):
    """One verb, at one moment."""

    def __init__(self, tables: Tables) -> None:
        self.tables = tables
        self.written: Write | None = None
        self._now = int(time.time() * 1000)

    def write(self, write: Write) -> tuple[Any, bool]:
        fence = write.once.fence
        if fence is not None:
            task = memory_verbs.held(self.tables, self._now, fence.task, fence.generation)
            if task.status != "claimed":
                raise LeaseLost(fence.task, fence.generation, fence.generation, task.status)
        said, answer, ends = self.tables.once.get(write.key or "", ("", None, 0))
        if ends is None or ends > self._now:
            if said != write.said:
                raise write.reused()
            return answer, True
        self.tables, self.written = self.tables.copy(), write
        answer = getattr(memory_verbs, write.verb)(self.tables, self._now, *write.arguments)
        if write.key is not None:
            self.tables.remember(write, answer, self._now)
        return answer, False

    def read(self, verb: str, *arguments: Any) -> Any:
        return getattr(memory_verbs, verb)(self.tables, self._now, *arguments)

    def health(self) -> Health:
        return Health("in process", ["it ends with the process"], 0)

    def close(self) -> None:
        """It dies with its process."""
