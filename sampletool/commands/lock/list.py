"""Every lock that is held, and by whom."""

from dataclasses import dataclass
from pathlib import Path

import typer

from sampletool.contract.exit_status import ExitStatus
from sampletool.contract.lock_held import Holder
from sampletool.contract.promise import Promise
from sampletool.safety.places import all_locks
from sampletool.safety.witness import find_holders
from sampletool.wiring import Wiring

promise = Promise(
    effect="nothing", ends_with=(ExitStatus.PERMISSION, ExitStatus.NOT_FOUND), examples=("tool lock list",)
)


@dataclass(frozen=True)
class HeldLock:
    lock: str
    path: str
    shared: bool
    holders: list[Holder]


@dataclass(frozen=True)
class Listing:
    locks: list[HeldLock]

    def lines(self) -> list[str]:
        if not self.locks:
            return ["No lock is held."]
        return [
            f"{held.lock}: {holder.state}, {holder.command or 'unknown command'} ({holder.say()})"
            for held in self.locks
            for holder in held.holders
        ]


def list_locks(paths: list[Path]) -> Listing:
    found = []
    for path in paths:
        finding = find_holders(path)
        holders = [holder for holder in finding.holders if holder.verified or holder.state != "unknown"]
        if holders:
            found.append(HeldLock(path.name.removesuffix(".lock").lstrip("."), str(path), finding.shared, holders))
    return Listing(found)


def command(ctx: typer.Context) -> Listing:
    """List the locks that somebody holds.

    Those of this workspace, of your outputs and of your settings.
    """
    wiring: Wiring = ctx.obj
    return list_locks(all_locks(wiring.workspace_or_none))
