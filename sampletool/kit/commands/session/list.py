"""List the sessions that have a directory, and the processes that use them."""

from dataclasses import dataclass

import typer

from ...contract.command_spec import CommandSpec
from ...contract.table import Line, header_row
from ...pages import AfterOption, LimitOption, page_of
from ...places import session_root
from ...safety.session import SessionState, list_sessions

spec = CommandSpec(effect="nothing", reads=("sessions",), examples=("session list",))


@dataclass(frozen=True)
class Listing:
    """One page of sessions."""

    sessions: list[SessionState]
    next_cursor: str | None
    total: int | None = None

    def lines(self) -> list[Line]:
        """Return a table with a row for each session."""
        if not self.sessions:
            return ["There is no session."]
        lines: list[Line] = [header_row("session", "last used", "used by", "path")]
        for session in self.sessions:
            lines.append((session.session_id, session.last_used_at, _users(session), session.path))
        return lines


def _users(session: SessionState) -> str:
    """Return the processes that use the session, or a dash."""
    if not session.in_use_by:
        return "-"
    return ", ".join(str(pid) for pid in session.in_use_by)


def _position(session: SessionState) -> str:
    """Return where a session is in the list."""
    return f"{session.last_used_at} {session.session_id}"


def command(ctx: typer.Context, limit: LimitOption = 100, after: AfterOption = None) -> Listing:
    """List your sessions, most recently used first.

    A session is a directory with the output files and logs of all commands that used the same
    --session-id. The list shows when each session was last used, and which processes are using it
    now.
    """
    sessions = list_sessions(session_root())
    page = page_of(sessions, limit, after, _position, descending=True)
    return Listing(sessions=page.rows, next_cursor=page.next_cursor, total=page.total)
