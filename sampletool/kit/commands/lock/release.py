"""Clear what a dead holder's children still hold."""

from typing import Annotated, NamedTuple

import typer

from ...completion import offering
from ...context import Context
from ...contract.answer import Effect
from ...contract.command_spec import CommandSpec
from ...contract.errors import LockNotFound, did_you_mean
from ...global_options import DryRunOption
from ...places import all_locks, lock_name
from ...safety.errors import LockTimeout
from ...safety.lock_owners import find_held_locks, find_orphans
from ...safety.orphans import end_orphans

spec = CommandSpec(
    effect="locks",
    errors=(LockNotFound, LockTimeout),
    reads=("locks",),
    destroys="What processes that a dead holder left behind were doing: they are ended.",
    before=("config set --global key1 val1",),
    examples=("lock release config.toml",),
)


class Released(NamedTuple):
    effect: Effect
    lock: str
    ended: list[int]

    def lines(self) -> list[str]:
        if not self.ended:
            return [f"{self.lock}: nothing was left behind."]
        return [f"{self.lock}: ended {', '.join(map(str, self.ended))}, left behind by a holder that has ended."]


@offering
def lock_names(context: Context) -> list[str]:
    return [lock_name(path) for path in all_locks(context.workspace_or_none)]


def command(
    ctx: typer.Context,
    name: Annotated[str, typer.Argument(metavar="LOCK", help="As `lock list` shows it.", autocompletion=lock_names)],
    dry_run: DryRunOption = False,
) -> Released:
    """Free a lock whose holder has died.

    Ends the processes that the dead holder left behind and that keep it. A living holder is never harmed.
    """
    context: Context = ctx.obj
    known = {lock_name(path): path for path in all_locks(context.workspace_or_none)}
    if name not in known:
        raise LockNotFound(lock=name, suggestion=did_you_mean(name, list(known)))
    ended = find_orphans(known[name]) if dry_run else end_orphans(known[name], context.signals)
    if not ended and not dry_run:
        for _, owners in find_held_locks([known[name]], context.signals.check):
            raise LockTimeout(name, owners)
    return Released("deleted" if ended else "unchanged", name, ended)
