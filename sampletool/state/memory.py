"""A store inside one process, for the coroutines of one event loop. It ends with the process.

Its verbs are those of store.py, with `await` before each. The data is a SQLite database in memory.

Each change is made to a copy, while a lock is held, and the copy then replaces the original. In
between, the change awaits the *journal*: a function of the caller, which may write the change to a
file, for example. While it waits, other coroutines run. Without the lock, they would read what is
about to change, and their updates would be lost. A change that is refused, by the store or by the
journal, has changed nothing: its copy is discarded.
"""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any

from .sql import ServerDescription, SqlStore, T
from .sql_verbs import Session
from .sqlite import SCHEMA_STEPS, connect_to_memory
from .store import Reply, Store, Write

Journal = Callable[[str, str], Awaitable[None]]
"""A function that is awaited before each change. Its arguments are the verb and the name.

If it raises an error, nothing is changed.
"""

_READING_VERBS = (
    "counter_get",
    "counter_list",
    "state_get",
    "state_list",
    "task_list",
    "task_left",
    "task_show",
    "task_stats",
    "health",
)


async def _no_journal(_verb: str, _name: str) -> None:
    await asyncio.sleep(0)


class MemoryStore:
    """A store whose verbs are coroutines."""

    def __init__(self, journal: Journal = _no_journal) -> None:
        self._journal = journal
        self._lock = asyncio.Lock()
        self._tables = _Tables()
        self._tables.connection.executescript(";".join(SCHEMA_STEPS))

    def __getattr__(self, verb: str) -> Callable[..., Coroutine[Any, Any, Any]]:
        """Return the coroutine function for a verb of `Store`."""
        if not hasattr(Store, verb):
            raise AttributeError(verb)

        async def call(*args: Any, **options: Any) -> Any:
            if verb in _READING_VERBS:
                return getattr(self._tables, verb)(*args, **options)
            return await self._change(verb, args, options)

        return call

    async def _change(self, verb: str, args: Any, options: Any) -> Any:
        """Make a change. No other change is made between its first look and its end."""
        async with self._lock:
            copy = _Tables()
            self._tables.connection.backup(copy.connection)
            result = getattr(copy, verb)(*args, **options)
            if copy.change is not None:
                await self._journal(copy.change.verb, copy.change.name)
                self._tables = copy
            return result


class _Tables(SqlStore):
    """A database in memory. If a change is refused, the caller discards the database."""

    def __init__(self) -> None:
        self.connection = connect_to_memory()
        self.change: Write | None = None
        """The change that was made. None if there was none, or if it was replayed."""

    def write(self, write: Write) -> Reply:
        """Make the change, and note it in `change`."""
        reply = super().write(write)
        if not reply.is_replayed:
            self.change = write
        return reply

    def transact(self, body: Callable[[Session], T], write: Write | None = None) -> T:
        """Return what `body` returns."""
        return body(self.connection)

    def describe(self) -> ServerDescription:
        """Return that nothing survives the process."""
        return ServerDescription(
            server="in process",
            problems=["it ends with the process"],
            settings={},
        )

    def close(self) -> None:
        """Close the database."""
        self.connection.close()

    def __del__(self) -> None:
        self.close()
