"""Describe the errors of Typer's parser as mistakes of the command line."""

import re
from typing import Any

import typer

from .contract.errors import Mistake, did_you_mean

_NUMBER = r"-[0-9.]+"
"""What looks like an option, but probably is a value. Typer reports `-5` for `-50`."""


def describe_error(error: typer.TyperException, known: list[dict[str, Any]]) -> Mistake:
    """Return the mistake behind an error.

    `known` are the descriptions of the parameters that the command takes. Typer has public names
    only for two classes of errors, so the others are told apart by their attributes.
    """
    option: str | None = getattr(error, "option_name", None)
    if option is not None and hasattr(error, "possibilities"):
        return _unknown_option(option, known)
    message = error.format_message().rstrip(".")
    if option is not None:
        # The value of an option is missing, or a flag was given one.
        metavar = _metavar_of_option(option, known)
        hint = f"Use `{option} {metavar}`." if metavar else None
        return Mistake(option, "INVALID_VALUE", message, suggestion=hint)
    if getattr(error, "param", None) is not None:
        return _wrong_parameter(error, message, known)
    return Mistake("ARGUMENTS", "EXTRA_ARGUMENT", message)


def _unknown_option(option: str, known: list[dict[str, Any]]) -> Mistake:
    """Return the mistake for an option that the command does not take."""
    if re.fullmatch(_NUMBER, option):
        hint = f"If {option} is the start of a value, put `--` before the value."
    else:
        flags = [flag for described in known for flag in described.get("flags", ())]
        hint = did_you_mean(option, flags)
    message = f"No such option: {option}"
    return Mistake(option, "UNKNOWN_OPTION", message, suggestion=hint or None)


def _wrong_parameter(error: Any, message: str, known: list[dict[str, Any]]) -> Mistake:
    """Return the mistake for a parameter with a wrong value, or a required one without a value."""
    param = error.param
    if param.param_type_name == "option":
        name = param.opts[0]
    else:
        name = _metavar_of_argument(param.name, known)
    is_missing = type(error).__name__ == "MissingParameter"
    # A check of ours may know more: see contract/mistyped.py.
    cause = error.__cause__
    return Mistake(
        param=name,
        code="MISSING" if is_missing else "INVALID_VALUE",
        message=message,
        value=getattr(cause, "value", None),
        suggestion=getattr(cause, "suggestion", None),
    )


def _metavar_of_option(flag: str, known: list[dict[str, Any]]) -> str | None:
    for described in known:
        if flag in described.get("flags", ()):
            metavar: str | None = described.get("metavar")
            return metavar
    return None


def _metavar_of_argument(name: str, known: list[dict[str, Any]]) -> str:
    for described in known:
        if described["name"] == name and "flags" not in described:
            metavar: str = described["metavar"]
            return metavar
    return name
