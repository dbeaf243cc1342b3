"""The arguments of a tool call as a command line, or all the mistakes in them at once.

No value can be taken for an option: the value of an option is joined to it, and everything that
follows `--` is an argument.
"""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from ..kit.contract.errors import Mistake, did_you_mean
from ..kit.contract.text import quoted
from .parameters import Parameter, to_parameter_name

MAX_ARGUMENT_BYTES = 128 * 1024 - 256
"""The size of one argument of a process on Linux, with room for the name of an option."""

_NO_STDIN = "Write the value itself. A tool cannot read stdin."


class InvalidArgument(ValueError):
    """One argument of a call is wrong.

    The message does not repeat the value, which may be a secret in the wrong place.
    """

    def __init__(self, problem: str, hint: str | None = None) -> None:
        super().__init__(problem)
        self.hint = hint


def to_command_line(
    parameters: Sequence[Parameter],
    arguments: Mapping[str, Any],
) -> tuple[list[str], list[Mistake]]:
    """Return the command line for the arguments of a call, and what is wrong with them.

    An argument that is null counts as not given.
    """
    values, mistakes = _match_names(parameters, arguments)
    options: list[str] = []
    positionals: list[str] = []
    for parameter in parameters:
        value = values.get(parameter.name)
        if value is None:
            if parameter.is_required:
                mistakes.append(Mistake(parameter.name, "MISSING", f"{parameter.name} is missing"))
            continue
        try:
            texts = _to_texts(parameter, value)
        except InvalidArgument as error:
            mistakes.append(_invalid_value(parameter, error))
            continue
        if parameter.flag is None:
            positionals += texts
        elif parameter.type != "boolean":
            options += [f"{parameter.flag}={text}" for text in texts]
        elif value is True:
            options.append(parameter.flag)
    return [*options, "--", *positionals], mistakes


def _match_names(
    parameters: Sequence[Parameter],
    arguments: Mapping[str, Any],
) -> tuple[dict[str, Any], list[Mistake]]:
    """Return the values by the names of their parameters, and the mistakes in the names.

    A caller may write the name of a parameter, one of its aliases, or its option.
    """
    names_by_spelling = {}
    for parameter in parameters:
        for alias in parameter.aliases:
            names_by_spelling[alias] = parameter.name
    # A name wins over an alias of another parameter.
    for parameter in parameters:
        names_by_spelling[parameter.name] = parameter.name

    values: dict[str, Any] = {}
    mistakes = []
    for spelling, value in arguments.items():
        name = names_by_spelling.get(to_parameter_name(spelling))
        if name is None:
            mistakes.append(_unknown_argument(spelling, parameters))
        elif name in values:
            message = f"{name} is given twice, the second time as {quoted(spelling)}"
            mistakes.append(Mistake(name, "INVALID_VALUE", message))
        else:
            values[name] = value
    return values, mistakes


def _unknown_argument(spelling: str, parameters: Sequence[Parameter]) -> Mistake:
    names = [parameter.name for parameter in parameters]
    suggestion = did_you_mean(to_parameter_name(spelling), names)
    if not suggestion:
        suggestion = f"The arguments are {', '.join(names)}."
    message = f"there is no argument {quoted(spelling)}"
    return Mistake(spelling, "UNKNOWN_OPTION", message, suggestion=suggestion)


def _invalid_value(parameter: Parameter, error: InvalidArgument) -> Mistake:
    message = f"{parameter.name} {error}"
    return Mistake(parameter.name, "INVALID_VALUE", message, suggestion=error.hint)


def _to_texts(parameter: Parameter, value: Any) -> list[str]:
    """Return the values of one argument as texts of a command line. Raise InvalidArgument."""
    if isinstance(value, list) and not parameter.is_list:
        raise InvalidArgument("must be one value, not a list", 'Write "...".')
    if parameter.is_list and not isinstance(value, list):
        raise InvalidArgument("must be a list", 'Write ["..."].')
    values = value if parameter.is_list else [value]
    return [_to_text(parameter, each) for each in values]


def _to_text(parameter: Parameter, value: Any) -> str:
    """Return one value as the text of a command line. Raise InvalidArgument."""
    if parameter.type == "boolean" and not isinstance(value, bool):
        raise InvalidArgument("must be true or false", "Write true or false.")
    if value is None or isinstance(value, (dict, list)):
        raise InvalidArgument(
            "must be a string",
            "Write it as a string. If JSON is meant, write the JSON into the string.",
        )
    text = value if isinstance(value, str) else json.dumps(value)
    if text == "-" and parameter.reads_stdin:
        raise InvalidArgument("must not be `-`, which means stdin", _NO_STDIN)
    if "\0" in text:
        raise InvalidArgument("contains a NUL character")
    if len(text.encode(errors="surrogatepass")) > MAX_ARGUMENT_BYTES:
        raise InvalidArgument(f"is longer than {MAX_ARGUMENT_BYTES} bytes")
    return text
