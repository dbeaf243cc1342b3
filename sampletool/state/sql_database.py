"""What a database has to give, for sql.py to be a store on it: a schema, and ways to be alone."""

# The methods of a protocol: a docstring is their body.
# pyright: reportReturnType=false

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


def schema_of_0_2(*, now: str, task_of_key: str) -> str:
    """`due_at` is 0 for a task that may be claimed at once, so that the oldest one is the first of its index, however
    many are leased, delayed, done or failed. A remembered answer knows its task, so that both go together."""
    return f"""
        ALTER TABLE tool_tasks ADD COLUMN ended_at bigint;
        UPDATE tool_tasks SET due_at = 0 WHERE status = 'free' AND due_at <= {now};
        DROP INDEX tool_tasks_open;
        CREATE INDEX tool_tasks_due ON tool_tasks (queue, due_at, position) WHERE due_at IS NOT NULL;
        ALTER TABLE tool_once ADD COLUMN task text;
        UPDATE tool_once SET task = {task_of_key} WHERE key LIKE 'task:[%';
        CREATE INDEX tool_once_task ON tool_once (task) WHERE task IS NOT NULL"""


class Session(Protocol):
    """An open transaction, or a connection to read on. Statements name their values `:like_this`."""

    now: str
    """The server's clock, in milliseconds."""
    locked: str
    """Ends a query of tasks: until the transaction ends nobody else changes them."""
    unclaimed: str
    """The same, and leaves out those that somebody else is just claiming."""

    def rows(self, statement: str, **values: Any) -> list[Any]:
        """What it finds; nothing if it only changes something."""

    def each(self, statement: str, values: list[dict[str, Any]]) -> list[int]:
        """The statement for each of these; how many rows that changed, each time."""

    def be_alone_with(self, name: str) -> None:
        """Until the transaction ends nobody else is."""
