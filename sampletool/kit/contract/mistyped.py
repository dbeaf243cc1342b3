"""What programs write by mistake where the name of a thing is meant: refused, with what was meant where that is known.

For names, keys, ids and the paths of new files. Free text may be anything; where it is JSON, broken JSON is refused.
"""

import re
import unicodedata

from .text import NOTHING, quoted

_DASHES = "\u2012\u2013\u2014\u2015\u2212"


class Mistyped(ValueError):
    def __init__(self, problem: str, text: str, meant: str) -> None:
        super().__init__(problem)
        self.value = text
        self.suggestion = f"Did you mean {quoted(meant)}?" if meant else "Look at how the call was put together."


def check_path(text: str) -> None:
    """Mistyped, unless it may be the path of a new file."""
    if text in NOTHING:
        raise Mistyped(f"{quoted(text)} is what is written for a variable without a value", text, "")
    if text != text.strip():
        raise Mistyped(f"{quoted(text)} has white space at an end", text, text.strip())
    if text.startswith(tuple(_DASHES)):
        raise Mistyped(f"{quoted(text)} begins with a dash that is not `-`", text, text.lstrip(_DASHES))
    if re.search("%[0-9A-Fa-f]{2}", text):
        from urllib.parse import unquote

        raise Mistyped(f"{quoted(text)} is percent-encoded", text, unquote(text))


def check_name(text: str) -> None:
    """Mistyped, unless it may be a name."""
    check_path(text)
    if begins_as_json(text) or (text[:1] == text[-1:] == '"'):
        raise Mistyped(f"{quoted(text)} is JSON, not a name", text, text.strip('"') if text[0] == '"' else "")
    if (plain := unicodedata.normalize("NFKC", text)) != text:
        raise Mistyped(f"{quoted(text)} has letters that only look like others", text, plain)
    for word in re.findall(r"\w+", text):
        scripts = {unicodedata.name(char, "").split(" ")[0] for char in word if char.isalpha()}
        if len(scripts & {"LATIN", "CYRILLIC", "GREEK"}) > 1:
            raise Mistyped(f"{quoted(text)} has letters of several alphabets in one word", text, "")


def begins_as_json(text: str) -> bool:
    """Whether an object or array was probably meant, also where the rest of it is broken."""
    return re.match(r'\s*[\[{]\s*["{}\[\]0-9-]', text) is not None
