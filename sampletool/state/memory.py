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
from .store import Reply, Write

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


_CHANGING_VERBS = (
    "counter_add",
    "state_set",
    "state_unset",
    "task_add",
    "task_claim",
    "task_renew",
    "task_finish",
    "task_release",
    "task_cancel",
    "task_retry",
    "task_retry_all",
    "task_clean",
)


async def _no_journal(_verb: str, _name: str) -> None:
    await asyncio.sleep(0)


class MemoryStore:
    """A store whose verbs are coroutines: all of _READING_VERBS and _CHANGING_VERBS.

    They take the same arguments as the methods of `Store`, where they are described.
    """

    def __init__(self, journal: Journal = _no_journal) -> None:
        self._journal = journal
        self._lock = asyncio.Lock()
        self._tables = _Tables()
        self._tables.connection.executescript(";".join(SCHEMA_STEPS))

    def __getattr__(self, verb: str) -> Callable[..., Coroutine[Any, Any, Any]]:
        """Return the coroutine function for a verb.

        Python calls this for each attribute that the class does not define, such as `counter_add`.
        """

        async def read(*args: Any, **options: Any) -> Any:
            return getattr(self._tables, verb)(*args, **options)

        async def change(*args: Any, **options: Any) -> Any:
            return await self._change(verb, args, options)

        if verb in _READING_VERBS:
            return read
        if verb in _CHANGING_VERBS:
            return change
        raise AttributeError(verb)

    async def _change(self, verb: str, args: Any, options: Any) -> Any:
        """Make a change. No other change is made between its first look and its end."""
        async with self._lock:
            copy = _Tables()
            self._tables.connection.backup(copy.connection)
            result = getattr(copy, verb)(*args, **options)
            write = copy.applied_write
            if write is not None:
                await self._journal(write.verb, write.name)
                self._tables = copy
            return result


class _Tables(SqlStore):
    """A database in memory. If a change is refused, the caller discards the database."""

    def __init__(self) -> None:
        self.connection = connect_to_memory()
        self.applied_write: Write | None = None
        """The write that has changed the database. None if there was none, or it was replayed."""

    def write(self, write: Write) -> Reply:
        """Apply a write to the database, and keep it as `applied_write`."""
        reply = super().write(write)
        if not reply.is_replayed:
            self.applied_write = write
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
