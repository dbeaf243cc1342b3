"""sampletool/audit/command_line.py"""

import re
import shlex
import subprocess
from pathlib import Path

import pytest

from sampletool.audit.command_line import KEY, VALUE, CommandLine
from sampletool.kit.contract.errors import CommandNotFound
from sampletool.kit.testing.failing import outcome_of


def test_words_are_split_as_a_shell_would_and_filled_one_by_one() -> None:
    command = CommandLine.parse("""tool 'two words' --x="{key}=;{value}" "$HOME" """, (KEY, VALUE))

    filled = command.fill("k; rm -rf /", "$(date) 'v'")

    assert filled == ["tool", "two words", "--x=k; rm -rf /=;$(date) 'v'", "$HOME"]


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("tool set {value}", "has no {key}"),
        ("tool set {key}", "has no {value}"),
        ("tool set", "has no {key} and no {value}"),
        ("tool 'set {key} {value}", "no closing quotation"),
        ("tool set {key} {value}\\", "no escaped character"),
        ("  ", "the command is empty"),
        ("'' {key} {value}", "the command is empty"),
    ],
)
def test_a_command_that_cannot_be_filled_is_refused_with_the_reason(
    text: str, complaint: str
) -> None:
    with pytest.raises(ValueError, match=re.escape(complaint)):
        CommandLine.parse(text, (KEY, VALUE))


def test_a_program_named_by_a_relative_path_is_found_from_where_the_caller_is(
    tmp_path: Path,
) -> None:
    program = tmp_path / "bin" / "mine"
    program.parent.mkdir()
    program.write_text("#!/bin/sh\n")
    program.chmod(0o700)

    command = CommandLine.parse("bin/mine {key}", ())

    located = outcome_of(lambda: command.find_program("--get", tmp_path))

    assert isinstance(located, CommandLine), located
    assert located.fill("k") == [str(program), "k"]
    assert located.to_shell() == "bin/mine {key}"


def test_a_program_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(CommandNotFound, match='"no-such-program"'):
        CommandLine.parse("no-such-program {key}", ()).find_program("--get", tmp_path)


def test_as_shell_it_puts_the_very_same_words_together() -> None:
    command = CommandLine.parse(
        "printf '%s\\n' 'it'\\''s' \"a b{key}c d\" {key}{value} '' '$x'", (KEY, VALUE)
    )

    typed = command.to_shell('"$key"', '"$value"')
    shell = f"key=$1 value=$2; {typed}"
    ran = subprocess.run(
        ["/bin/sh", "-c", shell, "sh", "K 1", "V*"], capture_output=True, check=True
    )

    assert ran.stdout.decode().split("\n")[:-1] == command.fill("K 1", "V*")[2:]


def test_it_is_shown_so_that_it_can_be_typed_again() -> None:
    command = CommandLine.parse("git config --global x.{key} {value}", (KEY, VALUE))

    assert command.to_shell() == "git config --global x.{key} {value}"
    assert shlex.split(CommandLine.parse("a 'b  {key}' 'c d'", ()).to_shell()) == [
        "a",
        "b  {key}",
        "c d",
    ]
