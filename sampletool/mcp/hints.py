"""The texts of errors for MCP clients: `lock_timeout: "2m"` instead of `--lock-timeout 2m`."""

import re
from collections.abc import Iterable
from typing import Any

from .parameters import Parameter, to_name

_OPTION = re.compile(
    r"(?<![\w-])(?P<flag>--[a-z][a-z0-9-]*)(?:[ =](?P<value>\d+(?:\.\d+)?(?:ms|[smhd])?)\b)?"
)
"""An option, and its value if this is a number or a duration."""


def translate_error(error: dict[str, Any], parameters: Iterable[Parameter]) -> dict[str, Any]:
    """Return the error with the names of the tool's parameters in place of options."""
    by_flag = {}
    for parameter in parameters:
        if parameter.flag is not None:
            by_flag[to_name(parameter.flag)] = parameter

    translated = dict(error)
    for name in ("message", "suggestion"):
        translated[name] = _translate(error[name], by_flag)
    if "errors" in error:
        translated["errors"] = [_translate_mistake(each, by_flag) for each in error["errors"]]
    return translated


def _translate_mistake(mistake: dict[str, Any], by_flag: dict[str, Parameter]) -> dict[str, Any]:
    translated = dict(mistake)
    parameter = by_flag.get(to_name(mistake["param"]))
    if parameter is not None:
        translated["param"] = parameter.name
    for name in ("message", "suggestion"):
        if name in mistake:
            translated[name] = _translate(mistake[name], by_flag)
    return translated


def _translate(text: str, by_flag: dict[str, Parameter]) -> str:
    """Return the text with the options replaced, but not in a command such as `tool doctor`."""

    def replace(match: re.Match[str]) -> str:
        parameter = by_flag.get(to_name(match["flag"]))
        if parameter is None:
            return match[0]
        if parameter.type == "boolean":
            return f"{parameter.name}: true"
        if match["value"] is None:
            return parameter.name
        if parameter.type == "string":
            return f'{parameter.name}: "{match["value"]}"'
        return f"{parameter.name}: {match['value']}"

    pieces = text.split("`")
    for index, piece in enumerate(pieces):
        # Every second piece is between backticks.
        is_command = index % 2 == 1 and not piece.startswith("--")
        if not is_command:
            pieces[index] = _OPTION.sub(replace, piece)
    return "`".join(pieces)
