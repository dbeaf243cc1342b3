"""Parse one level of a command line with Typer's parser, and collect all of its mistakes.

A command line has two or three levels: the tool, possibly a group, and a command. Typer parses them
one after the other, and raises an error at the first mistake. But a caller who gets all mistakes in
one response can correct them at once. So after a mistake, the level is parsed again without it:

* An unknown option is left out.
* A parameter with a wrong value accepts any value, and ignores it.

After the last level, the command fails if there was a mistake on any level.
"""

import re
from collections.abc import Callable
from copy import copy
from typing import TYPE_CHECKING, Any

import typer

from .contract.errors import Mistake
from .global_options import global_options
from .typer_parameters import TyperParameter

if TYPE_CHECKING:
    from .context import Context


class CommandLevel(typer.Context):
    """What is known about one level of a command line. Typer creates it: see `context_class`."""

    obj: "Context"

    def __init__(self, *args: Any, **options: Any) -> None:
        """Pass everything to Typer, and take over the mistakes of the level above."""
        super().__init__(*args, **options)
        self.mistakes: list[Mistake] = []
        """The mistakes on this level, and on those above it."""
        if isinstance(self.parent, CommandLevel):
            self.mistakes += self.parent.mistakes
        self._lenient_parameters: dict[str, TyperParameter] = {}

    @property
    def command_name(self) -> str:
        """The name of the command with dots, such as `config.set`. It is empty for the tool."""
        return ".".join(self.command_path.split()[1:])

    def parameters(self, own_parameters: list[TyperParameter]) -> list[TyperParameter]:
        """Return the parameters to parse: those of the command, then those of every command."""
        parameters = [*own_parameters, *global_options()]
        return [self._lenient_parameters.get(param.name, param) for param in parameters]

    def ignore_value(self, parameter: TyperParameter) -> None:
        """Accept and ignore any value of this parameter from now on: its mistake is known."""
        lenient = copy(parameter)
        lenient.process_value = _return_none
        self._lenient_parameters[parameter.name] = lenient


def parse_leniently(
    level: CommandLevel,
    args: list[str],
    parse: Callable[[CommandLevel, list[str]], list[str]],
    describe_error: Callable[[typer.TyperException], Mistake],
) -> list[str]:
    """Parse the words of one level, and collect all mistakes in them, not only the first one.

    Typer stops at the first mistake. So parse again and again, each time without the mistakes that
    were found before, until Typer finds no other. `parse` is Typer's own method.

    Add the mistakes to `level.mistakes`. Return the words that belong to the next level.
    """
    words = args
    while True:
        try:
            # Typer's parser empties the list that it gets, so pass a copy.
            return parse(level, list(words))
        except typer.TyperException as typer_error:
            error = typer_error
        mistake = describe_error(error)
        if not _may_follow_from_another(mistake, level.mistakes):
            level.mistakes.append(mistake)

        parameter = getattr(error, "param", None)
        if parameter is not None:
            # An option or argument has a wrong value: accept any value the next time.
            level.ignore_value(parameter)
            continue
        position = position_of_option(mistake.param, words)
        if position is not None:
            # There is no such option: leave it out the next time.
            words = words[:position] + words[position + 1 :]
            continue
        # There are too many arguments. Typer checks this last, so there are no more mistakes.
        return []


def _return_none(ctx: Any, value: Any) -> None:
    """Replace a method of Typer's parameters that returns the value to use."""


def _may_follow_from_another(mistake: Mistake, others: list[Mistake]) -> bool:
    """Return whether the mistake disappears with another one.

    The value of an unknown option looks like an argument too many.
    """
    if mistake.code != "EXTRA_ARGUMENT":
        return False
    return any(other.code == "UNKNOWN_OPTION" for other in others)


def position_of_option(flag: str, args: list[str]) -> int | None:
    """Return the position of the word with this flag, or None if there is none."""
    is_short = len(flag) == 2
    for position, word in enumerate(args):
        if word == "--":
            return None
        if word.partition("=")[0] == flag:
            return position
        # Several short options can be one word: -x is in -qx too.
        if is_short and re.match(rf"-[^-]*{re.escape(flag[1])}", word):
            return position
    return None
