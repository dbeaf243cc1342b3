"""Parse one level of a command line, and tell the context what the level says.

See lenient_parsing.py for how all mistakes are found.
"""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Protocol

import typer

from .command_line import CommandLine
from .contract.command_spec import CommandSpec
from .contract.deprecation import find_deprecated_flags
from .contract.errors import Mistake
from .global_options import GLOBAL_OPTIONS, HelpRequested, described_options, take_global_options
from .lenient_parsing import CommandLevel, parse_leniently, position_of_option
from .usage_errors import describe_error

if TYPE_CHECKING:
    from .contract.help_page import Page

Parse = Callable[[CommandLevel, list[str]], list[str]]
"""The method `parse_args` of Typer's class for a command or a group."""


class ParsedCommand(Protocol):
    """What is needed of a command or a group to parse its level."""

    @property
    def spec(self) -> CommandSpec | None:
        """What the command promises. It is None for a group."""
        ...

    @property
    def hints(self) -> Mapping[str, Any]:
        """The annotations of its own parameters."""
        ...

    @property
    def described(self) -> list[dict[str, Any]]:
        """What the manifest says about its own parameters."""
        ...

    def page(self, level: CommandLevel) -> "Page":
        """Return its help page."""
        ...


def parse_level(
    command: ParsedCommand,
    level: CommandLevel,
    args: list[str],
    parse: Parse,
) -> list[str]:
    """Parse one level, and tell the context what is understood now. Return the words that are left.

    Raise HelpRequested if --help was given.
    """
    context = level.obj
    command_line = context.command_line._replace(command=level.command_name, spec=command.spec)
    # If the level has a mistake, the response names its command.
    context.set_command_line(command_line)

    def to_mistake(error: typer.TyperException) -> Mistake:
        return describe_error(error, [*command.described, *described_options()])

    rest = parse_leniently(level, args, parse, to_mistake)
    given = take_global_options(level.params)
    asks_for_help = given.pop("help", False)
    context.set_command_line(_with_options_of_level(command_line, level.params, given))
    if asks_for_help and not level.resilient_parsing:
        raise HelpRequested(command.page(level).text)
    own_words = args[: len(args) - len(rest)]
    _warn_of_deprecated_flags(level, own_words, command.hints)
    return rest


def _with_options_of_level(
    command_line: CommandLine,
    params: Mapping[str, Any],
    given: Mapping[str, Any],
) -> CommandLine:
    """Return the command line with what one level says.

    `given` has the global options that were given on this level, and `params` the parameters of the
    command itself.
    """
    options = dict(given)
    # A format that was chosen, also before the name of the command, wins over --raw.
    if params.get("raw") and command_line.options.format is None:
        options.setdefault("format", "raw")
    with_options = command_line.with_options(options)
    return with_options._replace(dry_run=bool(params.get("dry_run")))


def _warn_of_deprecated_flags(
    level: CommandLevel,
    words: list[str],
    hints: Mapping[str, Any],
) -> None:
    annotations = [*hints.values(), *GLOBAL_OPTIONS.values()]
    for flag, instead in find_deprecated_flags(annotations).items():
        if position_of_option(flag, words) is not None:
            level.obj.warn("DEPRECATED", f"{flag} is deprecated. {instead}")
