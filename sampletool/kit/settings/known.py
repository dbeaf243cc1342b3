"""The settings that the tool itself obeys: those of the kit, and those that parts bring.

A part brings settings in a file `settings.py` with a literal `SETTINGS`, like the one below. It
gives each setting its kind (see kinds.py), its default and its help. This file is imported only if
a name is not a setting of the kit. A setting that was renamed also has `former_names`, and one that
is not to be used any more has `deprecated`, a sentence that says what to use instead. Both still
work, with a warning.

Users may set any other key too. The tool keeps such a key and ignores it.
"""

from functools import cache
from typing import Any

from ..contract.duration import similar_duration
from ..contract.errors import InvalidValues, Mistake, did_you_mean
from ..contract.response import FORMATS
from ..contract.text import quoted
from ..part_discovery import offered
from .kinds import MAX_PATTERN_CHARACTERS, KnownSetting, as_typed, describe_values, read_value
from .toml_key import TomlValue

AUTO = "auto"
"""The value that lets each command choose, for example by the number of processors."""

SETTINGS: dict[str, KnownSetting] = {
    "call_log": {
        "kind": "switch",
        "default": "on",
        "help": "Whether commands are added to the log, which `log` shows: on or off.",
    },
    "format": {
        "kind": "choice",
        "choices": FORMATS,
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
        return read_value(setting, value_to_read)
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


def usable_values(setting: KnownSetting) -> str:
    """Return the sentence that says which values to use."""
    if setting["default"] == AUTO:
        return f'Use {describe_values(setting)}, or "auto".'
    return f"Use {describe_values(setting)}."


def full_help(setting: KnownSetting) -> str:
    """Return the help of a setting. For a choice or a pattern, also say which values to use."""
    if setting["kind"] in ("choice", "pattern"):
        return f"{setting['help']} {usable_values(setting)}"
    return setting["help"]


def fixed_values(setting: KnownSetting) -> list[str]:
    """Return the values that the setting can have, or [] if they cannot be listed."""
    if setting["kind"] == "choice":
        values = list(setting["choices"])
    elif setting["kind"] == "switch":
        values = ["on", "off"]
    else:
        return []
    if setting["default"] == AUTO:
        values.append(AUTO)
    return values


def _hint_for(setting: KnownSetting, invalid_value: TomlValue) -> str:
    """Return the hint for a setting that cannot have this value."""
    sentences = [usable_values(setting)]
    kind = setting["kind"]
    text = as_typed(invalid_value)
    if kind == "duration":
        # Often only the unit is missing.
        similar = similar_duration(text)
        if similar is not None:
            sentences.append(f"Did you mean {similar}?")
    if kind == "choice":
        similar_choice = did_you_mean(text, list(setting["choices"]))
        if similar_choice:
            sentences.append(similar_choice)
    if kind == "pattern" and len(text) > MAX_PATTERN_CHARACTERS:
        sentences.append(f"The value can have at most {MAX_PATTERN_CHARACTERS} characters.")
    return " ".join(sentences)
