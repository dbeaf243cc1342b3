"""The kinds of settings: the values that a setting of each kind can have, and how they are read.

A setting of the kind `choice` has a fixed set of values. For one of the kind `pattern`, a regular
expression says how its value is written, and `pattern_help` says the same in words.
"""

import re
from typing import Any, NotRequired, TypedDict

from ..contract.duration import parse_duration
from .toml_key import TomlValue, show_value

MAX_PATTERN_CHARACTERS = 200
"""The length of a value that is compared with a pattern. Python cannot interrupt this comparison,
and for some patterns, the time that it takes grows with a power of the length."""


class KnownSetting(TypedDict):
    """What the tool knows about one of its settings."""

    kind: str
    """One of KINDS."""
    default: str
    help: str
    choices: NotRequired[tuple[str, ...]]
    """The values of a setting of the kind `choice`."""
    pattern: NotRequired[str]
    """The regular expression that matches each value of a setting of the kind `pattern`."""
    pattern_help: NotRequired[str]
    """What the pattern means in words, such as "three capital letters"."""
    deprecated: NotRequired[str]
    """A sentence that says what to use instead."""
    former_names: NotRequired[tuple[str, ...]]
    """Names that the setting had before. They still work, in files and in variables."""


KINDS = ("choice", "count", "duration", "pattern", "switch", "text")


def describe_values(setting: KnownSetting) -> str:
    """Return the values that a setting can have in words, such as `json, jsonl or text`."""
    kind = setting["kind"]
    if kind == "choice":
        *first_choices, last_choice = setting["choices"]
        return f"{', '.join(first_choices)} or {last_choice}"
    if kind == "pattern":
        return setting["pattern_help"]
    if kind == "count":
        return "a whole number of at least 1"
    if kind == "duration":
        return "a duration such as 30s, or 0"
    if kind == "switch":
        return "on or off"
    return "text that is not empty"


def read_value(setting: KnownSetting, value: TomlValue) -> Any:
    """Return the value of a setting, parsed. Raise ValueError if it cannot have this value."""
    kind = setting["kind"]
    if kind == "duration":
        return parse_duration(str(value))
    if not _is_valid(setting, value):
        raise ValueError(f"{value!r} is not {describe_values(setting)}")
    if kind == "count":
        return int(value)
    if kind == "switch":
        return value in ("on", True)
    return as_typed(value)


def _is_valid(setting: KnownSetting, value: TomlValue) -> bool:
    """Return whether a setting of any kind but `duration` can have this value."""
    kind = setting["kind"]
    if kind == "choice":
        return as_typed(value) in setting["choices"]
    if kind == "count":
        # Not isinstance(): True is an int.
        return type(value) in (int, str) and str(value).isdecimal() and int(value) > 0
    if kind == "pattern":
        return _matches(setting["pattern"], as_typed(value))
    if kind == "switch":
        # 1 and 0 are accepted too: in Python, they are equal to True and False.
        return value in ("on", "off", True, False)
    return isinstance(value, str) and value != ""


def as_typed(value: TomlValue) -> str:
    """Return the value as the user typed it.

    `config set year 2026` stores a number, because 2026 is one in TOML. But a choice or a pattern
    is about text.
    """
    if isinstance(value, str):
        return value
    return show_value(value)


def _matches(pattern: str, text: str) -> bool:
    """Return whether the pattern matches the whole text. It matches no text that is too long."""
    if len(text) > MAX_PATTERN_CHARACTERS:
        return False
    return re.fullmatch(pattern, text) is not None
