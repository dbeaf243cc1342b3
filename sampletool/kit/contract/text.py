"""Make text from outside safe to show: names, keys, values and the output of children.

Shown text cannot move the cursor or forge a line, and contains no password. What is repeated in an
error is short.
"""

import re
from collections.abc import Callable
from typing import Any

from .display_width import wrap

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
    return wrap(text, max(width, _NARROWEST_TEXT), first_indent, other_indent)


# Secrets

MASK = "***"

_SECRET_TEXTS = (
    "token",
    "password",
    "passwd",
    "passphrase",
    "secret",
    "dsn",
    "apikey",
    "api_key",
    "api-key",
    "privatekey",
    "private_key",
    "private-key",
    "accesskey",
    "access_key",
    "access-key",
)
_SECRET_WORDS = ("auth", "cred", "creds", "credential", "credentials")
_SECRET_ENDINGS = ("pass", "pwd", "cred", "creds", "credential", "credentials")
_ORDINARY_WORDS = (
    "bandpass",
    "bypass",
    "compass",
    "encompass",
    "highpass",
    "lowpass",
    "multipass",
    "oldpwd",
    "overpass",
    "surpass",
    "trespass",
    "underpass",
)
_KINDS_OF_PUBLIC_KEYS = (
    "cache",
    "foreign",
    "group",
    "hash",
    "hot",
    "idempotency",
    "index",
    "map",
    "partition",
    "primary",
    "public",
    "range",
    "routing",
    "row",
    "shard",
    "sort",
    "unique",
)
"""For example `sort_key`: the words before `key` in names whose values are not secret."""

_AUTH_SCHEMES = ("bearer", "basic")
"""The words in an Authorization header before the secret."""

_NAME = r"(?<![\w.-])([\w.-]+)"
"""A name, from its start. Otherwise, the time to look for one would be quadratic in its length."""

_QUOTED_OR_WORD = r"""('[^']*'|"[^"]*"|[^\s&;]+)"""


def is_secret(name: str) -> bool:
    """Return whether the name of a setting or a variable says that its value is secret."""
    # The rule, without regard to case. A name is secret if one of these is true:
    # * It contains one of _SECRET_TEXTS, as `client_secret` and `tokens` do.
    # * One of its words is in _SECRET_WORDS, or has one of _SECRET_ENDINGS, as in `mypass` and
    #   `db_pwd`. But `bypass` is an ordinary word.
    # * Its last words are something and `key`, as in `TOOL_KEY`. But a `sort_key` is no secret. A
    #   dot is no such connection: the key in `build.key` can be anything.
    lower_name = name.lower()
    if any(text in lower_name for text in _SECRET_TEXTS):
        return True
    for part in name.split("."):
        words = _words_in(part)
        if any(_is_secret_word(word) for word in words):
            return True
        is_some_key = len(words) > 1 and words[-1] == "key"
        if is_some_key and words[-2] not in _KINDS_OF_PUBLIC_KEYS:
            return True
    return False


def _words_in(name: str) -> list[str]:
    """Return the words of a name, in lower case. `db_pass`, `db-pass` and `dbPass` have two."""
    separated = ""
    previous = ""
    for char in name:
        if char.isupper() and previous.islower():
            separated += " "
        separated += char if char.isalnum() else " "
        previous = char
    return separated.lower().split()


def _is_secret_word(word: str) -> bool:
    if word in _ORDINARY_WORDS:
        return False
    return word in _SECRET_WORDS or word.endswith(_SECRET_ENDINGS)


def redact(text: str) -> str:
    """Return the text without the passwords in URLs, assignments and headers.

    An assignment is `NAME=VALUE` where `is_secret` recognizes the name. Connection strings, such as
    `host=db password=x`, have them.
    """
    text = re.sub(r"\S+", _mask_password_in_url, text)
    text = re.sub(rf"{_NAME}(\s*=(?!=)\s*){_QUOTED_OR_WORD}", _mask_secret_value, text)
    return re.sub(
        rf"\b({'|'.join(_AUTH_SCHEMES)})\s+\S+",
        rf"\1 {MASK}",
        text,
        flags=re.IGNORECASE,
    )


def _mask_secret_value(assignment: re.Match[str]) -> str:
    """Return `NAME=VALUE`. If the name is that of a secret, mask the value."""
    name, equals_sign, _value = assignment.groups()
    if not is_secret(name):
        return assignment[0]
    return f"{name}{equals_sign}{MASK}"


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
