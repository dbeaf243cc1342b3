"""The settings that the tool itself obeys: those of the kit, and those that parts bring.

A part brings settings in a file `settings.py` with a literal `SETTINGS`, like the one below. It
gives each setting its kind, its default and its help. This file is imported only if a name is not a
setting of the kit. A setting that was renamed also has `former_names`, and one that is not to be
used any more has `deprecated`, a sentence that says what to use instead. Both still work, with a
warning.

Users may set any other key too. The tool keeps such a key and ignores it.
"""

from functools import cache
from typing import Any, NotRequired, TypedDict

from ..contract.duration import parse_duration, similar_duration
from ..contract.errors import InvalidValues, Mistake
from ..contract.response import FORMATS
from ..contract.text import quoted
from ..part_discovery import offered

AUTO = "auto"
"""The value that lets each command choose, for example by the number of processors."""


class KnownSetting(TypedDict):
    """What the tool knows about one of its settings."""

    kind: str
    default: str
    help: str
    deprecated: NotRequired[str]
    """A sentence that says what to use instead."""
    former_names: NotRequired[tuple[str, ...]]
    """Names that the setting had before. They still work, in files and in variables."""


SETTINGS: dict[str, KnownSetting] = {
    "call_log": {
        "kind": "switch",
        "default": "on",
        "help": "Whether commands are added to the log, which `log` shows: on or off.",
    },
    "format": {
        "kind": "format",
        "default": AUTO,
        "help": "The output format. With auto, it is text on a terminal, and JSON otherwise.",
    },
    "jobs": {
        "kind": "count",
        "default": AUTO,
        "help": "How many jobs to run at the same time. With auto, one for each processor.",
    },
    "lock_timeout": {
        "kind": "duration",
        "default": AUTO,
        "help": "How long to wait for a lock. With auto, this depends on the command.",
    },
    "session_ttl": {
        "kind": "duration",
        "default": "7d",
        "help": "How long a session must be unused before `session clean` removes it.",
    },
}
_EXPECTED = {
    "count": "a whole number of at least 1",
    "duration": "a duration such as 30s, or 0",
    "format": "json, jsonl or text",
    "switch": "on or off",
    "text": "text that is not empty",
}
"""The values that a setting of each kind can have."""


@cache
def all_settings() -> dict[str, KnownSetting]:
    """Return all settings of the kit and the parts, sorted by name."""
    settings = dict(SETTINGS)
    for module in offered("settings"):
        settings |= module.SETTINGS
    return dict(sorted(settings.items()))


def find_setting(name: str) -> KnownSetting | None:
    """Return what is known about a setting, or None if the tool has no setting of this name."""
    if name in SETTINGS:
        return SETTINGS[name]
    return all_settings().get(name)


def find_current_name(name: str) -> str:
    """Return the name that a setting has now. A key that never was a setting keeps its name."""
    if find_setting(name) is not None:
        return name
    for known_name, known in all_settings().items():
        if name in known.get("former_names", ()):
            return known_name
    return name


def check(name: str, value: Any, source: str) -> Any:
    """Return the value of a known setting, parsed, or None if each command chooses it.

    Raise InvalidValues if the setting cannot have this value. The message names the source of it.
    """
    setting = find_setting(name)
    assert setting is not None
    # "auto" is the default. If the default is "auto" too, each command chooses.
    value_to_read: Any = value
    if value == AUTO:
        value_to_read = setting["default"]
    if value_to_read == AUTO:
        return None
    try:
        return read_as(setting["kind"], value_to_read)
    except ValueError as error:
        shown = quoted(value) if isinstance(value, str) else str(value)
        mistake = Mistake(
            param=name,
            code="INVALID_VALUE",
            message=f"Invalid value for {name}: {shown} (from {source})",
            value=str(value),
            suggestion=_hint_for(setting, value),
        )
        raise InvalidValues(mistake) from error


def _hint_for(setting: KnownSetting, invalid_value: Any) -> str:
    """Return the hint that says which values the setting can have."""
    kind = setting["kind"]
    if setting["default"] == AUTO:
        hint = f'Use {_EXPECTED[kind]}, or "auto".'
    else:
        hint = f"Use {_EXPECTED[kind]}."
    if kind == "duration":
        # Often only the unit is missing.
        similar = similar_duration(str(invalid_value))
        if similar is not None:
            hint = f"{hint} Did you mean {similar}?"
    return hint


def read_as(kind: str, value: Any) -> Any:
    """Return the value of a setting of this kind. Raise ValueError if it cannot have this value."""
    if kind == "duration":
        return parse_duration(str(value))
    if kind == "count":
        return _read_count(value)
    # 1 and 0 are accepted too: in Python, they are equal to True and False.
    if kind == "switch" and value in ("on", "off", True, False):
        return value in ("on", True)
    if kind == "format" and value in FORMATS:
        return value
    if kind == "text" and isinstance(value, str) and value:
        return value
    raise ValueError(f"{value!r} is not {_EXPECTED[kind]}")


def _read_count(value: Any) -> int:
    # Not isinstance(): True is an int.
    if type(value) in (int, str) and str(value).isdecimal() and int(value) > 0:
        return int(value)
    raise ValueError(f"{value!r} is not {_EXPECTED['count']}")
