"""The texts of errors for MCP clients: `lock_timeout: "2m"` instead of `--lock-timeout 2m`."""

import re
from collections.abc import Iterable
from functools import partial
from typing import Any

from .parameters import Parameter, to_parameter_name

_OPTION = re.compile(
    r"(?<![\w-])(?P<flag>--[a-z][a-z0-9-]*)(?:[ =](?P<value>\d+(?:\.\d+)?(?:ms|[smhd])?)\b)?"
)
"""An option, and its value if this is a number or a duration."""

_ParametersByFlag = dict[str, Parameter]
"""The parameters of a tool, by the names of their options: `lock_timeout`."""


def translate_error(error: dict[str, Any], parameters: Iterable[Parameter]) -> dict[str, Any]:
    """Return the error with the tool's arguments in place of command-line options."""
    by_flag = {}
    for parameter in parameters:
        if parameter.flag is not None:
            by_flag[to_parameter_name(parameter.flag)] = parameter

    translated = dict(error)
    for name in ("message", "suggestion"):
        translated[name] = _translate_text(error[name], by_flag)
    if "errors" in error:
        translated["errors"] = [_translate_mistake(mistake, by_flag) for mistake in error["errors"]]
    return translated


def _translate_mistake(mistake: dict[str, Any], by_flag: _ParametersByFlag) -> dict[str, Any]:
    """Return one of the mistakes in an error, with the tool's arguments in place of options."""
    translated = dict(mistake)
    parameter = by_flag.get(to_parameter_name(mistake["param"]))
    if parameter is not None:
        translated["param"] = parameter.name
    for name in ("message", "suggestion"):
        if name in mistake:
            translated[name] = _translate_text(mistake[name], by_flag)
    return translated


def _translate_text(text: str, by_flag: _ParametersByFlag) -> str:
    """Return the text with the tool's arguments in place of options.

    A command in backticks, such as `tool doctor --json`, stays as it is: it is for a shell.
    """
    pieces = text.split("`")
    for index, piece in enumerate(pieces):
        # Every second piece is between backticks.
        is_command = index % 2 == 1 and not piece.startswith("--")
        if not is_command:
            pieces[index] = _OPTION.sub(partial(_translate_option, by_flag=by_flag), piece)
    return "`".join(pieces)


def _translate_option(option: re.Match[str], by_flag: _ParametersByFlag) -> str:
    """Return an option as the argument of a tool: `--lock-timeout 2m` as `lock_timeout: "2m"`.

    An option that the tool does not have stays as it is.
    """
    parameter = by_flag.get(to_parameter_name(option["flag"]))
    if parameter is None:
        return option[0]
    if parameter.type == "boolean":
        return f"{parameter.name}: true"
    value = option["value"]
    if value is None:
        return parameter.name
    if parameter.type == "string":
        return f'{parameter.name}: "{value}"'
    return f"{parameter.name}: {value}"
