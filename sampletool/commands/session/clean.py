"""Remove the sessions that have not been used for long, and that nobody uses."""

from dataclasses import dataclass
from pathlib import Path

import typer

from sampletool.contract.answer import Effect
from sampletool.contract.duration import say_duration
from sampletool.contract.exit_status import ExitStatus
from sampletool.contract.promise import Promise
from sampletool.options import DryRunOption
from sampletool.safety.places import session_root
from sampletool.safety.session import list_sessions, remove, sweep_trash
from sampletool.wiring import Wiring

promise = Promise(
    effect="sessions",
    ends_with=(ExitStatus.PERMISSION, ExitStatus.NOT_FOUND),
    locks=("session",),
    examples=("tool session clean", "TOOL_SESSION_TTL=0 tool session clean"),
)


@dataclass(frozen=True)
class Cleaned:
    effect: Effect
    removed: list[str]
    in_use: list[str]
    unused_for: str
    """The limit: how long a session has to be unused."""

    def lines(self) -> list[str]:
        told = [f"{name}: removed" for name in self.removed] + [f"{name}: kept, in use" for name in self.in_use]
        return told or [f"Nothing has been unused for {self.unused_for} (session_ttl)."]


def clean(wiring: Wiring, root: Path, older_than_seconds: float, *, dry_run: bool) -> Cleaned:
    removed: list[str] = []
    in_use: list[str] = []
    for session in list_sessions(root):
        wiring.signals.check()
        if session.unused_seconds >= older_than_seconds:
            gone = not session.in_use_by if dry_run else remove(Path(session.path), wiring.make_lock)
            (removed if gone else in_use).append(session.session_id)
    if not dry_run:
        sweep_trash(root)
    return Cleaned("deleted" if removed else "unchanged", removed, in_use, say_duration(older_than_seconds))


def command(
    ctx: typer.Context,
    dry_run: DryRunOption = False,
) -> Cleaned:
    """Remove sessions that have not been used for long.

    For longer than the setting session_ttl. What is in use stays.
    """
    wiring: Wiring = ctx.obj
    return clean(wiring, session_root(), wiring.settings.value("session_ttl"), dry_run=dry_run)
