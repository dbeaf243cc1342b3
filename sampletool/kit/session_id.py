"""Check a session id. It becomes the name of a directory, so an invalid one is refused."""

from .contract.errors import InvalidValues, Mistake
from .contract.mistyped import Mistyped, check_name
from .contract.text import NOTHING, quoted
from .safety.session import is_session_id

_RULE = "Use 1 to 64 letters, digits, '.', '_' or '-', starting with a letter or digit."


def check_session_id(session_id: str, source: str) -> str:
    """Return the id. Raise InvalidValues if it is invalid.

    `source` is the option or the variable with the id. The error names it.
    """
    if is_session_id(session_id) and session_id not in NOTHING:
        return session_id
    if session_id:
        problem = f"{quoted(session_id)} is not a valid session ID"
    else:
        problem = "The session ID is empty"
    raise InvalidValues(
        Mistake(
            param=source,
            code="INVALID_VALUE",
            message=f"{problem} (from {source})",
            value=session_id,
            suggestion=_hint_for(session_id),
        )
    )


def _hint_for(session_id: str) -> str:
    """Return the rule for session ids, and before it the id that was probably meant."""
    try:
        check_name(session_id)
    except Mistyped as mistyped:
        return f"{mistyped.suggestion} {_RULE}"
    return _RULE
