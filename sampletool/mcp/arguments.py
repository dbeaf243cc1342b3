"""The arguments of a tool call as a command line, or all the mistakes in them at once.

No value can be taken for an option: the value of an option is joined to it, and everything that
follows `--` is an argument.
"""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from ..kit.contract.errors import Mistake, did_you_mean
from ..kit.contract.text import quoted
from .parameters import Parameter, to_name

MAX_ARGUMENT_BYTES = 128 * 1024 - 256
"""The size of one argument of a process on Linux, with room for the name of an option."""

_NO_STDIN = "Write the value itself. A tool cannot read stdin."


class WrongArgument(ValueError):
    """One argument of a call is wrong.

    The message does not repeat the value, which may be a secret in the wrong place.
    """

    def __init__(self, problem: str, hint: str | None = None) -> None:
        super().__init__(problem)
        self.hint = hint


def command_words(
    parameters: Sequence[Parameter],
    arguments: Mapping[str, Any],
) -> tuple[list[str], list[Mistake]]:
    """Return the words of a command line, and what is wrong with the arguments.

    An argument that is null counts as not given.
    """
    given, mistakes = _by_parameter(parameters, arguments)
    options: list[str] = []
    operands: list[str] = []
    for parameter in parameters:
        value = given.get(parameter.name)
        if value is None:
            if parameter.is_required:
                mistakes.append(Mistake(parameter.name, "MISSING", f"{parameter.name} is missing"))
            continue
        try:
            texts = _texts(parameter, value)
        except WrongArgument as wrong:
            message = f"{parameter.name} {wrong}"
            mistakes.append(
                Mistake(parameter.name, "INVALID_VALUE", message, suggestion=wrong.hint)
            )
            continue
        if parameter.flag is None:
            operands += texts
        elif parameter.type != "boolean":
            options += [f"{parameter.flag}={text}" for text in texts]
        elif value:
            options.append(parameter.flag)
    return [*options, "--", *operands], mistakes


def _by_parameter(
    parameters: Sequence[Parameter],
    arguments: Mapping[str, Any],
) -> tuple[dict[str, Any], list[Mistake]]:
    """Return the given values by the names of their parameters, and the unknown names."""
    names = {}
    for parameter in parameters:
        names.update(dict.fromkeys(parameter.aliases, parameter.name))
    for parameter in parameters:
        names[parameter.name] = parameter.name

    given: dict[str, Any] = {}
    mistakes = []
    for written_name, value in arguments.items():
        name = names.get(to_name(written_name))
        if name is None:
            mistakes.append(_unknown_name(written_name, [each.name for each in parameters]))
        elif name in given:
            message = f"{name} is passed twice, the second time as {quoted(written_name)}"
            mistakes.append(Mistake(name, "INVALID_VALUE", message))
        else:
            given[name] = value
    return given, mistakes


def _unknown_name(name: str, known: list[str]) -> Mistake:
    hint = did_you_mean(to_name(name), known) or f"The arguments are {', '.join(known)}."
    message = f"there is no argument {quoted(name)}"
    return Mistake(name, "UNKNOWN_OPTION", message, suggestion=hint)


def _texts(parameter: Parameter, value: Any) -> list[str]:
    """Return the values of one argument as texts. Raise WrongArgument."""
    if isinstance(value, list) and not parameter.is_list:
        raise WrongArgument("must be one value, not a list", 'Write "...".')
    if parameter.is_list and not isinstance(value, list):
        raise WrongArgument("must be a list", 'Write ["..."].')
    values = value if parameter.is_list else [value]
    return [_text(parameter, each) for each in values]


def _text(parameter: Parameter, value: Any) -> str:
    """Return one value as the text of a command line. Raise WrongArgument."""
    if parameter.type == "boolean" and not isinstance(value, bool):
        raise WrongArgument("must be true or false", "Write true or false.")
    if value is None or isinstance(value, (dict, list)):
        raise WrongArgument(
            "must be a string",
            "Write it as a string. If JSON is meant, write the JSON into the string.",
        )
    text = value if isinstance(value, str) else json.dumps(value)
    if text == "-" and parameter.reads_stdin:
        raise WrongArgument("must not be `-`, which means stdin", _NO_STDIN)
    if "\0" in text:
        raise WrongArgument("contains a NUL character")
    if len(text.encode(errors="surrogatepass")) > MAX_ARGUMENT_BYTES:
        raise WrongArgument(f"is longer than {MAX_ARGUMENT_BYTES} bytes")
    return text
