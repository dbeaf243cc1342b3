"""List the locks that are held, and the processes that hold them."""

from dataclasses import dataclass
from pathlib import Path

import typer

from ...context import Context
from ...contract.command_spec import CommandSpec
from ...contract.lock_held import describe_process
from ...contract.table import Line, header_row
from ...pages import AfterOption, LimitOption, page_of
from ...places import all_locks, lock_name
from ...safety.holder import Holder, Owners
from ...safety.lock_owners import find_held_locks

spec = CommandSpec(effect="nothing", reads=("locks",), examples=("lock list",))

_MAX_HOLDERS = 10
"""How many holders of one lock are listed. A shared lock can have hundreds."""


@dataclass(frozen=True)
class HeldLock:
    """A lock and its holders."""

    lock: str
    path: str
    shared: bool
    holders: list[Holder]
    """The first ten holders. There are none if the lock is just being taken."""
    holder_count: int

    def rows(self) -> list[Line]:
        """Return a row for each holder."""
        if not self.holders:
            return [(self.lock, "unknown", "unknown", "a process that has just taken it")]
        rows: list[Line] = []
        for holder in self.holders:
            command = holder.command if holder.command else "unknown"
            rows.append((self.lock, holder.state, command, describe_process(holder)))
        unlisted_count = self.holder_count - len(self.holders)
        if unlisted_count > 0:
            rows.append((self.lock, "", "", f"and {unlisted_count} more"))
        return rows


@dataclass(frozen=True)
class Listing:
    """One page of locks."""

    locks: list[HeldLock]
    next_cursor: str | None
    total: int | None = None

    def lines(self) -> list[Line]:
        """Return a table with a row for each holder."""
        if not self.locks:
            return ["No lock is held."]
        lines = [header_row("lock", "state", "command", "held by")]
        for held in self.locks:
            lines += held.rows()
        return lines


def _held_lock(path: Path, owners: Owners) -> HeldLock:
    # `started_at` says the same as the age, and does not change between two responses.
    holders = [holder._replace(age_ms=None) for holder in owners.holders[:_MAX_HOLDERS]]
    return HeldLock(
        lock=lock_name(path),
        path=str(path),
        shared=owners.shared,
        holders=holders,
        holder_count=len(owners.holders),
    )


def _position(held: HeldLock) -> str:
    """Return where a lock is in the list. Locks of two directories can have the same name."""
    return f"{held.lock} {held.path}"


def command(ctx: typer.Context, limit: LimitOption = 100, after: AfterOption = None) -> Listing:
    """List all locks that are held, and the processes that hold them.

    The list includes locks on the workspace, your output files and your settings. If more than 10
    processes share a lock, only the first 10 are shown.
    """
    context: Context = ctx.obj
    lock_paths = all_locks(context.workspace_or_none)
    held_locks = []
    for path, owners in find_held_locks(lock_paths, context.signals.check):
        held_locks.append(_held_lock(path, owners))
    page = page_of(held_locks, limit, after, _position)
    return Listing(locks=page.rows, next_cursor=page.next_cursor, total=page.total)
