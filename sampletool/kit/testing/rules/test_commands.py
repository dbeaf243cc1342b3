"""Each command is complete, explains itself, and is run by a test."""

import re
from collections import defaultdict
from collections.abc import Iterator

from ...command_folder import CommandFolder
from ...part_discovery import command_packages
from ...project import ROOT
from ..how_to import fail_if_any
from .own_code import (
    OwnCommand,
    incomplete_commands,
    own_command_packages,
    own_commands,
    own_groups,
)

_HEADING = "Commands"
_MAX_SUMMARY_CHARACTERS = 72


def test_each_command_file_is_complete() -> None:
    faults = [error.message for error in incomplete_commands()]

    fail_if_any(faults, "A command file must define `spec` and `command`", _HEADING)


def test_no_two_commands_have_one_name() -> None:
    packages_by_name = defaultdict(list)
    for package in command_packages():
        for name in CommandFolder([package], "", None).commands:
            packages_by_name[name].append(package)

    faults = []
    for name, packages in packages_by_name.items():
        if len(packages) > 1:
            folders = " and ".join(package.replace(".", "/") for package in packages)
            faults.append(f"{folders}: both have a command or a group `{name}`.")

    fail_if_any(faults, "Give one of them another name", _HEADING)


def test_each_help_begins_with_a_short_sentence() -> None:
    faults: list[str] = []
    for command in own_commands():
        faults += _faults_of_summary(command.file, command.described["summary"])
    for group in own_groups():
        faults += _faults_of_summary(group.file, group.summary)

    what_to_do = (
        "Begin the docstring of `command`, or of the group's `__init__.py`, with a sentence of at "
        f"most {_MAX_SUMMARY_CHARACTERS} characters that ends with a period"
    )
    fail_if_any(faults, what_to_do, _HEADING)


def _faults_of_summary(file: str, summary: str) -> Iterator[str]:
    if not summary.endswith("."):
        yield f'{file}: the first line of the help does not end with a period: "{summary}".'
    elif len(summary) > _MAX_SUMMARY_CHARACTERS:
        yield f'{file}: the first line of the help has {len(summary)} characters: "{summary}".'


def test_each_command_is_run_by_a_test_of_its_part() -> None:
    faults = []
    for package in own_command_packages():
        part = package.split(".")[1]
        tests = ROOT / "tests" / part
        text = "".join(file.read_text() for file in sorted(tests.rglob("*.py")))
        for command in own_commands():
            is_in_part = command.module.startswith(f"{package}.")
            if is_in_part and not _is_run_in(text, command):
                faults.append(f"{command.file}: no test below tests/{part} runs this command.")

    what_to_do = 'Write one that calls `tool("item", "add")`, with the name of the command'
    fail_if_any(faults, what_to_do, _HEADING)


def _is_run_in(text: str, command: OwnCommand) -> bool:
    """Return whether the text of some tests has the name of the command.

    It can be written as `"item", "add"` or as `"item add"`.
    """
    name = '(?:", "| )'.join(re.escape(word) for word in command.name.split())
    return re.search(rf'"{name}\b', text) is not None
