"""Make text from outside safe to show: names, keys, values and the output of children.

Shown text cannot move the cursor or forge a line, and contains no password. What is repeated in an
error is short.
"""

import re
import textwrap
from collections.abc import Callable
from typing import Any

BOLD = "\x1b[1m"
RED = "\x1b[31m"
GREEN = "\x1b[32m"
YELLOW = "\x1b[33m"
PLAIN = "\x1b[0m"

NOTHING = ("null", "undefined", "None", "NaN", "nil", "[object Object]")
"""The texts that programs write for a variable without a value."""

MAX_ECHOED_CHARACTERS = 200
"""How much of a value is repeated in an error."""

MAX_SENTENCE_CHARACTERS = 1000
"""The longest message or hint of an error."""

_NARROWEST_TEXT = 20


def printable(text: str) -> str:
    """Return the text with escapes for the characters that could mislead a reader.

    These are control characters, and those that are invisible, change the direction of the text or
    end a line: Unicode counts none of them as printable.
    """
    # Nearly every text is printable.
    if text.isprintable():
        return text
    shown = []
    for char in text:
        if char.isprintable():
            shown.append(char)
        else:
            shown.append(escaped(char))
    return "".join(shown)


def escaped(char: str) -> str:
    r"""Return the escape for a character, such as `\n`, `\x1b` or `\u202e`.

    A byte that is not UTF-8 becomes `\xNN`. Python has read it as a surrogate, U+DC80 to U+DCFF.
    """
    usual_escapes = {"\n": "\\n", "\r": "\\r", "\t": "\\t"}
    if char in usual_escapes:
        return usual_escapes[char]
    number = ord(char)
    if 0xDC80 <= number <= 0xDCFF:
        return f"\\x{number - 0xDC00:02x}"
    if number < 0x100:
        return f"\\x{number:02x}"
    if number < 0x10000:
        return f"\\u{number:04x}"
    return f"\\U{number:08x}"


def printable_lines(text: str) -> str:
    """Return a text of several lines, such as the output of a child, with escapes in each line."""
    lines = text.replace("\r\n", "\n").split("\n")
    return "\n".join(printable(line.expandtabs()) for line in lines)


def printable_data(value: Any, make_printable: Callable[[str], str] = printable) -> Any:
    """Return a JSON value with `make_printable` applied to every text in it, also to the names."""
    if isinstance(value, dict):
        members = {}
        for name, member in value.items():
            members[make_printable(name)] = printable_data(member, make_printable)
        return members
    if isinstance(value, list):
        return [printable_data(item, make_printable) for item in value]
    if isinstance(value, str):
        return make_printable(value)
    return value


def shorten(text: str, max_characters: int = MAX_ECHOED_CHARACTERS) -> str:
    """Return the text. If it is too long, put an ellipsis in place of its middle."""
    if len(text) <= max_characters:
        return text
    # The end is often what distinguishes a path from others.
    kept = max_characters - 1
    end = kept // 2
    beginning = kept - end
    return f"{text[:beginning]}…{text[-end:]}"


def shorten_sentence(sentence: str) -> str:
    """Return a sentence in which no word is too long, and which itself is not too long.

    A long value in a message usually is one word. If only this word is shortened, the rest of the
    message can still be read.
    """
    shortened = re.sub(r"\S+", _shorten_word, sentence)
    return shorten(shortened, MAX_SENTENCE_CHARACTERS)


def _shorten_word(word: re.Match[str]) -> str:
    """Return a word, shortened unless it may be a path."""
    # A path may be a part of a command to copy. Nearly all paths are shorter than a sentence.
    if "/" in word[0]:
        return word[0]
    return shorten(word[0])


def quoted(text: str) -> str:
    """Return the text in quotes, for a sentence. A long text is shortened."""
    # Shorten it before as well: escaping a text of several megabytes takes seconds.
    escaped_text = printable(shorten(text))
    # An escape has up to ten characters.
    return f"'{shorten(escaped_text)}'"


def counted(number: int, thing: str) -> str:
    """Return `1 row` or `2 rows`."""
    if number == 1:
        return f"1 {thing}"
    return f"{number} {thing}s"


def between_words(
    text: str,
    width: int,
    first_indent: str = "",
    other_indent: str = "",
) -> list[str]:
    """Return the text in lines of this width. Names of options are not broken at their hyphens."""
    wrapper = textwrap.TextWrapper(
        width=max(width, _NARROWEST_TEXT),
        initial_indent=first_indent,
        subsequent_indent=other_indent,
        break_long_words=False,
        break_on_hyphens=False,
    )
    return wrapper.wrap(text)


# Secrets

MASK = "***"

_WORD_START = r"(?<![^\W_])"
"""Not after a letter or a digit. Unlike `\b`, this finds a word after an underscore: `db_pass`."""

_WORD_END = r"(?![^\W_])"
"""Not before a letter or a digit."""

_SECRET_KEYS = (
    "token",
    "password",
    "passwd",
    "passphrase",
    f"{_WORD_START}pass{_WORD_END}",
    f"{_WORD_START}pwd{_WORD_END}",
    "secret",
    "dsn",
    f"creds?{_WORD_END}",
    f"credentials?{_WORD_END}",
    f"{_WORD_START}auth{_WORD_END}",
    "api[_-]?key",
    "private[_-]?key",
    "access[_-]?key",
)
"""Patterns for the names of settings whose values are secret."""

_PASSWORD_NAMES = ("password", "passwd", "pwd")
"""The names in a connection string, such as `host=db password=x`, before a password."""

_AUTH_SCHEMES = ("bearer", "basic")
"""The words in an Authorization header before the secret."""

_QUOTED_OR_WORD = r"""('[^']*'|"[^"]*"|[^\s&;]+)"""


def is_secret(key: str) -> bool:
    """Return whether the name of a setting says that its value is secret."""
    return re.search("|".join(_SECRET_KEYS), key, re.IGNORECASE) is not None


def redact(text: str) -> str:
    """Return the text without the passwords in URLs, connection strings and headers."""
    text = re.sub(r"\S+", _mask_password_in_url, text)
    text = re.sub(
        rf"\b({'|'.join(_PASSWORD_NAMES)})(\s*=\s*){_QUOTED_OR_WORD}",
        rf"\1\2{MASK}",
        text,
        flags=re.IGNORECASE,
    )
    return re.sub(
        rf"\b({'|'.join(_AUTH_SCHEMES)})\s+\S+",
        rf"\1 {MASK}",
        text,
        flags=re.IGNORECASE,
    )


def _mask_password_in_url(word: re.Match[str]) -> str:
    """Return a word. If it is like `redis://user:password@host`, mask the password.

    The scheme may be missing or misspelt. The password may contain slashes and `@`.
    """
    before_host, at_sign, host = word[0].rpartition("@")
    # The first colon, unless it belongs to the scheme.
    colon = re.search(":(?!//)", before_host)
    if not at_sign or colon is None:
        return word[0]
    has_password = colon.end() < len(before_host)
    if not has_password:
        return word[0]
    return f"{before_host[: colon.end()]}{MASK}@{host}"
