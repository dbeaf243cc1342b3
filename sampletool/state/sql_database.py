"""What a database has to give, for sql.py to be a store on it: a schema, transactions, and ways to be alone."""

from collections.abc import Callable
from typing import Any, Protocol, TypeVar

T = TypeVar("T")


def schema(*, text: str, serial: str) -> str:
    """`floor` is the highest version of any value that is gone: new values begin above it, so no version comes twice.
    `due_at` is when a task may be claimed: at once, after a delay, or when its lease ends."""
    return f"""
        CREATE TABLE tool_counters (name {text} PRIMARY KEY, value bigint NOT NULL);
        CREATE TABLE tool_state (
            key {text} PRIMARY KEY, value text NOT NULL, version bigint NOT NULL, expires_at bigint);
        CREATE INDEX tool_state_expiring ON tool_state (expires_at) WHERE expires_at IS NOT NULL;
        CREATE TABLE tool_floor (version bigint NOT NULL);
        INSERT INTO tool_floor VALUES (0);
        CREATE TABLE tool_tasks (
            position {serial}, id {text} NOT NULL UNIQUE, queue {text} NOT NULL, body text NOT NULL,
            due_at bigint, status text NOT NULL DEFAULT 'free', generation bigint NOT NULL DEFAULT 0,
            attempts bigint NOT NULL DEFAULT 0, max_attempts bigint NOT NULL DEFAULT 0, claimed_by text,
            claimed_at bigint);
        CREATE INDEX tool_tasks_open ON tool_tasks (queue, position) WHERE due_at IS NOT NULL;
        CREATE TABLE tool_once (key text PRIMARY KEY, digest text NOT NULL, answer text NOT NULL, expires_at bigint);
        CREATE INDEX tool_once_expiring ON tool_once (expires_at) WHERE expires_at IS NOT NULL"""


class Session(Protocol):
    """One open transaction. Statements name their values `:like_this`."""

    def rows(self, statement: str, **values: Any) -> list[Any]: ...

    def run(self, statement: str, **values: Any) -> None: ...

    def each(self, statement: str, values: list[dict[str, Any]]) -> None: ...

    def be_alone_with(self, name: str) -> None:
        """Until the transaction ends nobody else is."""

    def hold_task(self, task: str) -> None:
        """Until the transaction ends nobody else changes it."""


class Database(Protocol):
    now: str
    """The server's clock, in milliseconds."""
    unclaimed: str
    """Ends a query of tasks: only those that nobody is just claiming, and nobody else may."""

    def transact(self, body: Callable[[Session], T], *, may_repeat: bool) -> T: ...

    def read(self, statement: str, **values: Any) -> list[Any]: ...

    def health(self) -> tuple[str, list[str], dict[str, str]]:
        """What it is, what could make it lose something, and how it is set up."""

    def close(self) -> None: ...
