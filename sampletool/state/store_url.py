"""The URL of a store: what of it may be shown, and what may not be typed on a command line.

A password may hold any character, escaped or not, and each driver splits such a URL in its own way. So nothing is
shown that could be a part of one: where it is not certain which `@` ends the password, only the scheme is.
"""

import re
from urllib.parse import unquote

from ..kit.contract.errors import InvalidValues, Mistake
from ..kit.contract.text import is_secret

FORMS = "sqlite:///PATH, postgresql://HOST/DATABASE, redis://HOST, rediss://HOST or valkey://HOST"
_SCHEME = re.compile(r"[a-z][a-z0-9+]{0,15}")
_OPTIONS = re.compile("[?&;#]")
_WORD = re.compile(r"[\w./~-]*")
_PLACE = re.compile(r"(\[[\da-f:.]+\]|[^\[:/])*(:\d{1,5}(,[^:/]*)?)*(/[^:]*)?", re.IGNORECASE)
"""Hosts with ports, and what is behind the first slash. Another colon may stand before a password."""


def shown_url(url: str) -> str:
    """Where the store is, for messages: without user, password and options, whatever characters are in them."""
    scheme, separator, rest = url.partition("://")
    if not separator or not _SCHEME.fullmatch(scheme):
        return url if _WORD.fullmatch(url) else "…"
    place, *options = _OPTIONS.split(rest)
    place = place.rpartition("@")[2]
    is_certain = scheme == "sqlite" or _PLACE.fullmatch(place)
    return f"{scheme}://…" if "@" in "".join(options) or not is_certain else f"{scheme}://{place}"


def refuse_password(url: str) -> None:
    """A command line can be read by every user of the machine."""
    scheme, _, rest = url.partition("://")
    names = [unquote(option).partition("=")[0] for option in _OPTIONS.split(rest)[1:]]
    is_told = ":" in rest.rpartition("@")[0] or any(is_secret(name) or name.startswith("scram_") for name in names)
    if scheme != "sqlite" and is_told:
        problem = "a password on the command line can be seen by others"
        advice = "Put the URL into TOOL_STORE or the settings, or the password into the driver's own variables."
        raise no_store(url, problem, advice)


def no_store(url: str, problem: str, suggestion: str = "") -> InvalidValues:
    mistake = Mistake("--store", "INVALID_VALUE", problem, shown_url(url), suggestion or f"A store is {FORMS}.")
    return InvalidValues(mistake)
