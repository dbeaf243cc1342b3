"""Settings with choices or a pattern: a wrong value is refused wherever it is written or read."""

from pathlib import Path

import pytest

from sampletool.kit.commands.config._options import possible_assignments
from sampletool.kit.commands.config.edit import _check
from sampletool.kit.contract.errors import InvalidValues
from sampletool.kit.program import WORKSPACE_FILE
from sampletool.kit.safety.toml_file import read_toml
from sampletool.kit.settings.kinds import KnownSetting
from sampletool.kit.settings.known import SETTINGS, all_settings
from sampletool.kit.settings.precedence import Scope
from sampletool.kit.testing.failing import failure_of
from sampletool.kit.testing.tool import Ran, Tool, ended

_SETTINGS: dict[str, KnownSetting] = {
    "rounding": {
        "kind": "choice",
        "choices": ("up", "down", "half-up"),
        "default": "half-up",
        "help": "How to round.",
    },
    "currency": {
        "kind": "pattern",
        "pattern": "[A-Z]{3}",
        "pattern_help": "three capital letters",
        "default": "EUR",
        "help": "The currency.",
    },
}

_PROGRAM = f"""
import sys
from sampletool.kit.settings.known import SETTINGS, all_settings
from sampletool.kit.start import main
SETTINGS |= {_SETTINGS}
all_settings.cache_clear()
sys.argv = ["tool", *sys.argv[1:]]
sys.exit(main("sampletool"))
"""
"""The tool with the settings above."""


def run(tool: Tool, *arguments: str, **environ: str) -> Ran:
    """Run the tool with the settings above."""
    return ended(tool.start(*arguments, program=["-c", _PROGRAM], environ=environ))


@pytest.fixture
def file(workspace: Path) -> Path:
    """Return the settings file of the workspace."""
    return workspace / WORKSPACE_FILE


def test_a_value_that_is_no_choice_is_not_written(tool: Tool, file: Path) -> None:
    before = file.read_text()

    ran = run(tool, "config", "set", "rounding", "halfup")

    assert (ran.status, ran.code) == (2, "VALIDATION_ERROR")
    assert ran.error["message"] == "Invalid value for rounding: 'halfup' (from the command line)."
    assert ran.error["suggestion"] == "Use up, down or half-up. Did you mean 'half-up'?"
    assert file.read_text() == before


def test_a_value_that_does_not_match_the_pattern_is_not_written(tool: Tool, file: Path) -> None:
    before = file.read_text()

    ran = run(tool, "config", "set", "currency=euro")

    assert (ran.status, ran.code) == (2, "VALIDATION_ERROR")
    assert ran.error["suggestion"] == "Use three capital letters."
    assert file.read_text() == before


def test_a_right_value_is_written(tool: Tool, file: Path) -> None:
    run(tool, "config", "set", "rounding=down", "currency=USD")

    assert 'rounding = "down"\ncurrency = "USD"\n' in file.read_text()


def test_config_edit_refuses_all_wrong_values(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name, setting in _SETTINGS.items():
        monkeypatch.setitem(SETTINGS, name, setting)
    all_settings.cache_clear()
    path = tmp_path / "config.toml"
    path.write_text('rounding = "sideways"\ncurrency = 5\njobs = 2\n')

    error = failure_of(lambda: _check(Scope("user", path), read_toml(path)))
    all_settings.cache_clear()

    assert isinstance(error, InvalidValues)
    assert sorted(mistake.param for mistake in error.mistakes) == ["currency", "rounding"]


@pytest.mark.usefixtures("workspace")
def test_a_wrong_value_of_a_variable_is_reported_with_the_variable(tool: Tool) -> None:
    warnings = run(tool, "config", "list", TOOL_CURRENCY="euro").response["warnings"]

    assert [warning["message"] for warning in warnings] == [
        "Invalid value for currency: 'euro' (from TOOL_CURRENCY)."
    ]


def test_a_wrong_value_of_a_file_is_reported_with_the_file(tool: Tool, file: Path) -> None:
    file.write_text('[settings]\nrounding = "sideways"\n')

    warnings = run(tool, "config", "list").response["warnings"]

    assert [warning["message"] for warning in warnings] == [
        f"Invalid value for rounding: 'sideways' (from {file})."
    ]


@pytest.mark.usefixtures("workspace")
def test_the_explanation_of_a_setting_says_which_values_to_use(tool: Tool) -> None:
    rounding = run(tool, "config", "explain", "rounding").data
    currency = run(tool, "config", "explain", "currency").data

    assert rounding["help"] == "How to round. Use up, down or half-up."
    assert currency["help"] == "The currency. Use three capital letters."


def test_the_help_topic_says_which_values_to_use(tool: Tool) -> None:
    text = " ".join(run(tool, "help", "environment").text.split())

    assert "How to round. Use up, down or half-up." in text
    assert "The currency. Use three capital letters." in text


def test_the_manifest_has_the_choices_and_the_pattern(tool: Tool) -> None:
    settings = run(tool, "manifest", "--schema").data["settings"]

    assert settings["rounding"]["choices"] == ["up", "down", "half-up"]
    assert settings["currency"]["pattern"] == "[A-Z]{3}"
    assert settings["currency"]["pattern_help"] == "three capital letters"


@pytest.mark.parametrize(
    ("words", "incomplete", "possible"),
    [
        ([], "", ["format", "jobs"]),
        ([], "fo", ["format", "jobs"]),
        (["format"], "", ["json", "jsonl", "text", "auto"]),
        (["call_log"], "o", ["on", "off"]),
        (["jobs"], "", []),
        (["my.key"], "", ["format", "jobs"]),
        ([], "format=j", ["format=json", "format=jsonl", "format=text", "format=auto"]),
        ([], "jobs=", []),
        ([], "my.key=", []),
        (["jobs=2"], "", ["format", "jobs"]),
        (["jobs=2"], "call_log=", ["call_log=on", "call_log=off"]),
        # bash splits a word at the sign.
        (["call_log", "="], "o", ["on", "off"]),
        (["jobs", "=", "2", "call_log"], "", ["on", "off"]),
        (["jobs", "=", "2"], "", ["format", "jobs"]),
    ],
)
def test_keys_are_completed_and_after_a_key_its_choices(
    words: list[str],
    incomplete: str,
    possible: list[str],
) -> None:
    assert possible_assignments(words, incomplete, ["format", "jobs"]) == possible
