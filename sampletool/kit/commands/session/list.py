"""Which sessions have a directory, and which processes use them."""

from typing import NamedTuple

import typer

from ...contract.command_spec import CommandSpec
from ...contract.table import Line, heads
from ...pages import AfterOption, LimitOption, page_of
from ...places import session_root
from ...safety.session import SessionState, list_sessions

spec = CommandSpec(effect="nothing", reads=("sessions",), examples=("session list",))


class Listing(NamedTuple):
    sessions: list[SessionState]

    def lines(self) -> list[Line]:
        if not self.sessions:
            return ["No session has left anything."]
        lines: list[Line] = [heads("session", "last used", "used by", "path")]
        for session in self.sessions:
            users = ", ".join(str(pid) for pid in session.in_use_by) or "-"
            lines.append((session.session_id, session.last_used_at, users, session.path))
        return lines


def command(ctx: typer.Context, limit: LimitOption = 100, after: AfterOption = None) -> Listing:
    """List your session directories, newest first.

    When each was last used, and by whom it is in use.
    """
    found = list_sessions(session_root())
    newest = page_of(ctx.obj, found, limit, after, lambda one: f"{one.last_used_at} {one.session_id}", descending=True)
    return Listing(newest)
