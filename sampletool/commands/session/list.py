"""Which sessions have a directory, and who uses them."""

from dataclasses import dataclass

import typer

from sampletool.contract.exit_status import ExitStatus
from sampletool.contract.promise import Promise
from sampletool.safety.places import session_root
from sampletool.safety.session import SessionState, list_sessions

promise = Promise(effect="nothing", ends_with=(ExitStatus.PERMISSION,), examples=("tool session list",))


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
