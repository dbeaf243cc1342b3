"""The options that every command takes, before or after its name; and --dry-run, of all that change something.

The former are parameters of every command and group, so that one parser sees them all: lifting them out of argv first
would misread `--message --json` and everything behind `--`. The innermost one given wins.
"""

from collections.abc import Callable, Mapping
from functools import cache
from inspect import Parameter, Signature
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.main import get_command

from .command_line import ColorName
from .completion import offering
from .contract.answer import FORMATS, Format, FormatName
from .contract.duration import parse_duration, parse_limit

if TYPE_CHECKING:
    from .context import Context


def format_in_arguments(args: list[str]) -> Format | None:
    """Return the format that a command line selects, even if the rest of it is wrong."""
    chosen: Format | None = None
    for position, word in enumerate(args):
        if word == "--":
            break
        previous = args[position - 1] if position > 0 else ""
        if word == "--json":
            chosen = "json"
        elif word == "--raw":
            chosen = "raw"
        elif previous == "--format":
            chosen = _format_named(word)
        elif word.startswith("--format="):
            chosen = _format_named(word.removeprefix("--format="))
        if chosen is not None:
            break
    return chosen


def _format_named(name: str) -> Format | None:
    """Return the format of this name, or None if there is none."""
    for known in FORMATS:
        if name == known:
            return known
    return None


class HelpRequested(Exception):
    """Not an answer: text for a person, which its argument makes for a width, bold or not."""

    def __init__(self, text: Callable[..., str]) -> None:
        super().__init__()
        self.text = text


def command_of(function: Callable[..., Any], kind: Any = None) -> Any:
    """The command that Typer makes of a function."""
    app = typer.Typer(add_completion=False, rich_markup_mode=None)
    app.command(cls=kind, add_help_option=False)(function)
    return get_command(app)


def parameters_of(annotations: Mapping[str, Any]) -> Any:
    """The parameters that Typer makes of annotations."""

    def function(**_values: Any) -> None: ...

    named = [
        Parameter(name, Parameter.KEYWORD_ONLY, default=None, annotation=annotations[name]) for name in annotations
    ]
    function.__signature__ = Signature(named)  # type: ignore[attr-defined]
    return command_of(function).params


@cache
def global_options() -> Any:
    return parameters_of(_every_command())


def describe(params: list[Any], hints: Mapping[str, Any]) -> list[dict[str, Any]]:
    """As programs and help read them. Imported when it is asked for: most calls describe nothing."""
    from .contract.manifest import describe_param

    return [describe_param(param, hints[param.name]) for param in params]


@cache
def described_options() -> list[dict[str, Any]]:
    return describe(global_options(), _every_command())


def strictly(check: Callable[[str], object]) -> Callable[..., Any]:
    """For `callback=`: `check` of contract/mistyped.py looks at every value that is given."""

    def checked(value: Any) -> Any:
        for text in value if isinstance(value, list) else [] if value is None else [value]:
            try:
                check(str(text))
            except ValueError as error:
                raise typer.BadParameter(str(error)) from error
        return value

    return checked


RawOption = Annotated[bool, typer.Option("--raw", help="Print the value as it is, and nothing else.")]
DryRunOption = Annotated[bool, typer.Option("--dry-run", help="Say what would change; change nothing.")]
AllowEmptyOption = Annotated[bool, typer.Option("--allow-empty", help="Let stdin be empty.")]


def take_given(ctx: typer.Context) -> dict[str, Any]:
    """Move the options that every command takes out of the parameters, and return those that were given."""
    given: dict[str, Any] = {}
    for name in [name for name in ctx.params if name in _every_command()]:
        value = ctx.params.pop(name)
        if value is not None:
            given |= {"format": "json"} if name == "json" else {name: value}
    return given


def _value(name: str, metavar: str, help: str, *other: str, check: Callable[[str], object] = str, **more: Any) -> Any:
    return Annotated[str, typer.Option(name, *other, metavar=metavar, help=help, callback=strictly(check), **more)]


@offering
def _sessions(_context: "Context") -> list[str]:
    from .places import session_root
    from .safety.session import list_sessions

    return [session.session_id for session in list_sessions(session_root())]


@cache
def _every_command() -> dict[str, Any]:
    """Made where a word may be an option: most calls have none."""
    return {
        "color": Annotated[ColorName, typer.Option("--color", help="When to print in color.")],
        "json": Annotated[bool, typer.Option("--json", help="Answer in one line of JSON.")],
        "format": Annotated[FormatName, typer.Option("--format", help="How to answer; text is for a terminal.")],
        "fields": _value("--fields", "NAME,...", "Only these of the data, such as tasks.id; JSON."),
        "quiet": Annotated[bool, typer.Option("--quiet", "-q", help="Print no progress and no notices on stderr.")],
        "verbose": Annotated[
            int, typer.Option("--verbose", "-v", count=True, help="Print on stderr what happens to locks.")
        ],
        "session_id": _value(
            "--session-id", "ID", "Keep outputs together with calls of the same id.", autocompletion=_sessions
        ),
        "cwd": _value("--cwd", "DIR", "Run as if started in this directory.", "-C"),
        "lock_timeout": _value("--lock-timeout", "DURATION", "The wait for locks: 0, 500ms, 5s.", check=parse_duration),
        "timeout": _value("--timeout", "DURATION", "Stop the call after this long: 30s, 5m.", check=parse_limit),
        "help": Annotated[bool, typer.Option("--help", "-h", help="Show this text.")],
    }


def whole_tool() -> dict[str, Any]:
    """Of the whole tool only. What the last two do is in completion.py."""
    return {
        "version": Annotated[bool, typer.Option("--version", "-V", help="Show the version.")],
        "show_completion": _value("--show-completion", "[SHELL]", "Print what makes bash, zsh or fish complete words."),
        "install_completion": _value("--install-completion", "[SHELL]", "Put it into the files of the shell."),
    }
