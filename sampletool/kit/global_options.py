"""The global options, which every command takes, and options that several commands share.

Global options come before or after the name of the command. They are parameters of every command
and of every group, so Typer's parser finds them wherever they are. Taking them out of the command
line first would misread `--message --json`, and everything after `--`. If an option is given more
than once, the last one wins.
"""

from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING, Annotated, Any, get_args

import typer

from .command_line import ColorName
from .completion import offering
from .contract.duration import parse_duration, parse_limit
from .contract.response import FORMATS, Format, FormatName
from .typer_parameters import TyperParameter, describe, parameters_of

if TYPE_CHECKING:
    from .context import Context

COLORS: tuple[ColorName, ...] = get_args(ColorName)


class HelpRequested(Exception):
    """A request for help or for the version, which ends the command. It is not an error.

    Its argument returns the text for a width in columns, with or without bold headings.
    """

    def __init__(self, text: Callable[[int, bool], str]) -> None:
        """Take the function that returns the text."""
        super().__init__()
        self.text = text


def checked_by(check: Callable[[str], object]) -> Callable[[Any], Any]:
    """Return a function for `callback=`, which calls `check` with each value that is given.

    `check` raises ValueError, with a message for the user, if the value is wrong.
    """

    def check_values(value: Any) -> Any:
        if value is None:
            return None
        values = value if isinstance(value, list) else [value]
        for one_value in values:
            try:
                check(str(one_value))
            except ValueError as error:
                raise typer.BadParameter(str(error)) from error
        return value

    return check_values


# Options that many commands share

RawOption = Annotated[
    bool,
    typer.Option("--raw", help="Print only the value, without any JSON or quotes around it."),
]
MaxCharsOption = Annotated[
    int | None,
    typer.Option(
        "--max-chars",
        min=1,
        metavar="N",
        help="Return at most N characters of a value, and its length.",
        show_default="all",
    ),
]
DryRunOption = Annotated[
    bool,
    typer.Option("--dry-run", help="Show what would change, without changing anything."),
]
AllowEmptyOption = Annotated[
    bool,
    typer.Option("--allow-empty", help="Accept an empty value from stdin."),
]


# Options that every command takes


@offering
def _session_ids(_context: "Context") -> list[str]:
    # Only completion needs these imports, which take several milliseconds.
    from .places import session_root
    from .safety.session import list_sessions

    return [session.session_id for session in list_sessions(session_root())]


GLOBAL_OPTIONS: dict[str, Any] = {
    "json": Annotated[
        bool,
        typer.Option("--json", help="Print the output as one line of JSON. Same as --format json."),
    ],
    "format": Annotated[
        FormatName,
        typer.Option(
            "--format",
            help="Choose the output format.",
            show_default="text on a terminal, otherwise json",
        ),
    ],
    "fields": Annotated[
        str,
        typer.Option(
            "--fields",
            metavar="NAME,...",
            help="Include only these fields in JSON output, for example `tasks.id`.",
        ),
    ],
    "color": Annotated[
        ColorName,
        typer.Option(
            "--color",
            help="Choose when to use colors.",
            show_default="auto",
        ),
    ],
    "quiet": Annotated[
        bool,
        typer.Option(
            "--quiet",
            "-q",
            help="Hide progress and notices. In text format, also hide the result of a change.",
        ),
    ],
    "verbose": Annotated[
        int,
        typer.Option(
            "--verbose",
            "-v",
            count=True,
            help="Show when locks are taken and released, and add the directory to JSON "
            "output. With -vv, also show where each setting comes from.",
        ),
    ],
    "session_id": Annotated[
        str,
        typer.Option(
            "--session-id",
            metavar="ID",
            help="Store the output files of all commands with this ID in the same directory.",
            autocompletion=_session_ids,
            show_default="a new directory for each command",
        ),
    ],
    "cwd": Annotated[
        str,
        typer.Option(
            "--cwd",
            "-C",
            metavar="DIR",
            help="Change to this directory before running the command.",
        ),
    ],
    "lock_timeout": Annotated[
        str,
        typer.Option(
            "--lock-timeout",
            metavar="DURATION",
            help="Wait up to this long for a lock, for example 0, 500ms or 5s.",
            callback=checked_by(parse_duration),
            show_default="depends on the command",
        ),
    ],
    "timeout": Annotated[
        str,
        typer.Option(
            "--timeout",
            metavar="DURATION",
            help="Stop the command if it runs longer than this, for example 30s or 5m.",
            callback=checked_by(parse_limit),
            show_default="no limit",
        ),
    ],
    "help": Annotated[bool, typer.Option("--help", "-h", help="Show this help and exit.")],
}
"""The annotation of each global option, by the name of its parameter."""


@cache
def global_options() -> list[TyperParameter]:
    """Return the parameters of Typer for the global options. They are the same on every level."""
    return parameters_of(GLOBAL_OPTIONS)


@cache
def described_options() -> list[dict[str, Any]]:
    """Return the descriptions of the global options, for the manifest and the help."""
    return describe(global_options(), GLOBAL_OPTIONS)


def take_global_options(parsed: dict[str, Any]) -> dict[str, Any]:
    """Remove the global options from the parsed parameters. Return those that were given."""
    given: dict[str, Any] = {}
    # Typer has put them in the order of the command line. So the last of --json and --format wins.
    for name in list(parsed):
        if name not in GLOBAL_OPTIONS:
            continue
        value = parsed.pop(name)
        if value is None:
            continue
        if name == "json":
            given["format"] = "json"
        else:
            given[name] = value
    return given


def whole_tool() -> dict[str, Any]:
    """Return the annotations of the options that only the tool itself takes, not its commands.

    The last two only appear in the help: app.py handles them before parsing (see completion.py).
    """
    return {
        "version": Annotated[
            bool,
            typer.Option("--version", "-V", help="Show the version and exit."),
        ],
        "show_completion": Annotated[
            str,
            typer.Option(
                "--show-completion",
                metavar="[SHELL]",
                help="Print a completion script for bash, zsh or fish.",
            ),
        ],
        "install_completion": Annotated[
            str,
            typer.Option(
                "--install-completion",
                metavar="[SHELL]",
                help="Install completion for bash, zsh or fish.",
            ),
        ],
    }


# Options of a command line that was not parsed to its end


def format_in_arguments(args: list[str]) -> Format | None:
    """Return the format that a command line selects, even if the rest of it is wrong."""
    for word, value in _words_before_dashes(args):
        if word == "--json":
            return "json"
        if word == "--raw":
            return "raw"
        if word == "--format":
            for known_format in FORMATS:
                if value == known_format:
                    return known_format
    return None


def color_in_arguments(args: list[str]) -> ColorName | None:
    """Return the value of --color in a command line, even if the rest of it is wrong."""
    for word, value in _words_before_dashes(args):
        if word == "--color":
            for known_color in COLORS:
                if value == known_color:
                    return known_color
    return None


def _words_before_dashes(args: list[str]) -> list[tuple[str, str]]:
    """Return each word before `--`, and its value if it is an option that takes one."""
    words = []
    for position, word in enumerate(args):
        if word == "--":
            break
        name, equals_sign, value = word.partition("=")
        if not equals_sign:
            value = "".join(args[position + 1 : position + 2])
        words.append((name, value))
    return words
