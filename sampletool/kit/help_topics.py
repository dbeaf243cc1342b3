"""The help topics, such as `tool help exit-codes`. They are built from what the code says."""

from collections.abc import Callable

from .contract.errors import INTERRUPTED, SIGNAL_BASE, ExitStatus
from .contract.help_page import Item, ItemSection, Page
from .contract.response import FORMATS, Format
from .environment import ENVIRONMENT
from .program import PROGRAM, env_variable
from .settings.known import all_settings

EXIT_CODES = {
    ExitStatus.OK: "The command succeeded.",
    ExitStatus.INTERNAL: "The tool has a bug, or a disk or a device failed.",
    ExitStatus.USAGE: "The command line or another input is wrong. Nothing was changed.",
    ExitStatus.PARTIAL: "Only some of the work succeeded. The output says which.",
    ExitStatus.PRECONDITION: "Something is missing, for example a workspace or an extra.",
    ExitStatus.NOT_FOUND: "The thing that you named does not exist.",
    ExitStatus.CONFLICT: "Something was changed meanwhile, or exists already.",
    ExitStatus.PERMISSION: "You are not allowed to read or write a file.",
    ExitStatus.AUTH: "A server refused the login.",
    ExitStatus.TIMEOUT: "The time limit of --timeout has passed.",
    ExitStatus.UNAVAILABLE: "A server is unreachable. Try again later.",
    ExitStatus.LOCK_HELD: "Another process holds the lock. Try again later.",
}
"""What each exit code means."""

FORMAT_MEANINGS: dict[Format, str] = {
    "json": "One line of JSON. This is the default if stdout is not a terminal.",
    "jsonl": "Lines of JSON: first events while the command runs, then the same line as json.",
    "text": "Text for people. This is the default on a terminal. Errors go to stderr.",
}


def _exit_codes_page() -> Page:
    rows = [Item(str(code.value), f"{code.name}: {EXIT_CODES[code]}") for code in ExitStatus]
    for code in INTERRUPTED:
        meaning = f"INTERRUPTED: The command was stopped by signal {code - SIGNAL_BASE}."
        rows.append(Item(str(code), meaning))
    return Page(
        usage="",
        about="The exit code says whether a command succeeded, and why it failed.",
        sections=[ItemSection("Exit codes", rows)],
        footer=(
            "In JSON output, `error.code` is more precise, and `error.retryable` is true if a retry can succeed.",
            f"To see which exit codes a command has, run `{PROGRAM} manifest COMMAND`.",
        ),
    )


def _environment_page() -> Page:
    variables = [Item(name, meaning) for name, meaning in ENVIRONMENT.items()]
    settings = [Item(env_variable(name), known["help"]) for name, known in all_settings().items()]
    return Page(
        usage="",
        about="Environment variables apply to every command that you start.\n\n"
        "An option wins over a variable, and a variable wins over the settings files.",
        sections=[ItemSection("Variables", variables), ItemSection("Settings", settings)],
        footer=(f"To see where a setting comes from, run `{PROGRAM} config explain KEY`.",),
    )


def _output_page() -> Page:
    formats = [Item(name, FORMAT_MEANINGS[name]) for name in FORMATS]
    members = [
        Item("ok", "Whether the exit code is 0."),
        Item("error", "After a failure: code, message, suggestion, retryable, exit_code, context."),
        Item("data", "The result, or null."),
        Item("warnings", "A list of objects with a code and a message."),
        Item("meta", "About the run: the command, the exit code, the time, the versions."),
    ]
    return Page(
        usage="",
        about="Each command prints one response to stdout. Progress and notices go to stderr.",
        sections=[
            ItemSection("Formats, selected with --format", formats),
            ItemSection("Members of a JSON response", members),
        ],
        footer=(
            "To get only some fields of `data`, pass --fields. To print a single value without "
            "JSON around it, pass --raw to a command that has this option.",
            f"The schema of the data is in `{PROGRAM} manifest COMMAND`.",
        ),
    )


TOPICS: dict[str, Callable[[], Page]] = {
    "exit-codes": _exit_codes_page,
    "environment": _environment_page,
    "output": _output_page,
}
"""The functions that build the page of each topic, by its name."""
