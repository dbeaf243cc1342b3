"""Translates the errors of commands for MCP clients, which pass arguments instead of options.

For example, `--lock-timeout 2m` in the text of an error becomes `lock_timeout: "2m"`.
"""

import re
from collections.abc import Iterable
from functools import partial
from typing import Any

from .parameters import Parameter, to_parameter_name

_OPTION = re.compile(
    r"(?<![\w-])(?P<flag>--[a-z][a-z0-9-]*)(?:[ =](?P<value>\d+(?:\.\d+)?(?:ms|[smhd])?)\b)?"
)
"""Matches an option, together with its value if the value is a number or a duration."""

_ParametersByFlag = dict[str, Parameter]
"""The parameters of a tool, by the names of their options, in the form `lock_timeout`."""


def translate_error(error: dict[str, Any], parameters: Iterable[Parameter]) -> dict[str, Any]:
    """Return an error in which the texts name arguments of a tool, rather than options.

    `error` is the error in the response of a command. `parameters` are those of its tool.
    """
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
    """Translate one of the mistakes that an error lists."""
    translated = dict(mistake)
    parameter = by_flag.get(to_parameter_name(mistake["param"]))
    if parameter is not None:
        translated["param"] = parameter.name
    for name in ("message", "suggestion"):
        if name in mistake:
            translated[name] = _translate_text(mistake[name], by_flag)
    return translated


def _translate_text(text: str, by_flag: _ParametersByFlag) -> str:
    """Translate the options in a text.

    A whole command in backticks, such as `tool doctor --json`, is not changed, because it is meant
    for a shell.
    """
    pieces = text.split("`")
    for index, piece in enumerate(pieces):
        # Every second piece was between backticks. If it begins with `--`, it is a single option.
        is_command = index % 2 == 1 and not piece.startswith("--")
        if not is_command:
            pieces[index] = _OPTION.sub(partial(_translate_option, by_flag=by_flag), piece)
    return "`".join(pieces)


def _translate_option(option: re.Match[str], by_flag: _ParametersByFlag) -> str:
    """Translate one option: return `lock_timeout: "2m"` for `--lock-timeout 2m`.

    If the tool does not have this option, return it unchanged.
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
