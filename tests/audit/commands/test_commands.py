"""What the manifest says about the commands of this part. Programs decide by it what to run."""

from functools import cache
from typing import Any

import pytest

from sampletool.kit.app import root_command
from sampletool.kit.commands.manifest import describe, find_commands


@cache
def manifests() -> dict[str, dict[str, Any]]:
    """Return what the manifest says about each command, by its name."""
    return {name: describe(name, command) for name, command in find_commands(root_command())}


@pytest.mark.parametrize(
    ("command", "promises"),
    [
        (
            "audit",
            {
                "effect": "scratch",
                "reads": [],
                "destroys": "",
                "idempotent": True,
                "runs_what_it_is_given": True,
                "before": [],
                "examples": [
                    "tool audit --set 'git config --global x.{key} {value}' "
                    "--get 'git config --global x.{key}' --runs 8"
                ],
            },
        ),
        (
            "run-safely",
            {
                "effect": "files",
                "reads": ["stdin"],
                "destroys": "",
                "idempotent": False,
                "runs_what_it_is_given": True,
                "before": [],
                "examples": ["tool run-safely --dry-run --lock git --until 2m -- git gc"],
            },
        ),
    ],
)
def test_the_manifest_says_what_a_command_reads_and_changes(
    command: str,
    promises: dict[str, Any],
) -> None:
    manifest = manifests()[command]

    assert {name: manifest[name] for name in promises} == promises


@pytest.mark.parametrize(
    ("command", "locks", "errors"),
    [
        ("audit", {}, {"COMMAND_NOT_FOUND": 5, "FAILS_ALONE": 4}),
        (
            "run-safely",
            {"session": "10s", "program": "10s"},
            {
                "COMMAND_NOT_FOUND": 5,
                "PROGRAM_FAILED": 3,
                "OUTPUT_LOST": 1,
                "LOCK_HELD": 75,
                "LOCKS_UNSUPPORTED": 4,
                "NESTED_CALL": 4,
            },
        ),
    ],
)
def test_the_manifest_says_what_a_command_waits_for_and_how_it_can_fail(
    command: str,
    locks: dict[str, str],
    errors: dict[str, int],
) -> None:
    manifest = manifests()[command]

    assert {lock["lock"]: lock["waits"] for lock in manifest["locks"]} == locks
    exit_codes = {code: error["exit_status"] for code, error in manifest["errors"].items()}
    assert exit_codes == errors
    meaning = manifest["errors"]["COMMAND_NOT_FOUND"]["meaning"]
    assert meaning == "There is no such program to run."


def test_the_response_of_run_safely_goes_to_stderr_because_stdout_belongs_to_the_program() -> None:
    commands = dict(find_commands(root_command()))

    takes_stdout = {name: commands[name].spec.takes_stdout for name in ("audit", "run-safely")}

    assert takes_stdout == {"audit": False, "run-safely": True}
