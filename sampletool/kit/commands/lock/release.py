"""Free a lock whose holder has exited, by terminating the children that still have it."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from ...completion import offering
from ...context import Context
from ...contract.command_spec import CommandSpec
from ...contract.errors import LockNotFound, did_you_mean
from ...contract.response import Effect
from ...places import all_locks, lock_name
from ...safety.errors import LockTimeout
from ...safety.lock_owners import find_held_locks, find_orphans
from ...safety.orphans import end_orphans

spec = CommandSpec(
    effect="locks",
    errors=(LockNotFound, LockTimeout),
    reads=("locks",),
    destroys="The unfinished work of the child processes that are terminated.",
    before=("config set --global key1 val1",),
    examples=("lock release config.toml", "lock release config.toml --dry-run"),
)


@dataclass(frozen=True)
class Released:
    """The processes that were terminated to free a lock."""

    effect: Effect
    lock: str
    ended: list[int]
    """The process IDs."""

    def lines(self) -> list[str]:
        """Return one line."""
        if not self.ended:
            return [f"{self.lock}: nothing to release"]
        noun = "process" if len(self.ended) == 1 else "processes"
        pids = ", ".join(str(pid) for pid in self.ended)
        return [f"{self.lock}: released, terminated {noun} {pids}"]


def _locks_by_name(context: Context) -> dict[str, Path]:
    return {lock_name(path): path for path in all_locks(context.workspace_or_none)}


def _raise_if_held(lock_path: Path, context: Context) -> None:
    """Raise LockTimeout if a running process holds the lock."""
    for _, owners in find_held_locks([lock_path], context.signals.check):
        raise LockTimeout(lock_name(lock_path), owners)


@offering
def lock_names(context: Context) -> list[str]:
    """Return the locks that a shell can complete."""
    return list(_locks_by_name(context))


def command(
    ctx: typer.Context,
    name: Annotated[
        str,
        typer.Argument(
            metavar="LOCK",
            help="Name of the lock, as shown by `lock list`.",
            autocompletion=lock_names,
        ),
    ],
    dry_run: Annotated[
        bool,
        typer.Option(
            "--dry-run",
            help="Show which processes would be terminated, without terminating them.",
        ),
    ] = False,
) -> Released:
    """Release a lock whose owner exited but left child processes behind.

    Child processes can keep a lock after its owner has exited. This command terminates them. If the
    owner is still running, the command terminates nothing and fails with LOCK_HELD.
    """
    context: Context = ctx.obj
    paths = _locks_by_name(context)
    if name not in paths:
        raise LockNotFound(lock=name, suggestion=did_you_mean(name, list(paths)))
    lock_path = paths[name]
    if dry_run:
        ended = find_orphans(lock_path)
    else:
        ended = end_orphans(lock_path, context.signals)
        if not ended:
            _raise_if_held(lock_path, context)
    return Released(effect="deleted" if ended else "unchanged", lock=name, ended=ended)
