"""Write docs/PART/reference.md for the kit and each part: commands, options, settings and errors.

Everything is read from the code, so a reference cannot disagree with it.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..app import root_command
from ..commands.manifest import describe, describe_shared, find_commands
from ..contract.command_spec import ERRORS_OF_EVERY_COMMAND, CommandSpec
from ..contract.errors import INTERRUPTED, ErrorKind
from ..contract.help_page import option_item
from ..contract.library_errors import kind_of
from ..contract.manifest import describe_errors
from ..help_topics import EXIT_CODES
from ..part_discovery import offered
from ..program import PROGRAM, env_variable
from ..project import ROOT
from ..settings.known import all_settings, full_help

_DOCS = ROOT / "docs"
_KIT = "kit"
_HEAD = """# {title}

<!-- Generated from the commands by `make pages`; do not edit. -->

"""
_ABOUT_KIT = (
    "This page describes every command in detail, after the options, exit codes, environment "
    "variables and errors that all commands have in common. If you need the same information as "
    f"JSON, run `{PROGRAM} manifest`."
)
_OF_EVERY_COMMAND = "You can use these options with any command, before or after its name:"
_ABOUT_ERRORS = (
    "Any command can fail with one of these errors. Many commands also have errors of their own, "
    "which you find in the section of the command."
)
_ABOUT_OWN_ERRORS = (
    "Each of these errors can only happen with certain commands, and the section of a command "
    "lists the ones to expect. If the column *retry* says yes, the same command may succeed a bit "
    "later. Wait for the number of milliseconds in `error.retry_after_ms` before you run it again."
)

Described = dict[str, Any]
"""A command, an option or an argument, as the manifest describes it."""


@dataclass(frozen=True)
class _Command:
    """A command, as the code and the manifest describe it."""

    spec: CommandSpec
    described: Described


def pages() -> dict[Path, str]:
    """Return the content of each page, by its path. A part without a folder in docs/ has none."""
    commands_by_part: dict[str, list[_Command]] = {}
    for name, command in find_commands(root_command()):
        # For example sampletool.state.commands.task.claim
        part = command.callback.__module__.split(".")[1]
        described = _Command(spec=command.spec, described=describe(name, command))
        commands_by_part.setdefault(part, []).append(described)

    contents = {}
    for part, commands in commands_by_part.items():
        directory = _DOCS / part
        if directory.is_dir():
            contents[directory / "reference.md"] = _page(part, commands)
    return contents


def _page(part: str, commands: Sequence[_Command]) -> str:
    """Return the content of a page."""
    title = "Reference" if part == _KIT else f"Reference: {part}"
    blocks: list[str] = []
    if part == _KIT:
        blocks += _of_all_commands()
    blocks += _settings(part)
    for command in commands:
        blocks += _command(command)
    blocks += _errors(commands)
    return _HEAD.format(title=title) + "\n\n".join(blocks) + "\n"


def _of_all_commands() -> Iterator[str]:
    """Yield what is the same for all commands."""
    shared = describe_shared({})
    yield _ABOUT_KIT
    yield _OF_EVERY_COMMAND
    yield _params(shared.options or [])

    yield "## Exit codes"
    yield "The exit code tells you whether a command succeeded and, if not, what went wrong:"
    rows = []
    for exit_code, meaning in EXIT_CODES.items():
        rows.append([str(int(exit_code)), exit_code.name, meaning])
    interrupted = ", ".join(str(exit_code) for exit_code in INTERRUPTED)
    by_signal = "SIGHUP, SIGINT, SIGQUIT or SIGTERM stopped the command."
    rows.append([interrupted, "INTERRUPTED", by_signal])
    yield _table("exit code", "name", "meaning", rows=rows)

    yield "## Environment variables"
    rows = []
    for name, meaning in (shared.environment or {}).items():
        rows.append([f"`{name}`", meaning])
    yield _table("variable", "meaning", rows=rows)

    yield "## Errors of every command"
    yield _ABOUT_ERRORS
    yield _error_table(kind_of(error_type) for error_type in ERRORS_OF_EVERY_COMMAND)


def _settings(part: str) -> Iterator[str]:
    """Yield the settings of a part. Settings that no part defines are those of the kit."""
    part_of_setting = {}
    for module in offered("settings"):
        for name in module.SETTINGS:
            part_of_setting[name] = module.__name__.split(".")[1]
    rows = []
    for name, known in all_settings().items():
        if part_of_setting.get(name, _KIT) == part:
            default = f"`{known['default']}`"
            rows.append([f"`{name}`", f"`{env_variable(name)}`", default, full_help(known)])
    if rows:
        yield "## Settings"
        yield _table("setting", "variable", "default", "meaning", rows=rows)


def _command(command: _Command) -> Iterator[str]:
    """Yield the section of one command."""
    described = command.described
    yield f"## `{PROGRAM} {described['command']}`"
    yield f"{described['summary']} {described['help']}".strip()
    yield f"```text\n{described['usage']}\n```"
    params = [*described["arguments"], *described["options"]]
    if params:
        yield _params(params)
    yield "\n".join(f"* {fact}" for fact in _facts(command))
    examples = "\n".join(described["examples"])
    yield f"```sh\n{examples}\n```"


def _facts(command: _Command) -> Iterator[str]:
    """Yield what to know about a command besides its options, each as an item of a list."""
    described = command.described
    yield f"**Changes:** {described['effect']}"
    if described["reads"]:
        yield f"**Depends on:** {', '.join(described['reads'])}"
    if described["destroys"]:
        yield f"**Cannot be undone:** {described['destroys'].rstrip('.')}"
    if described["locks"]:
        locks = [f"`{lock['lock']}` ({_wait(lock['waits'])})" for lock in described["locks"]]
        yield f"**Locks:** {', '.join(locks)}"
    if not described["idempotent"]:
        yield "**Not idempotent:** every run makes another change"
    members = described["data"].get("properties", {})
    if members:
        yield f"**Output:** {', '.join(f'`{name}`' for name in members)}"
    errors = []
    for kind in command.spec.own_errors():
        errors.append(f"`{kind.code}` (exit code {int(kind.exit_status)})")
    if errors:
        yield f"**Errors:** {', '.join(errors)}"


def _wait(duration: str) -> str:
    if duration in ("0", "0s", "0ms"):
        return "fails right away if it is held"
    return f"waits up to {duration}"


def _params(params: Iterable[Described]) -> str:
    """Return a table of options and arguments. A column that would be empty is left out."""
    rows = []
    for param in params:
        item = option_item({"required": False, **param})
        rows.append([f"`{item.name}`", item.meaning, _default(param)])
    if any(default for _, _, default in rows):
        return _table("option or argument", "what it does", "default", rows=rows)
    return _table("option or argument", "what it does", rows=[row[:2] for row in rows])


def _default(param: Described) -> str:
    """Return the default of an option, the numbers that it accepts, and its former names."""
    remarks = []
    if param.get("required"):
        remarks.append("required")
    if "shown_default" in param:
        remarks.append(param["shown_default"])
    elif "default" in param:
        remarks.append(f"`{param['default']}`")
    minimum = param.get("minimum")
    maximum = param.get("maximum")
    if minimum is not None and maximum is not None:
        remarks.append(f"{minimum} to {maximum}")
    elif minimum is not None:
        remarks.append(f"at least {minimum}")
    for flag in param.get("deprecated_flags", ()):
        remarks.append(f"`{flag}` is deprecated")
    return "; ".join(remarks)


def _errors(commands: Iterable[_Command]) -> Iterator[str]:
    """Yield the errors that only some commands have."""
    kinds: list[ErrorKind] = []
    for command in commands:
        kinds += command.spec.own_errors()
    if kinds:
        yield "## Errors of these commands"
        yield _ABOUT_OWN_ERRORS
        yield _error_table(kinds)


def _error_table(kinds: Iterable[ErrorKind]) -> str:
    rows = []
    for code, error in describe_errors(kinds).items():
        retry = "yes" if error["retryable"] else "no"
        exit_code = str(int(error["exit_status"]))
        rows.append([f"`{code}`", exit_code, retry, error["meaning"]])
    return _table("code", "exit code", "retry", "meaning", rows=rows)


def _table(*names: str, rows: Iterable[Sequence[str]]) -> str:
    """Return a table of Markdown. `names` are those of the columns."""
    lines = []
    for cells in (names, ["---"] * len(names), *rows):
        escaped = [cell.replace("|", "\\|") for cell in cells]
        lines.append(f"| {' | '.join(escaped)} |")
    return "\n".join(lines)
