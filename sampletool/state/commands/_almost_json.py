"""Correct a text that is almost JSON, so that an error can propose what was probably meant.

People and language models often write what JavaScript or Python accepts: a comma after the last
member, comments, names without quotes, single quotes, and `True` or `None`. Such a text is refused,
because a guess must not be stored. But the correction is in the error, ready to be sent back.
"""

import json
import re

_TOKEN = re.compile(
    r"""
    (?P<string> "(?:[^"\\]|\\.)*" )
    | (?P<single_quoted> '(?:[^'\\]|\\.)*' )
    | (?P<comment> //[^\n]* | /\*.*?\*/ | \#[^\n]* )
    | (?P<number> -?\d[\d.eE+-]* )
    | (?P<name> [A-Za-z_$][\w$]* ) (?P<colon> \s*: )?
    | (?P<symbol> . )
    """,
    re.VERBOSE | re.DOTALL,
)

_WORDS = {
    "true": "true",
    "false": "false",
    "null": "null",
    "True": "true",
    "False": "false",
    "None": "null",
}
"""The words that JavaScript or Python writes for values, and what JSON writes."""

MAX_CHARACTERS = 1000
"""The length of a text that is corrected. A longer correction does not fit into an error."""


def correct_json(text: str) -> str | None:
    """Return the JSON that was probably meant, or None if that is not clear."""
    if len(text) > MAX_CHARACTERS:
        return None
    corrected = ""
    for token in _TOKEN.finditer(text):
        if token["comment"] is not None:
            continue
        if token["symbol"] in ("}", "]"):
            # JSON does not allow a comma after the last member.
            corrected = _without_last_comma(corrected)
        corrected += _correct_token(token)
    try:
        json.loads(corrected)
    except ValueError:
        return None
    return corrected


def _correct_token(token: re.Match[str]) -> str:
    """Return one token as JSON writes it."""
    if token["single_quoted"] is not None:
        inside = token[0][1:-1].replace("\\'", "'")
        return '"' + re.sub(r'(?<!\\)"', r"\"", inside) + '"'
    if token["name"] is None:
        return token[0]
    if token["colon"] is not None:
        return f'"{token["name"]}"{token["colon"]}'
    return _WORDS.get(token["name"], token["name"])


def _without_last_comma(text: str) -> str:
    """Return the text without a comma at its end, and without the white space around it."""
    without_space = text.rstrip()
    if without_space.endswith(","):
        return without_space[:-1].rstrip()
    return text
