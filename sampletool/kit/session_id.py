"""Check the id of a session, wherever it came from."""

from .contract.errors import InvalidValues, Mistake
from .contract.mistyped import Mistyped, check_name
from .contract.text import NOTHING, quoted
from .safety.session import is_session_id

_RULE = "Use 1 to 64 letters, digits, '.', '_' or '-', beginning with a letter or digit."


def check_session_id(session_id: str, source: str) -> str:
    """Return the id. Raise InvalidValues, which names the source, if it is not one."""
    if is_session_id(session_id) and session_id not in NOTHING:
        return session_id
    if session_id:
        message = f"{quoted(session_id)} is not a session id"
    else:
        message = "the session id is empty"
    hint = _RULE
    try:
        check_name(session_id)
    except Mistyped as mistyped:
        hint = f"{mistyped.suggestion} {_RULE}"
    raise InvalidValues(Mistake(source, "INVALID_VALUE", f"{message} (from {source})", session_id, hint))
