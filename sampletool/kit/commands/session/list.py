"""Which sessions have a directory, and who uses them."""

from dataclasses import dataclass

import typer

from ...contract.command_spec import CommandSpec
from ...safety.places import session_root
from ...safety.session import SessionState, list_sessions

spec = CommandSpec(effect="nothing", examples=("session list",))


@dataclass(frozen=True)
class Listing:
    sessions: list[SessionState]

    def lines(self) -> list[str]:
        if not self.sessions:
            return ["No session has left anything behind."]
        return [
            f"{session.path}  last used {session.last_used_at}"
            + (f"  in use by {', '.join(map(str, session.in_use_by))}" if session.in_use_by else "")
            for session in self.sessions
        ]


def command(ctx: typer.Context) -> Listing:
    """List your session directories, newest first.

    When each was last used, and by whom it is in use.
    """
    return Listing(list_sessions(session_root()))
