"""The help topics, such as `tool help exit-codes`. They are built from what the code says."""

import signal
from collections.abc import Callable

from .contract.errors import INTERRUPTED, SIGNAL_BASE, ExitStatus
from .contract.help_page import Item, ItemSection, Page
from .contract.response import FORMATS, Format
from .environment import ENVIRONMENT
from .program import PROGRAM, env_variable
from .settings.known import all_settings, full_help

EXIT_CODES = {
    ExitStatus.OK: "The command succeeded.",
    ExitStatus.INTERNAL: "The command hit a bug, or a disk or device failed.",
    ExitStatus.USAGE: "The command line or some other input is invalid. Nothing was changed.",
    ExitStatus.PARTIAL: "Only part of the work succeeded. The output shows which part.",
    ExitStatus.PRECONDITION: "Something that the command needs is missing, such as a workspace.",
    ExitStatus.NOT_FOUND: "Something that you named does not exist, such as a key or a file.",
    ExitStatus.CONFLICT: "Something already exists, or has changed in the meantime.",
    ExitStatus.PERMISSION: "You do not have permission to read or write a file.",
    ExitStatus.AUTH: "A server rejected your login.",
    ExitStatus.TIMEOUT: "The command ran longer than --timeout allows.",
    ExitStatus.UNAVAILABLE: "A server cannot be reached. Try again later.",
    ExitStatus.LOCK_HELD: "Another process holds a lock that the command needs. Try again later.",
}
"""What each exit code means, in help, in the man pages and in the reference."""

FORMAT_MEANINGS: dict[Format, str] = {
    "json": "One line of JSON. This is the default when stdout is not a terminal.",
    "jsonl": "One line of JSON for each event as it happens, and then the same line as json.",
    "text": "Text for people to read. This is the default on a terminal. Errors go to stderr.",
}


def _exit_codes_page() -> Page:
    rows = [Item(str(code.value), f"{code.name}: {EXIT_CODES[code]}") for code in ExitStatus]
    for code in INTERRUPTED:
        signal_name = signal.Signals(code - SIGNAL_BASE).name
        meaning = f"INTERRUPTED: The command was stopped by {signal_name}."
        rows.append(Item(str(code), meaning))
    return Page(
        usage="",
        about="The exit code tells you whether a command succeeded and, if not, why it failed.",
        sections=[ItemSection("Exit codes", rows)],
        footer=(
            "JSON output has more details: `error.code` names the exact error, and "
            "`error.retryable` tells you whether it is worth trying again.",
            f"To see which errors a command can return, run `{PROGRAM} manifest COMMAND`.",
        ),
    )


def _environment_page() -> Page:
    variables = [Item(name, meaning) for name, meaning in ENVIRONMENT.items()]
    settings = []
    for name, known in all_settings().items():
        settings.append(Item(env_variable(name), full_help(known)))
    return Page(
        usage="",
        about="Use environment variables to configure every command that you run in a shell.\n\n"
        "Command-line options override variables, and variables override settings files.",
        sections=[ItemSection("Variables", variables), ItemSection("Settings", settings)],
        footer=(
            "To find out where the value of a setting comes from, "
            f"run `{PROGRAM} config explain KEY`.",
        ),
    )


def _output_page() -> Page:
    formats = [Item(name, FORMAT_MEANINGS[name]) for name in FORMATS]
    members = [
        Item("ok", "True if the exit code is 0, and false otherwise."),
        Item("error", "What went wrong: code, message, suggestion, retryable, exit_code, context."),
        Item("data", "The result of the command, or null if there is none."),
        Item("warnings", "A list of warnings, each with a code and a message."),
        Item("meta", "Details about this run, such as the command, the exit code and the time."),
    ]
    return Page(
        usage="",
        about="Each command prints its result to stdout. Progress and notices go to stderr.",
        sections=[
            ItemSection("Formats, selected with --format", formats),
            ItemSection("Fields of the JSON output", members),
        ],
        footer=(
            "To get only some of the fields in `data`, pass --fields. "
            "Some commands also have --raw, "
            "which prints a single value without any JSON around it.",
            f"To see which fields `data` has, run `{PROGRAM} manifest COMMAND`.",
            "Help and --version always print text, whatever the format is.",
        ),
    )


TOPICS: dict[str, Callable[[], Page]] = {
    "exit-codes": _exit_codes_page,
    "environment": _environment_page,
    "output": _output_page,
}
"""The functions that build the page of each topic, by its name."""
