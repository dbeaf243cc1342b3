"""The table of failure modes names tests that exist."""

import re
from pathlib import Path

import pytest

from sampletool.kit.app import root_command
from sampletool.kit.commands.manifest import find_commands
from sampletool.kit.program import KIT_DIRECTORY, PROGRAM, __version__
from sampletool.kit.project import ROOT
from sampletool.kit.testing.schema import described

_PAGE = "docs/kit/agents.md"
_ROW = re.compile(r"^\| (\d+) \| ([^|]+) \| ([^|]+) \| ([^|]+) \|$", re.MULTILINE)
_COUNT = 77
_NO_TEST = "none"


@pytest.fixture
def rows() -> list[tuple[str, str, str, str]]:
    """Return the number, the failure mode, the description and the test of each row."""
    return _ROW.findall((ROOT / _PAGE).read_text())


def test_the_table_has_a_row_for_each_failure_mode(rows: list[tuple[str, str, str, str]]) -> None:
    assert [int(number) for number, *_ in rows] == list(range(1, _COUNT + 1))


def test_each_test_that_the_table_names_exists(rows: list[tuple[str, str, str, str]]) -> None:
    existing = set()
    rules = Path(KIT_DIRECTORY, "testing", "rules").glob("test_*.py")
    for file in (*(ROOT / "tests" / "kit").rglob("test_*.py"), *rules):
        existing.update(re.findall(r"^def (test_\w+)", file.read_text(), re.MULTILINE))

    missing = []
    for number, _, _, test in rows:
        if test != _NO_TEST and test.strip("`") not in existing:
            missing.append(f"{_PAGE}: in row {number}, name another test than {test}")

    assert missing == []


def test_the_instructions_say_how_to_install_the_version_that_they_belong_to() -> None:
    """An agent may have an old copy. If this fails, put the new version into AGENTS.md."""
    released_version = __version__.partition(".dev")[0]

    instructions = (ROOT / "AGENTS.md").read_text()
    assert f"version {released_version}." in instructions
    assert "uv tool install" in instructions


def test_the_instructions_name_each_command_that_writes_something_else_to_stdout(
    rows: list[tuple[str, str, str, str]],
) -> None:
    """Others may rely on one line of JSON on stdout."""
    instructions = (ROOT / "AGENTS.md").read_text()
    (exceptions,) = re.findall(r"^\* Pass `--json` .*?(?=^\* )", instructions, re.M | re.S)
    about_output = rows[1][2]

    names = []
    for name, command in find_commands(root_command()):
        if command.spec.takes_stdout:
            names.append(name)
            assert f"`{PROGRAM} {name}`" in exceptions
            assert f"`{PROGRAM} {name}`" in about_output
    assert names


def test_the_instructions_do_not_install_from_the_registry_before_a_release() -> None:
    install_page = (ROOT / "docs" / "start" / "install.md").read_text()
    instructions = " ".join((ROOT / "AGENTS.md").read_text().split())

    is_released = "There's no release yet" not in install_page
    assert is_released or "`uv tool install sampletool` needs a release" in instructions


def test_the_instructions_list_the_commands_of_each_danger_level() -> None:
    instructions = (ROOT / "AGENTS.md").read_text()

    for level in ("safe", "mutating", "destructive"):
        commands = []
        for entry in described().values():
            if entry["danger_level"] == level:
                commands.append(f"`{entry['command']}`")
        row = f"| {level} | {', '.join(sorted(commands))} |"
        assert row in instructions, f"AGENTS.md: write this row:\n{row}"
