"""The settings that the tool itself obeys: those of the kit, and those that the parts bring in a `settings.py`.

A part's file has a literal `SETTINGS` like the one here: what kind of value a setting has, what it is if nobody says,
what it is for. It is imported only for a name that is not the kit's.
"""

from functools import cache
from typing import Any

from ..contract.answer import FORMATS
from ..contract.duration import parse_duration
from ..contract.errors import InvalidValues, Mistake
from ..parts import offered

AUTO = "auto"
"""Decided anew by each call: by its command, the machine or the terminal."""


SETTINGS = {
    "call_log": {"kind": "switch", "default": "on", "help": "Whether each call leaves a line in the log (`log`)."},
    "format": {"kind": "format", "default": AUTO, "help": "How to answer; auto is text on a terminal, else JSON."},
    "jobs": {"kind": "count", "default": AUTO, "help": "How many things run at once; auto is one for each processor."},
    "lock_timeout": {"kind": "duration", "default": AUTO, "help": "The wait for a lock; auto is up to the command."},
    "session_ttl": {"kind": "duration", "default": "7d", "help": "How long `session clean` keeps an unused session."},
}
_EXPECTED = {
    "count": "a whole number from 1",
    "duration": "a duration such as 30s, or 0",
    "format": "json, jsonl or text",
    "switch": "on or off",
    "text": "a text",
}


@cache
def all_known() -> dict[str, dict[str, str]]:
    found = dict(SETTINGS)
    for module in offered("settings"):
        found |= module.SETTINGS
    return dict(sorted(found.items()))


def find_known(name: str) -> dict[str, str] | None:
    return SETTINGS.get(name) or all_known().get(name)


def check(name: str, value: Any, where: str) -> Any:
    """The parsed value of a known setting, or an error that names its source; None if the call is to decide."""
    known = find_known(name)
    assert known is not None
    meant = known["default"] if value == AUTO else value
    try:
        return None if meant == AUTO else read_as(known["kind"], meant)
    except ValueError as error:
        problem = f"{name} from {where}: {error}"
        hint = f"Give {_EXPECTED[known['kind']]}{', or auto' if known['default'] == AUTO else ''}."
        raise InvalidValues(Mistake(name, "INVALID_VALUE", problem, str(value), hint)) from error


def read_as(kind: str, value: Any) -> Any:
    """The value as this kind of setting, or ValueError."""
    if kind == "duration":
        return parse_duration(str(value))
    if kind == "count" and isinstance(value, (int, str)) and str(value).isdecimal() and int(value) > 0:
        return int(value)
    if kind == "switch" and value in ("on", "off", True, False):
        return value in ("on", True)
    if (kind == "format" and value in FORMATS) or (kind == "text" and isinstance(value, str) and value):
        return value
    raise ValueError(f"{value!r} is not {_EXPECTED[kind]}")
