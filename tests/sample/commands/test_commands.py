"""What the manifest says about the commands of this part. Programs decide by it what to run."""

from functools import cache
from typing import Any

import pytest

from sampletool.kit.app import root_command
from sampletool.kit.commands.manifest import describe, find_commands

_LOCKED = {"LOCK_HELD", "LOCKS_UNSUPPORTED", "NESTED_CALL"}
"""The errors of each command that takes a lock."""
_BUILD_AND_SESSION = {"build": "0ms", "session": "10s"}


@cache
def manifests() -> dict[str, dict[str, Any]]:
    """Return what the manifest says about each command, by its name."""
    return {name: describe(name, command) for name, command in find_commands(root_command())}


@pytest.mark.parametrize(
    ("command", "promises"),
    [
        (
            "build",
            {
                "effect": "outputs",
                "reads": ["workspace"],
                "destroys": "The previous outputs of a target. They can be built again.",
                "idempotent": True,
                "runs_what_it_is_given": True,
                "before": ["tool init ."],
                "examples": ["tool build", "tool build report", "tool build --dry-run"],
            },
        ),
        (
            "test",
            {
                "effect": "outputs",
                "reads": ["workspace"],
                "destroys": "",
                "idempotent": True,
                "runs_what_it_is_given": True,
                "before": ["tool init .", "tool build"],
                "examples": ["tool test", "tool test --build", "tool test totals-add-up"],
            },
        ),
        (
            "process",
            {
                "effect": "outputs",
                "reads": ["files"],
                "destroys": "",
                "idempotent": True,
                "runs_what_it_is_given": False,
                "before": ["tool init ."],
                "examples": [
                    "tool process --input data/sales.csv --session-id demo",
                    "tool process --input data/sales.csv --output profile.json",
                ],
            },
        ),
        (
            "init",
            {
                "effect": "files",
                "reads": [],
                "destroys": "",
                "idempotent": True,
                "runs_what_it_is_given": False,
                "before": [],
                "examples": ["tool init demo"],
            },
        ),
    ],
)
def test_the_manifest_says_what_a_command_reads_changes_and_destroys(
    command: str,
    promises: dict[str, Any],
) -> None:
    manifest = manifests()[command]

    assert {name: manifest[name] for name in promises} == promises


@pytest.mark.parametrize(
    ("command", "locks", "errors"),
    [
        ("build", _BUILD_AND_SESSION, {"NO_WORKSPACE", "TARGET_NOT_FOUND", "BUILD_FAILED"}),
        (
            "test",
            _BUILD_AND_SESSION,
            {"NO_WORKSPACE", "TARGET_NOT_FOUND", "BUILD_FAILED", "NOT_BUILT", "CHECKS_FAILED"},
        ),
        (
            "process",
            {"session": "10s", "output": "0ms"},
            {"INVALID_CSV", "INPUT_CHANGED", "OUTPUT_EXISTS", "WORKER_LOST"},
        ),
        ("init", {"output": "10s"}, {"OUTPUT_EXISTS"}),
    ],
)
def test_the_manifest_says_what_a_command_waits_for_and_how_it_can_fail(
    command: str,
    locks: dict[str, str],
    errors: set[str],
) -> None:
    manifest = manifests()[command]

    assert {lock["lock"]: lock["waits"] for lock in manifest["locks"]} == locks
    assert manifest["errors"].keys() == errors | _LOCKED


@pytest.mark.parametrize(
    ("command", "flags"),
    [
        ("build", {"--jobs", "-j", "--force-unlock", "--dry-run"}),
        ("test", {"--build", "--jobs", "-j", "--force-unlock", "--dry-run"}),
        ("process", {"--input", "--output", "--delimiter", "--jobs", "-j", "--dry-run"}),
        ("init", {"--force", "--dry-run"}),
    ],
)
def test_the_manifest_has_all_flags_and_only_the_input_is_required(
    command: str,
    flags: set[str],
) -> None:
    options = manifests()[command]["options"]

    assert {flag for option in options for flag in option["flags"]} == flags
    required = [option["name"] for option in options if option.get("required")]
    assert required == (["input_path"] if command == "process" else [])
