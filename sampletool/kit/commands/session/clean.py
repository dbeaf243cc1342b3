"""Remove the sessions that were not used for a long time, except those in use."""

import time
from dataclasses import dataclass
from pathlib import Path

import typer

from ...context import Context
from ...contract.command_spec import CommandSpec
from ...contract.duration import say_duration
from ...contract.response import Effect
from ...global_options import DryRunOption
from ...places import session_root
from ...safety.clock import utc
from ...safety.session import (
    SessionState,
    correct_last_use,
    list_sessions,
    remove_session,
    sweep_trash,
)

spec = CommandSpec(
    effect="sessions",
    locks=("session",),
    at_once=("session",),
    reads=("sessions", "settings"),
    destroys="Everything in the sessions that are removed, including their outputs.",
    examples=("session clean --dry-run", "session clean"),
)

_MAX_LISTED = 100
"""How many sessions a response names. Their number is always exact."""


@dataclass(frozen=True)
class Cleaned:
    """The sessions that were unused for too long, and what happened to them."""

    effect: Effect
    removed: list[str]
    """The first 100 sessions that were removed."""
    removed_count: int
    in_use: list[str]
    """The first 100 sessions that were kept because a process uses them."""
    in_use_count: int
    unused_for: str
    """For how long a session must be unused before it is removed: the setting session_ttl."""

    def lines(self) -> list[str]:
        """Return a line for each session."""
        if self.removed_count == 0 and self.in_use_count == 0:
            return [f"No session has been unused for {self.unused_for} (session_ttl)."]
        lines = [f"{name}: removed" for name in self.removed]
        lines += _more(self.removed_count, "removed")
        lines += [f"{name}: kept, in use" for name in self.in_use]
        lines += _more(self.in_use_count, "kept, in use")
        return lines


def _more(count: int, outcome: str) -> list[str]:
    """Return a line about the sessions that are not listed, if there are any."""
    if count <= _MAX_LISTED:
        return []
    return [f"{count - _MAX_LISTED} more: {outcome}"]


def _is_old(session: SessionState, oldest: str, now: float) -> bool:
    """Return whether the last use was before `oldest`. One in the future counts as a use now."""
    last_used_at = min(session.last_used_at, utc(now))
    return last_used_at <= oldest


def command(ctx: typer.Context, dry_run: DryRunOption = False) -> Cleaned:
    """Remove sessions that have not been used for a while.

    By default, a session is removed 7 days after its last use. To choose another period,
    change the `session_ttl` setting. Sessions that are still in use are never removed.
    """
    context: Context = ctx.obj
    root = session_root()
    unused_seconds = context.settings.value("session_ttl")
    now = time.time()
    oldest = utc(now - unused_seconds)
    removed: list[str] = []
    in_use: list[str] = []
    for session in list_sessions(root):
        context.signals.check()
        directory = Path(session.path)
        if not dry_run:
            correct_last_use(directory, now)
        if not _is_old(session, oldest, now):
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
    return Cleaned(
        effect="deleted" if removed else "unchanged",
        removed=removed[:_MAX_LISTED],
        removed_count=len(removed),
        in_use=in_use[:_MAX_LISTED],
        in_use_count=len(in_use),
        unused_for=say_duration(unused_seconds),
    )
