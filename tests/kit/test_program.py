"""sampletool/kit/program.py: all names are built from those of the package and the command."""

import pytest

from sampletool.kit import program


def test_the_package_is_the_one_that_contains_the_kit() -> None:
    assert program.PACKAGE == "sampletool"


def test_the_names_of_the_workspace_are_built_from_the_command() -> None:
    assert program.WORKSPACE_FILE == "tool.toml"
    assert program.WORKSPACE_DIRECTORY == ".tool"


@pytest.mark.parametrize(
    ("command", "name", "expected"),
    [
        ("tool", "jobs", "TOOL_JOBS"),
        ("tool", "lock-timeout", "TOOL_LOCK_TIMEOUT"),
        ("my-tool", "jobs", "MY_TOOL_JOBS"),
    ],
)
def test_a_variable_has_only_letters_that_every_shell_accepts(
    monkeypatch: pytest.MonkeyPatch,
    command: str,
    name: str,
    expected: str,
) -> None:
    monkeypatch.setattr(program, "PROGRAM", command)

    assert program.env_variable(name) == expected
