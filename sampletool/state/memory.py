"""A store inside one process: the same verbs as coroutines, for many of them in one event loop. It dies with it.

It is SQLite in memory. Every change happens under one lock, to a copy that takes its place after the journal, which is
*awaited*: a coroutine that is suspended there has read what is about to change, so without the lock updates are lost.
What is refused, or what the journal refuses, has changed nothing.
"""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any

from .sql import SqlStore, T
from .sql_verbs import Session
from .sqlite import STEPS, in_memory
from .store import Store, Write

Journal = Callable[[str, str], Awaitable[None]]
"""Called with the verb and the name of every change before it is made; if it raises, nothing is changed."""

_READING = ("counter_get", "counter_list", "state_get", "state_list", "task_list", "task_left", "health")


class MemoryStore:
    """See store.py, with `await` before every verb."""

    def __init__(self, journal: Journal = lambda verb, name: asyncio.sleep(0)) -> None:
        self._journal = journal
        self._lock = asyncio.Lock()
        self._tables = _Tables()
        self._tables.connection.executescript(";".join(STEPS))

    def __getattr__(self, verb: str) -> Callable[..., Coroutine[Any, Any, Any]]:
        if not hasattr(Store, verb):
            raise AttributeError(verb)

        async def ask(*args: Any, **named: Any) -> Any:
            if verb in _READING:
                return getattr(self._tables, verb)(*args, **named)
            return await self._change(verb, args, named)

        return ask

    async def _change(self, verb: str, args: Any, named: Any) -> Any:
        """Alone, from looking until it is changed."""
        async with self._lock:
            turn = _Tables()
            self._tables.connection.backup(turn.connection)
            answer = getattr(turn, verb)(*args, **named)
            if turn.written is not None:
                await self._journal(turn.written.verb, turn.written.arguments[0])
                self._tables = turn
            return answer


class _Tables(SqlStore):
    """What is refused is thrown away with its copy."""

    def __init__(self) -> None:
        self.connection = in_memory()
        self.written: Write | None = None

    def write(self, write: Write) -> tuple[Any, bool]:
        answer, is_replayed = super().write(write)
        self.written = None if is_replayed else write
        return answer, is_replayed

    def transact(self, body: Callable[[Session], T], *, may_repeat: bool) -> T:
        return body(self.connection)

    def describe(self) -> tuple[str, list[str], dict[str, str]]:
        return "in process", ["it ends with the process"], {}

    def close(self) -> None:
        self.connection.close()

    __del__ = close
