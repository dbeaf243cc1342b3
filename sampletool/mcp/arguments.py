"""Turns the arguments of a tool call into a command line, or reports all mistakes in them at once.

The command line must not take a value for an option, even if the value begins with `-`. So the
value of an option is attached to it with `=`, and positional arguments follow after `--`.
"""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from ..kit.contract.errors import Mistake, did_you_mean
from ..kit.contract.text import quoted
from .parameters import Parameter, to_parameter_name

MAX_ARGUMENT_BYTES = 128 * 1024 - 256
"""Linux allows 128 KiB for one argument of a process. 256 bytes are for the name of an option."""

MAX_TOTAL_BYTES = 1024 * 1024
"""Linux allows 2 MiB for all arguments together, but they share it with the environment."""

_NO_STDIN = "Write the value itself. A tool cannot read stdin."


class InvalidArgument(ValueError):
    """The value of an argument is wrong.

    The message never contains the value: it may be a secret that was passed by mistake.
    """

    def __init__(self, problem: str, hint: str | None = None) -> None:
        super().__init__(problem)
        self.hint = hint


def to_command_line(
    parameters: Sequence[Parameter],
    arguments: Mapping[str, Any],
) -> tuple[list[str], list[Mistake]]:
    """Return the words of the command line for the arguments of a tool call, and all mistakes.

    `parameters` are the parameters of the tool. `arguments` maps their names to values. An argument
    that is null counts as missing. The command line is only valid if there are no mistakes.
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
    words = [*options, "--", *positionals]
    if not mistakes:
        mistakes += _find_excess(words)
    return words, mistakes


def _find_excess(words: Sequence[str]) -> list[Mistake]:
    """Return a mistake if the command line is too long to start a process."""
    # Besides its characters, Linux counts 9 bytes for each word: a NUL byte, and a pointer to it.
    size_bytes = sum(len(word.encode(errors="surrogatepass")) + 9 for word in words)
    if size_bytes <= MAX_TOTAL_BYTES:
        return []
    message = f"the arguments have {size_bytes} bytes together, but at most {MAX_TOTAL_BYTES} fit"
    hint = "Spread them over several calls, or put the content into a file."
    return [Mistake("arguments", "INVALID_VALUE", message, suggestion=hint)]


def _match_names(
    parameters: Sequence[Parameter],
    arguments: Mapping[str, Any],
) -> tuple[dict[str, Any], list[Mistake]]:
    """Return the values by the names of their parameters, and the mistakes in the names.

    Instead of the name of a parameter, `arguments` may contain one of its aliases, or its option.
    """
    names_by_spelling = {}
    for parameter in parameters:
        for alias in parameter.aliases:
            names_by_spelling[alias] = parameter.name
    # If a text is the name of one parameter and an alias of another, it means the first one.
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
    """Return the value of an argument as texts for the command line, one for each item of a list.

    Raise InvalidArgument if the value does not fit the parameter.
    """
    if isinstance(value, list) and not parameter.is_list:
        raise InvalidArgument("must be one value, not a list", 'Write "...".')
    if parameter.is_list and not isinstance(value, list):
        raise InvalidArgument("must be a list", 'Write ["..."].')
    values = value if parameter.is_list else [value]
    for each in values:
        if each is None or isinstance(each, (dict, list)):
            raise _not_a_string(parameter)
    return [_to_text(parameter, each) for each in values]


def _number_text(parameter: Parameter, value: Any) -> str:
    """Return the text of a value that is a number, true or false."""
    if parameter.type == "integer" and isinstance(value, float) and value.is_integer():
        # JSON does not distinguish 1.0 from 1, but the command line only accepts 1.
        return str(int(value))
    return json.dumps(value)


def _not_a_string(parameter: Parameter) -> InvalidArgument:
    """Return the error for null, an object or a list in the place of a string."""
    hint = "Write it as a string. If JSON is meant, write the JSON into the string."
    if parameter.is_list:
        return InvalidArgument("must be a list of strings", hint)
    return InvalidArgument("must be a string", hint)


def _to_text(parameter: Parameter, value: Any) -> str:
    """Return one value as text for the command line.

    Raise InvalidArgument if the value does not fit the parameter.
    """
    if parameter.type == "boolean" and not isinstance(value, bool):
        raise InvalidArgument("must be true or false", "Write true or false.")
    text = value if isinstance(value, str) else _number_text(parameter, value)
    if text == "-" and parameter.reads_stdin:
        raise InvalidArgument("must not be `-`, which means stdin", _NO_STDIN)
    if "\0" in text:
        raise InvalidArgument("contains a NUL character")
    if len(text.encode(errors="surrogatepass")) > MAX_ARGUMENT_BYTES:
        raise InvalidArgument(f"is longer than {MAX_ARGUMENT_BYTES} bytes")
    return text
