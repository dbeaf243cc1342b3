"""Which sessions have a directory, and which processes use them."""

from typing import NamedTuple

import typer

from ...contract.command_spec import CommandSpec
from ...contract.table import Line, heads
from ...safety.places import session_root
from ...safety.session import SessionState, list_sessions

spec = CommandSpec(effect="nothing", reads=("sessions",), examples=("session list",))


class Listing(NamedTuple):
    sessions: list[SessionState]

    def lines(self) -> list[Line]:
        rows: list[Line] = [
            (one.session_id, one.last_used_at, ", ".join(map(str, one.in_use_by)) or "-", one.path)
            for one in self.sessions
        ]
        return [heads("session", "last used", "used by", "path"), *rows] if rows else ["No session has left anything."]


def command(ctx: typer.Context) -> Listing:
    """List your session directories, newest first.

    When each was last used, and by whom it is in use.
    """
    return Listing(list_sessions(session_root()))
