"""Build the man pages from the same descriptions of the commands that `manifest` prints.

So a page cannot disagree with its command. All pages are in section 1. The page of the whole tool
describes what the commands have in common, and each other page refers to it.
"""

import json
import os
import time
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from ..app import root_command, run_in_process
from ..command_folder import CommandFolder
from ..commands.manifest import describe, find_commands
from ..contract.duration import say_duration
from ..contract.errors import INTERRUPTED, SIGNAL_BASE, ExitStatus
from ..help_topics import EXIT_CODES
from ..program import (
    PACKAGE,
    PROGRAM,
    WORKSPACE_DIRECTORY,
    WORKSPACE_FILE,
    __version__,
    env_variable,
)
from ..safety.signals import Signals
from .roff import RoffPage, bold, escape, italic, with_bold_code, with_italic_placeholders

_FILES = {
    WORKSPACE_FILE: (
        "The settings of a workspace. The tool looks for this file in the current directory, and "
        "then in the directories above it."
    ),
    f"{WORKSPACE_DIRECTORY}/": "The locks and the temporary files of a workspace.",
    f"~/.config/{PACKAGE}/config.toml": (
        f"Your personal settings. `{env_variable('CONFIG_DIR')}` names another directory for this "
        "file, and so does `XDG_CONFIG_HOME`."
    ),
    f"~/.local/state/{PACKAGE}/": (
        f"The log of commands, and what has no workspace. `{env_variable('STATE_DIR')}` names "
        "another directory, and so does `XDG_STATE_HOME`."
    ),
    f"/tmp/{PROGRAM}-UID/": (  # noqa: S108 (only shown)
        "The sessions of a user. `TMPDIR` names another directory than `/tmp`."
    ),
}
"""The files of the whole tool. On macOS, the third and the fourth are in `~/Library`."""

_TOOL_EXAMPLES = (
    f"{PROGRAM} help config set",
    f"{PROGRAM} config list",
    f"{PROGRAM} manifest config set",
)

_FIRST_COMMANDS = ("config explain", "doctor", "manifest")
"""The commands to know first."""

_SETTINGS_FILES = (WORKSPACE_FILE, f"~/.config/{PACKAGE}/config.toml")
"""The files that every command reads."""


@dataclass(frozen=True)
class DocumentedCommand:
    """A command, as its man page describes it."""

    name: str
    """For example `config set`."""
    paragraphs: list[str]
    """The help. The first paragraph is a summary, in one line."""
    manifest: dict[str, Any]

    @property
    def page_name(self) -> str:
        return _page_name(self.name)

    @property
    def summary(self) -> str:
        return self.paragraphs[0].removesuffix(".")

    @property
    def group(self) -> str:
        """The first word of the name, which related commands have in common."""
        return self.name.partition(" ")[0]


def build_man_pages() -> dict[str, str]:
    """Return the source of each man page, by the name of its file."""
    folder = root_command()
    commands = []
    for name, command in find_commands(folder):
        commands.append(
            DocumentedCommand(
                name=name,
                paragraphs=_paragraphs(command.help),
                manifest=describe(name, command),
            )
        )
    pages = [_tool_page(folder, commands)]
    for each in commands:
        pages.append(command_page(each, commands))
    return {f"{page.name}.1": page.render() for page in pages}


def _page_name(command: str) -> str:
    return f"{PROGRAM} {command}".replace(" ", "-")


def _new_page(name: str) -> RoffPage:
    # Tools that build reproducible packages set this variable, instead of the time of the build.
    build_time = float(os.environ.get("SOURCE_DATE_EPOCH", time.time()))
    return RoffPage(
        name=name,
        date=time.strftime("%Y-%m-%d", time.gmtime(build_time)),
        source=f"{PROGRAM} {__version__}",
    )


def _paragraphs(help_text: str | None) -> list[str]:
    """Return the paragraphs of a help text. The first line is one, whatever follows it."""
    if not help_text:
        return [""]
    summary, _, details = help_text.partition("\n")
    paragraphs = [summary]
    for paragraph in details.split("\n\n"):
        if paragraph.strip():
            paragraphs.append(paragraph)
    return paragraphs


# The page of a command


def command_page(command: DocumentedCommand, all_commands: list[DocumentedCommand]) -> RoffPage:
    """Return the page of a command. It refers to the related ones among all commands."""
    page = _new_page(command.page_name)
    manifest = command.manifest

    page.heading("NAME")
    page.paragraph(rf"{escape(command.page_name)} \- {escape(command.summary)}")

    page.heading("SYNOPSIS")
    prefix = f"{PROGRAM} {command.name}"
    arguments = manifest["usage"].removeprefix(prefix)
    page.paragraph(bold(prefix) + with_italic_placeholders(arguments))

    _add_description(page, command)
    _add_parameters(page, manifest)
    _add_exit_status(page, manifest["errors"])
    _add_environment(page, manifest["options"])

    page.heading("FILES")
    for path in _SETTINGS_FILES:
        _add_file(page, path)
    page.paragraph(f"{_reference(PROGRAM)} describes all files of the tool.")

    page.heading("EXAMPLES")
    page.add_examples([escape(example) for example in manifest["examples"]])

    page.heading("SEE ALSO")
    related = [_reference(PROGRAM)]
    for other in all_commands:
        if other.group == command.group and other != command:
            related.append(_reference(other.page_name))
    page.paragraph(", ".join(related))
    return page


def _add_description(page: RoffPage, command: DocumentedCommand) -> None:
    page.heading("DESCRIPTION")
    for paragraph in command.paragraphs:
        page.paragraph(with_bold_code(paragraph))
    if command.manifest["destroys"]:
        page.paragraph(f"Data that is lost: {with_bold_code(command.manifest['destroys'])}")
    if command.manifest["locks"]:
        page.paragraph(f"Locks: {escape(_describe_locks(command.manifest['locks']))}.")


def _add_parameters(page: RoffPage, manifest: dict[str, Any]) -> None:
    """Add the arguments, if there are any, and the options of a command."""
    if manifest["arguments"]:
        page.heading("ARGUMENTS")
    for argument in manifest["arguments"]:
        metavar = with_italic_placeholders(argument["metavar"])
        page.item(metavar, [_describe_parameter(argument)])

    page.heading("OPTIONS")
    for option in manifest["options"]:
        _add_option(page, option)
    page.paragraph(f"{_reference(PROGRAM)} describes the options that every command takes.")


def _describe_locks(locks: list[dict[str, str]]) -> str:
    """Return the names of the locks, each with how long the command waits for it."""
    descriptions = []
    for lock in locks:
        if lock["waits"] == say_duration(0):
            descriptions.append(f"{lock['lock']} (does not wait)")
        else:
            descriptions.append(f"{lock['lock']} (waits up to {lock['waits']})")
    return ", ".join(descriptions)


def _add_exit_status(page: RoffPage, errors: Mapping[str, dict[str, Any]]) -> None:
    """Add the exit codes of a command, each with the errors that cause it."""
    page.heading("EXIT STATUS")
    page.item("0", [EXIT_CODES[ExitStatus.OK]])
    meanings_by_exit_code: dict[int, list[str]] = defaultdict(list)
    for code, facts in errors.items():
        meaning = f"{bold(code)}: {with_bold_code(facts['meaning'])}"
        meanings_by_exit_code[facts["exit_status"]].append(meaning)
    for exit_code, meanings in sorted(meanings_by_exit_code.items()):
        if exit_code in INTERRUPTED:
            page.item(_interrupted_exit_codes(), meanings)
        else:
            page.item(str(exit_code), meanings)
    page.paragraph(f"{_reference(PROGRAM)} lists all exit codes.")


def _add_environment(page: RoffPage, options: list[dict[str, Any]]) -> None:
    """Add the variables that have the same effect as an option of the command."""
    page.heading("ENVIRONMENT")
    for option in options:
        if "variable" in option:
            flag = max(option["flags"], key=len)
            page.item(bold(option["variable"]), [f"The value of {bold(flag)}, if it is not given."])
    page.paragraph(f"{_reference(PROGRAM)} describes the variables that every command reads.")


# The page of the whole tool


def _tool_page(folder: CommandFolder, commands: list[DocumentedCommand]) -> RoffPage:
    page = _new_page(PROGRAM)
    paragraphs = _paragraphs(folder.help)
    shared = _shared_facts()

    page.heading("NAME")
    page.paragraph(rf"{escape(PROGRAM)} \- {escape(paragraphs[0].removesuffix('.'))}")

    page.heading("SYNOPSIS")
    page.paragraph(bold(PROGRAM) + with_italic_placeholders(" [OPTIONS] COMMAND [ARGS]..."))

    page.heading("DESCRIPTION")
    for paragraph in paragraphs:
        page.paragraph(with_bold_code(paragraph))
    page.paragraph(
        f"Each command has a page of its own. {bold(f'{PROGRAM} help')} {italic('COMMAND')} prints "
        "a shorter description."
    )

    page.heading("COMMANDS")
    for command in commands:
        page.item(_reference(command.page_name), [with_bold_code(f"{command.summary}.")])

    page.heading("OPTIONS")
    page.paragraph("Every command takes these options, before or after its name:")
    for option in shared["options"]:
        _add_option(page, option)
    page.paragraph("These options are for the tool without a command:")
    for option in folder.described:
        _add_option(page, option)

    page.heading("EXIT STATUS")
    for exit_code, meaning in EXIT_CODES.items():
        page.item(str(exit_code.value), [with_bold_code(meaning)])
    page.item(
        _interrupted_exit_codes(),
        [f"A signal ended the command. The exit code is {SIGNAL_BASE} plus its number."],
    )

    page.heading("ENVIRONMENT")
    for name, meaning in _variables(shared):
        page.item(bold(name), [with_bold_code(meaning)])

    page.heading("FILES")
    for path in _FILES:
        _add_file(page, path)

    page.heading("EXAMPLES")
    page.add_examples([escape(example) for example in _TOOL_EXAMPLES])

    page.heading("SEE ALSO")
    related = [_reference(_page_name(name)) for name in _FIRST_COMMANDS]
    page.paragraph(", ".join(related))
    return page


def _shared_facts() -> dict[str, Any]:
    """Return what `manifest --schema` prints: what the commands have in common."""
    response = json.loads(run_in_process(["manifest", "--schema", "--json"], Signals()))
    facts: dict[str, Any] = response["data"]
    return facts


def _variables(shared: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield the name and the meaning of each variable that the tool reads, sorted by name."""
    meanings: dict[str, str] = dict(shared["environment"])
    for setting in shared["settings"].values():
        default = setting["default"]
        meanings[setting["environment"]] = f"{setting['help']} The default is `{default}`."
    yield from sorted(meanings.items())


# Elements of both


def _reference(page_name: str) -> str:
    return f"{bold(page_name)}(1)"


def _interrupted_exit_codes() -> str:
    return ", ".join(str(exit_code) for exit_code in INTERRUPTED)


def _add_file(page: RoffPage, path: str) -> None:
    page.item(with_italic_placeholders(path), [with_bold_code(_FILES[path])])


def _add_option(page: RoffPage, option: dict[str, Any]) -> None:
    # The short name is first, as in help.
    flags = [bold(flag) for flag in sorted(option["flags"], key=len)]
    term = ", ".join(flags)
    if "metavar" in option:
        term += f" {with_italic_placeholders(option['metavar'])}"
    page.item(term, [_describe_parameter(option)])


def _describe_parameter(parameter: dict[str, Any]) -> str:
    """Return what an option or an argument means, and what its value may be."""
    sentences = []
    if "help" in parameter:
        sentences.append(parameter["help"])
    if "default" in parameter:
        sentences.append(f"The default is `{parameter['default']}`.")
    sentences += _describe_limits(parameter)
    sentences += _describe_use(parameter)
    if "variable" in parameter:
        sentences.append(f"The variable `{parameter['variable']}` sets it too.")
    return with_bold_code(" ".join(sentences))


def _describe_limits(parameter: dict[str, Any]) -> list[str]:
    """Return a sentence about the numbers that are allowed. There is none if all are."""
    smallest = parameter.get("minimum")
    largest = parameter.get("maximum")
    if smallest is not None and largest is not None:
        return [f"The value must be between {smallest} and {largest}."]
    if smallest is not None:
        return [f"The value must be at least {smallest}."]
    if largest is not None:
        return [f"The value must be at most {largest}."]
    return []


def _describe_use(parameter: dict[str, Any]) -> list[str]:
    """Return a sentence about whether the parameter may be missing, or be given several times."""
    is_option = "flags" in parameter
    if is_option and parameter.get("required", False):
        return ["This option is required."]
    if is_option and parameter.get("repeatable", False):
        return ["You can repeat this option."]
    if is_option:
        return []
    if parameter.get("required", False):
        return ["This argument is required."]
    return ["This argument is optional."]
