"""The spec of each command says what the command changes, and its examples work."""

import os
import re
import shlex
import shutil
import sys
from pathlib import Path

import pytest

from ...app import root_command
from ...context import Context
from ...contract.command_spec import written_out
from ...contract.errors import ExitStatus, UsageMistakes
from ...effects import all_effects, changes_something
from ...program import PACKAGE, PROGRAM, WORKSPACE_FILE
from ...project import ROOT
from ...safety.signals import Signals
from ..how_to import fail_if_any
from ..tool import Ran, Tool
from ..trees import file_states
from .own_code import OwnCommand, own_commands

_HEADING = "The spec"


def test_each_effect_is_one_of_the_words_that_are_described() -> None:
    faults = []
    for command in own_commands():
        if command.spec.effect not in all_effects():
            faults.append(f'{command.file}: the effect "{command.spec.effect}" is not known.')

    fail_if_any(faults, "Choose a word of the kit, or add yours to the part's effects.py", _HEADING)


def test_a_command_that_changes_something_has_a_dry_run() -> None:
    faults = []
    for command in own_commands():
        effect = command.spec.effect
        if changes_something(effect) and "--dry-run" not in _flags_of(command):
            faults.append(f'{command.file}: the effect is "{effect}", and there is no --dry-run.')

    what_to_do = "Give `command` a parameter `dry_run: DryRunOption = False`, and obey it"
    fail_if_any(faults, what_to_do, _HEADING)


def _flags_of(command: OwnCommand) -> set[str]:
    """Return all options of the command."""
    flags = set()
    for option in command.described["options"]:
        flags.update(option["flags"])
    return flags


def test_what_a_command_destroys_is_a_sentence() -> None:
    faults = []
    for command in own_commands():
        destroys = command.spec.destroys
        if destroys and not destroys.endswith("."):
            faults.append(f"{command.file}: `destroys` does not end with a period.")
        if destroys and command.spec.effect == "nothing":
            faults.append(f'{command.file}: it `destroys` something, and the effect is "nothing".')

    what_to_do = "Write a sentence about what users cannot get back, and name the effect"
    fail_if_any(faults, what_to_do, _HEADING)


def test_each_command_has_an_example() -> None:
    faults = []
    for command in own_commands():
        if not command.spec.examples:
            faults.append(f"{command.file}: the spec has no example.")

    fail_if_any(faults, "Add one to `examples`", _HEADING)


def test_each_example_is_a_command_line_of_its_command() -> None:
    faults = []
    for command in own_commands():
        for example in command.spec.examples:
            _, _, command_line = example.rpartition(" | ")
            if not f"{command_line} ".startswith(f"{command.name} "):
                faults.append(f"{command.file}: `{example}` does not run `{command.name}`.")
                continue
            for mistake in _mistakes_in(command_line):
                faults.append(f"{command.file}: `{example}`: {mistake}.")

    what_to_do = "Write each example as users type it, but without the name of the program"
    fail_if_any(faults, what_to_do, _HEADING)


def _mistakes_in(command_line: str) -> list[str]:
    """Return what is wrong with a command line, without running it."""
    # A mistake of ours keeps the command from running. It is the first one.
    args = ["--lock-timeout", "never", *shlex.split(command_line)]
    try:
        root_command().main(
            args=args,
            prog_name=PROGRAM,
            standalone_mode=False,
            obj=Context(Signals()),
        )
    except UsageMistakes as error:
        return [mistake.message for mistake in error.mistakes[1:]]
    raise AssertionError("a command line with a mistake was run")


# Examples can take seconds, so each command has a test of its own. Workers share them.
@pytest.mark.parametrize("command", own_commands(), ids=lambda command: command.name)
def test_the_examples_work(tool: Tool, tmp_path: Path, command: OwnCommand) -> None:
    _install(tool, tmp_path / "bin")
    # Some examples need a file that a user writes.
    for directory in ROOT.glob(f"tests/*/examples/{command.name.replace(' ', '.')}"):
        shutil.copytree(directory, tool.cwd, dirs_exist_ok=True)
    if _needs_workspace(command):
        (tool.cwd / WORKSPACE_FILE).touch()

    for example in command.spec.before:
        _run(tool, command, example)
    for example in command.spec.examples:
        before = file_states(tmp_path)
        if "--dry-run" in _flags_of(command):
            _run(tool, command, _as_dry_run(command, example))
            if file_states(tmp_path) != before:
                fault = f"{command.file}: `{example}` changes files with --dry-run, too."
                fail_if_any([fault], "Return before the change if `dry_run` is true", _HEADING)
        ran = _run(tool, command, example)
        _check_locks(command, example, ran)
        if command.spec.effect == "nothing" and file_states(tmp_path) != before:
            what_to_do = "Choose another `effect`, or change no file"
            fault = f'{command.file}: `{example}` changes files, and the effect is "nothing".'
            fail_if_any([fault], what_to_do, _HEADING)


def _as_dry_run(command: OwnCommand, example: str) -> str:
    """Return the example with --dry-run behind the name of the command."""
    source, pipe, command_line = example.rpartition(" | ")
    arguments = command_line.removeprefix(command.name)
    return f"{source}{pipe}{command.name} --dry-run{arguments}"


def _install(tool: Tool, directory: Path) -> None:
    """Let other programs find the tool in PATH, under its own name."""
    directory.mkdir()
    program = directory / PROGRAM
    program.write_text(f'#!/bin/sh\nexec {sys.executable} -m {PACKAGE} "$@"\n')
    program.chmod(0o755)
    tool.environ["PATH"] = f"{directory}:{os.environ['PATH']}"


def _needs_workspace(command: OwnCommand) -> bool:
    """Return whether the first of the example commands can end with NO_WORKSPACE."""
    first_example = [*command.spec.before, *command.spec.examples, ""][0]
    _, _, command_line = first_example.rpartition(" | ")
    for other in own_commands():
        if f"{command_line} ".startswith(f"{other.name} "):
            return "NO_WORKSPACE" in {kind.code for kind in other.spec.all_errors()}
    return False


def _run(tool: Tool, command: OwnCommand, example: str) -> Ran:
    """Run an example as a shell would, and return its result. Fail if it does not work."""
    source, _, command_line = written_out(example).rpartition(" | ")
    _program, *words = shlex.split(command_line)
    arguments = []
    for word in words:
        if "*" in word:
            arguments += [str(path) for path in sorted(tool.cwd.glob(word))]
        else:
            arguments.append(word)
    # The fixture checks the response against the schema in the manifest.
    ran = tool("--json", "--verbose", *arguments, stdin=_stdin_of(tool, source))
    if command.spec.needs_terminal:
        assert ran.code == "NO_TERMINAL"
    elif not ran.response["ok"] and not _lacks_only_its_server(command, ran):
        fault = f"{command.file}: `{example}` fails: {ran.error['message']} [{ran.code}]"
        what_to_do = (
            "Correct the example, add the commands that it needs to `before`, or put the files "
            f"that it needs into tests/PART/examples/{command.name.replace(' ', '.')}"
        )
        fail_if_any([fault], what_to_do, _HEADING)
    return ran


def _lacks_only_its_server(command: OwnCommand, ran: Ran) -> bool:
    """Return whether the command failed with an UNAVAILABLE error that its spec declares.

    A command that only reads from a server has nothing to show if no server is running.
    """
    for error in command.spec.own_errors():
        if error.code == ran.code and error.exit_status == ExitStatus.UNAVAILABLE:
            return True
    return False


def _stdin_of(tool: Tool, source: str) -> bytes:
    """Return what `cat FILE` or `echo TEXT` pipes into an example."""
    if not source:
        return b""
    program, *words = shlex.split(source)
    if program == "cat":
        return (tool.cwd / words[0]).read_bytes()
    return f"{' '.join(words)}\n".encode()


def _check_locks(command: OwnCommand, example: str, ran: Ran) -> None:
    """Fail if the command has taken a lock that its spec does not name."""
    taken = set()
    for name in re.findall(r"^lock (\S+).*: asked for by", ran.stderr.decode(), re.MULTILINE):
        # The lock of a settings file has the name of the file. Others begin with their kind.
        if name in (WORKSPACE_FILE, "config.toml"):
            taken.add("settings file")
        else:
            taken.add(name)
    missing = sorted(taken - set(command.spec.locks))
    faults = [f"{command.file}: `{example}` takes the lock `{name}`." for name in missing]
    fail_if_any(faults, "Add it to `locks`", _HEADING)
