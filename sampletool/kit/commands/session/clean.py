"""Remove the sessions that have not been used for long, and that nobody uses."""

import time
from pathlib import Path
from typing import NamedTuple

import typer

from ...context import Context
from ...contract.answer import Effect
from ...contract.command_spec import CommandSpec
from ...contract.duration import say_duration
from ...global_options import DryRunOption
from ...places import session_root
from ...safety.clock import utc
from ...safety.session import correct_last_use, list_sessions, remove_session, sweep_trash

spec = CommandSpec(
    effect="sessions",
    locks=("session",),
    at_once=("session",),
    reads=("sessions", "settings"),
    destroys="All that unused sessions left behind, their outputs too.",
    examples=("session clean", "session clean --dry-run"),
)


class Cleaned(NamedTuple):
    effect: Effect
    removed: list[str]
    in_use: list[str]
    unused_for: str
    """The limit: how long a session has to be unused."""

    def lines(self) -> list[str]:
        lines = [f"{name}: removed" for name in self.removed] + [f"{name}: kept, in use" for name in self.in_use]
        return lines or [f"Nothing has been unused for {self.unused_for} (session_ttl)."]


def command(ctx: typer.Context, dry_run: DryRunOption = False) -> Cleaned:
    """Remove sessions that have not been used for long.

    For longer than the setting session_ttl. What is in use stays.
    """
    context: Context = ctx.obj
    root = session_root()
    older_than_seconds = context.settings.value("session_ttl")
    now = time.time()
    oldest = utc(now - older_than_seconds)
    removed: list[str] = []
    in_use: list[str] = []
    for session in list_sessions(root):
        context.signals.check()
        directory = Path(session.path)
        if not dry_run:
            correct_last_use(directory, now)
        # A last use in the future counts as a use now.
        last_used_at = min(session.last_used_at, utc(now))
        if last_used_at > oldest:
            continue
        if dry_run:
            is_removed = not session.in_use_by
        else:
            is_removed = remove_session(directory, context.make_lock, oldest)
        if is_removed:
            removed.append(session.session_id)
        else:
            in_use.append(session.session_id)
    if not dry_run:
        sweep_trash(root)
    effect: Effect = "deleted" if removed else "unchanged"
    return Cleaned(effect, removed, in_use, say_duration(older_than_seconds))
