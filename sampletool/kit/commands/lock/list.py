"""Every lock that is held, and by whom."""

from typing import NamedTuple

import typer

from ...context import Context
from ...contract.command_spec import CommandSpec
from ...contract.lock_held import describe_process
from ...contract.table import Line, heads
from ...pages import AfterOption, LimitOption, page_of
from ...places import all_locks, lock_name
from ...safety.holder import Holder
from ...safety.lock_owners import find_held_locks

spec = CommandSpec(effect="nothing", reads=("locks",), examples=("lock list",))


class HeldLock(NamedTuple):
    lock: str
    path: str
    shared: bool
    holders: list[Holder]


class Listing(NamedTuple):
    locks: list[HeldLock]

    def lines(self) -> list[Line]:
        rows: list[Line] = [
            (held.lock, holder.state, holder.command or "unknown", describe_process(holder))
            for held in self.locks
            for holder in held.holders
        ]
        return [heads("lock", "state", "command", "by"), *rows] if rows else ["No lock is held."]


def command(ctx: typer.Context, limit: LimitOption = 100, after: AfterOption = None) -> Listing:
    """List the locks that are held.

    Those of this workspace, of your outputs and of your settings.
    """
    context: Context = ctx.obj
    found = find_held_locks(all_locks(context.workspace_or_none), context.signals.check)
    held = [HeldLock(lock_name(path), str(path), owners.shared, owners.holders) for path, owners in found]
    return Listing(page_of(context, held, limit, after, lambda one: f"{one.lock} {one.path}"))
