"""The URL of a store: what may be shown of it, and what must not be on a command line.

A password can contain any character, escaped or not, and each driver splits a URL in its own way.
So a part of the URL is shown only if it certainly contains no part of a password. If it is not
certain which `@` ends the password, only the scheme is shown.
"""

import re
from urllib.parse import unquote

from ..kit.contract.errors import InvalidValues, Mistake
from ..kit.contract.text import is_secret
from ..kit.program import env_variable

FORMS = "sqlite:///PATH, postgresql://HOST/DATABASE, redis://HOST, rediss://HOST or valkey://HOST"
"""The URLs of stores, for messages."""

_SCHEME = re.compile(r"[a-z][a-z0-9+]{0,15}")
_OPTION_SEPARATORS = re.compile("[?&;#]")
_HARMLESS_WORD = re.compile(r"[\w./~-]*")

_HOSTS_AND_PATH = re.compile(
    r"""
    ( \[ [\da-f:.]+ \] | [^\[:/] )*   # host names, and IPv6 addresses in brackets
    ( :\d{1,5} (,[^:/]*)? )*          # a port, perhaps followed by another host
    ( / [^:]* )?                      # a path, in which a colon could precede a password
    """,
    re.IGNORECASE | re.VERBOSE,
)

_STORE_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,62}")
"""The prefix of a Redis store or the schema of a PostgreSQL store."""


def shown_url(url: str) -> str:
    """Return the URL for messages: without the user, the password and the options."""
    scheme, separator, rest = url.partition("://")
    if not separator or not _SCHEME.fullmatch(scheme):
        # This is not a URL. It could be a password that was given in the wrong place.
        return url if _HARMLESS_WORD.fullmatch(url) else "…"
    place, *options = _OPTION_SEPARATORS.split(rest)
    place = place.rpartition("@")[2]
    has_at_sign_in_options = "@" in "".join(options)
    is_certain = scheme == "sqlite" or _HOSTS_AND_PATH.fullmatch(place) is not None
    if has_at_sign_in_options or not is_certain:
        return f"{scheme}://…"
    return f"{scheme}://{place}"


def refuse_password(url: str) -> None:
    """Raise InvalidValues if the URL contains a password.

    Call this for a URL from the command line: every user of the machine can read that.
    """
    scheme, _separator, rest = url.partition("://")
    if scheme == "sqlite":
        return
    user_and_password = rest.rpartition("@")[0]
    has_password = ":" in user_and_password
    for option in _OPTION_SEPARATORS.split(rest)[1:]:
        name = unquote(option).partition("=")[0]
        if is_secret(name) or name.startswith("scram_"):
            has_password = True
    if has_password:
        problem = "a password on the command line can be seen by other users"
        hint = (
            f"Put the URL into {env_variable('STORE')} or the settings, "
            "or the password into a variable of the driver."
        )  # fmt: skip
        raise invalid_store(url, problem, hint)


def take_store_name(url: str, option: str) -> tuple[str, str | None]:
    """Return the URL without the option that names the store, and the name.

    Several stores can share a server or a database if each has a name, for example
    `redis://host/0?prefix=project`. The name is None if the URL does not have the option. Raise
    InvalidValues if the name has characters that are not allowed, or if there are two.
    """
    base, question_mark, query = url.partition("?")
    if not question_mark:
        return url, None
    names = []
    others = []
    for part in query.split("&"):
        key, _equals, value = part.partition("=")
        if key == option:
            names.append(unquote(value))
        else:
            others.append(part)
    if not names:
        return url, None
    if len(names) > 1 or not _STORE_NAME.fullmatch(names[0]):
        problem = f"{option} must be given once, with up to 63 letters, digits, dots, - or _"
        raise invalid_store(url, problem)
    remaining_url = base
    if others:
        remaining_url += "?" + "&".join(others)
    return remaining_url, names[0]


def invalid_store(url: str, problem: str, hint: str = "") -> InvalidValues:
    """Return the error for a URL that names no store."""
    if not hint:
        hint = f"Use one of these forms: {FORMS}."
    return InvalidValues(Mistake("--store", "INVALID_VALUE", problem, shown_url(url), hint))
