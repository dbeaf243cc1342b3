"""Text from outside (names, keys, values, child output), made safe to show.

It cannot move a cursor or forge a line, and shows no value of a secret key and no password of a URL.
"""

import re
from collections.abc import Callable
from typing import Any

BOLD, RED, GREEN, YELLOW, PLAIN = (f"\x1b[{number}m" for number in (1, 31, 32, 33, 0))

_LONGEST_QUOTE = 100
NOTHING = ("null", "undefined", "None", "NaN", "nil", "[object Object]")
"""What programs write where a variable has no value."""
_MISLEADING = ("Cf", "Cs", "Co", "Zl", "Zp")
"""Categories of characters that are invisible, change the direction, or end a line."""


def printable(text: str) -> str:
    """Control, bidirectional and invisible characters as escapes; everything else as it is."""
    if text.isascii() and text.isprintable():
        return text
    return "".join(char if _is_harmless(char) else escaped(char) for char in text)


def printable_lines(text: str) -> str:
    """The same of a text that may have several lines, such as the output of a child."""
    return "\n".join(printable(line.expandtabs()) for line in text.replace("\r\n", "\n").split("\n"))


def printable_data(value: Any, shown: Callable[[str], str] = printable) -> Any:
    """The same of every text in it."""
    if isinstance(value, dict):
        return {shown(name): printable_data(member, shown) for name, member in value.items()}
    if isinstance(value, list):
        return [printable_data(member, shown) for member in value]
    return shown(value) if isinstance(value, str) else value


def quoted(text: str) -> str:
    """The text between quotes, for a sentence: the beginning of a long one."""
    return f"'{printable(text if len(text) <= _LONGEST_QUOTE else f'{text[:_LONGEST_QUOTE]}…')}'"


def _is_harmless(char: str) -> bool:
    import unicodedata

    return char.isprintable() and unicodedata.category(char) not in _MISLEADING


def escaped(char: str) -> str:
    """A byte that was not UTF-8 as `\\xNN`, any other character by its number."""
    number = ord(char)
    if 0xDC80 <= number <= 0xDCFF:
        return f"\\x{number - 0xDC00:02x}"
    if number < 0x100:
        return {"\n": "\\n", "\r": "\\r", "\t": "\\t"}.get(char, f"\\x{number:02x}")
    return f"\\u{number:04x}" if number < 0x10000 else f"\\U{number:08x}"


def counted(number: int, thing: str) -> str:
    """`1 row`, `2 rows`."""
    return f"{number} {thing}" if number == 1 else f"{number} {thing}s"


def between_words(text: str, width: int, first: str = "", others: str = "") -> list[str]:
    """In lines of this width. A longer word stays whole, and so does the name of an option."""
    import textwrap

    wrapper = textwrap.TextWrapper(max(width, 20), first, others, break_long_words=False, break_on_hyphens=False)
    return wrapper.wrap(text)


MASK = "***"

# Compiled when they are first needed, and kept, by `re`: most calls need one of them or none.
_CONFIDENTIAL = (
    "token", "password", "passwd", "passphrase", r"\bpass\b", r"\bpwd\b", "secret", "dsn",
    r"creds?\b", r"credentials?\b", r"\bauth\b", "api[_-]?key", "private[_-]?key", "access[_-]?key",
)  # fmt: skip
_CONFIDENTIAL_PARTS = ("token", "pass", "pwd", "secret", "dsn", "cred", "auth", "key")
"""What matches contains one of these: for any other name the pattern need not be compiled."""
_IN_URL = r"((?:[a-z][a-z0-9+.-]*:?//)?[^\s:/@]*):(?!//)[^\s]+@"
"""Up to the last `@`: a password may contain slashes and more of them, and the scheme may be misspelt."""
_PASSWORD_WORDS = ("password", "passwd", "pwd")
_IN_WORDS = rf"\b({'|'.join(_PASSWORD_WORDS)})(\s*=\s*)('[^']*'|\"[^\"]*\"|[^\s&;]+)"
_AUTH_SCHEMES = ("bearer", "basic")
"""Of an Authorization header: what follows is secret."""


def is_secret(key: str) -> bool:
    may_be = any(part in key.lower() for part in _CONFIDENTIAL_PARTS)
    return may_be and re.search("|".join(_CONFIDENTIAL), key, re.IGNORECASE) is not None


def redact(text: str) -> str:
    """The same text without the passwords of URLs and connection strings."""
    if "@" in text:
        text = re.sub(_IN_URL, rf"\1:{MASK}@", text, flags=re.IGNORECASE)
    if "=" in text:
        text = re.sub(_IN_WORDS, rf"\1\2{MASK}", text, flags=re.IGNORECASE)
    if any(word in text.lower() for word in _AUTH_SCHEMES):
        text = re.sub(rf"\b({'|'.join(_AUTH_SCHEMES)})\s+[^\s]+", rf"\1 {MASK}", text, flags=re.IGNORECASE)
    return text
