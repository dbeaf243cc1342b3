"""The pages about what all commands have in common."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ...commands.manifest import describe_shared
from ...contract.command_spec import ERRORS_OF_EVERY_COMMAND
from ...contract.errors import INTERRUPTED, ErrorKind
from ...contract.library_errors import kind_of, usual_hint
from ...environment import ENVIRONMENT
from ...help_topics import EXIT_CODES
from ...program import PROGRAM, env_variable
from ...settings.known import all_settings, full_help
from .command import Command, param_blocks
from .markdown import bullets, folded_json, page, table

_MOST_LISTED_COMMANDS = 12


def options_page() -> str:
    """Return the page about the options that every command has."""
    blocks = ["You can use these options with any command, before or after its name."]
    for option in describe_shared({}).options or []:
        blocks += param_blocks(option)
    # The page of a command has a heading "Options" above its options. Here, the title is enough.
    return page("Options of every command", [_one_level_up(block) for block in blocks])


def _one_level_up(block: str) -> str:
    return re.sub(r"^### ", "## ", block)


def settings_page() -> str:
    """Return the page about all settings."""
    blocks = [
        f"To change a setting, run `{PROGRAM} config set`. To see where the value of a setting "
        f"comes from, run `{PROGRAM} config explain`."
    ]
    for name, known in all_settings().items():
        blocks.append(f"## `{name}`")
        blocks.append(full_help(known))
        variable = env_variable(name)
        blocks.append(f"Default: `{known['default']}`. Variable: `{variable}`.")
    return page("Settings", blocks)


def environment_page() -> str:
    """Return the page about the environment variables, except those of settings."""
    blocks = [
        "The tool reads these environment variables. In addition, each "
        "[setting](settings.md) has a variable."
    ]
    for name, meaning in ENVIRONMENT.items():
        blocks.append(f"## `{name}`")
        blocks.append(meaning)
    return page("Environment variables", blocks)


def exit_codes_page() -> str:
    """Return the page about the exit codes."""
    rows = []
    for exit_code, meaning in EXIT_CODES.items():
        rows.append([str(int(exit_code)), exit_code.name, meaning])
    interrupted = ", ".join(str(exit_code) for exit_code in INTERRUPTED)
    by_signal = "SIGHUP, SIGINT, SIGQUIT or SIGTERM stopped the command."
    rows.append([interrupted, "INTERRUPTED", by_signal])
    blocks = [
        "The exit code tells you whether a command succeeded and, if not, what kind of problem "
        "there was. The exact [error](errors.md) is in the output.",
        table("exit code", "name", "meaning", rows=rows),
    ]
    return page("Exit codes", blocks)


def output_page() -> str:
    """Return the page about the JSON that every command prints."""
    blocks = [
        "When stdout is not a terminal, or with `--json`, a command prints one line of JSON:",
        bullets(
            [
                "`ok` is true if the exit code is 0, and false otherwise.",
                "`data` is the result. The page of each command describes what it contains.",
                "`error` is there only if `ok` is false. It has an [error code](errors.md), a "
                "message, and a hint in `suggestion`.",
                "`warnings` is a list, which is usually empty.",
                "`meta` describes the run, for example with the name of the command.",
            ]
        ),
        folded_json("JSON schema of every response", describe_shared({}).answer),
    ]
    return page("JSON output", blocks)


@dataclass(frozen=True)
class _Error:
    """An error code, and where it can happen."""

    kind: ErrorKind
    hint: str
    commands: list[Command]
    """The commands that can fail with it. Empty if every command can."""


def errors_page(commands: Sequence[Command]) -> str:
    """Return the page about all errors, sorted by their codes."""
    blocks = [
        "If a command fails, its JSON output contains one of these codes in `error.code`. In the "
        "text format, the code is in brackets at the end of the message. If it's worth "
        "trying again, `error.retry_after_ms` says how many milliseconds to wait first."
    ]
    for code, error in sorted(_all_errors(commands).items()):
        blocks.append(f"## `{code}`")
        blocks.append(error.kind.meaning)
        blocks.append(bullets(_facts(error)))
    return page("Errors", blocks)


def _all_errors(commands: Sequence[Command]) -> dict[str, _Error]:
    """Return each error by its code. Of two classes with the same code, the first one counts."""
    errors: dict[str, _Error] = {}
    for error_type in ERRORS_OF_EVERY_COMMAND:
        kind = kind_of(error_type)
        errors[kind.code] = _Error(kind, usual_hint(error_type), [])
    every_command = set(errors)
    for command in commands:
        for error_type in command.spec.own_error_types():
            kind = kind_of(error_type)
            if kind.code in every_command:
                continue
            error = errors.setdefault(kind.code, _Error(kind, usual_hint(error_type), []))
            if command not in error.commands:
                error.commands.append(command)
    return errors


def _facts(error: _Error) -> Iterator[str]:
    """Yield what to know about an error besides its meaning."""
    yield f"**What to do:** {_shown_hint(error.hint)}"
    if error.kind.retryable:
        yield "**Try again:** yes. The same command may succeed later."
    else:
        yield "**Try again:** no. The same command would fail again."
    yield f"**Exit code:** {int(error.kind.exit_status)}"
    yield f"**Commands:** {_shown_commands(error.commands)}"


def _shown_hint(template: str) -> str:
    """Return a hint with a placeholder such as KEY for each fact of the failure."""
    if not template:
        return "Follow the hint of the error, which depends on what happened."
    with_program = template.replace("{PROGRAM}", PROGRAM)
    return re.sub(r"\{(\w+)\}", lambda fact: fact[1].upper(), with_program)


def _shown_commands(commands: Sequence[Command]) -> str:
    if not commands:
        return "all"
    if len(commands) > _MOST_LISTED_COMMANDS:
        return f"{len(commands)} commands. The page of each command lists its errors."
    return ", ".join(command.link for command in commands)
