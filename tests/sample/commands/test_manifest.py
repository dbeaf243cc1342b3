"""What `tool manifest` says about these commands. Programs decide by it what they may run."""

from typing import Any

import pytest

from sampletool.kit.testing.tool import Tool

BUILD_AND_SESSION = {"build": "0ms", "session": "10s"}
ERRORS_OF_LOCKS = {"LOCK_HELD", "LOCKS_UNSUPPORTED", "NESTED_CALL"}


def facts_of(tool: Tool, command: str) -> dict[str, Any]:
    data = tool("manifest", command).data
    facts: dict[str, Any] = data.get("commands", [data])[0]
    return facts


@pytest.mark.parametrize(
    ("command", "effect", "reads", "locks", "errors"),
    [
        (
            "build",
            "outputs",
            ["workspace"],
            BUILD_AND_SESSION,
            {"NO_WORKSPACE", "TARGET_NOT_FOUND", "BUILD_FAILED"},
        ),
        (
            "test",
            "outputs",
            ["workspace"],
            BUILD_AND_SESSION,
            {"NO_WORKSPACE", "TARGET_NOT_FOUND", "BUILD_FAILED", "NOT_BUILT", "CHECKS_FAILED"},
        ),
        (
            "process",
            "outputs",
            ["files"],
            {"session": "10s", "output": "0ms"},
            {"INVALID_CSV", "INPUT_CHANGED", "OUTPUT_EXISTS", "WORKER_LOST"},
        ),
        ("init", "files", [], {"output": "10s"}, {"OUTPUT_EXISTS"}),
    ],
)
def test_the_manifest_says_what_a_command_changes_waits_for_and_reports(
    tool: Tool,
    command: str,
    effect: str,
    reads: list[str],
    locks: dict[str, str],
    errors: set[str],
) -> None:
    facts = facts_of(tool, command)

    assert (facts["effect"], facts["reads"]) == (effect, reads)
    assert {lock["lock"]: lock["waits"] for lock in facts["locks"]} == locks
    assert facts["errors"].keys() == errors | ERRORS_OF_LOCKS


@pytest.mark.parametrize(
    ("command", "runs_commands", "destroys"),
    [
        ("build", True, "The previous outputs of a target. They can be built again."),
        ("test", True, ""),
        ("process", False, ""),
        ("init", False, ""),
    ],
)
def test_the_manifest_says_which_commands_can_do_harm(
    tool: Tool, command: str, runs_commands: bool, destroys: str
) -> None:
    facts = facts_of(tool, command)

    assert facts["runs_what_it_is_given"] is runs_commands
    assert facts["destroys"] == destroys


@pytest.mark.parametrize(
    ("command", "examples"),
    [
        ("build", ["build", "build report", "build --dry-run"]),
        ("test", ["test", "test --build", "test totals-add-up"]),
        (
            "process",
            [
                "process --input data/sales.csv --session-id demo",
                "process --input data/sales.csv --output profile.json",
            ],
        ),
        ("init", ["init demo"]),
    ],
)
def test_the_manifest_has_examples(tool: Tool, command: str, examples: list[str]) -> None:
    assert facts_of(tool, command)["examples"] == [f"tool {example}" for example in examples]


@pytest.mark.parametrize(
    ("command", "flags"),
    [
        ("build", {"--jobs", "-j", "--force-unlock", "--dry-run"}),
        ("test", {"--build", "--jobs", "-j", "--force-unlock", "--dry-run"}),
        (
            "process",
            {"--input", "--output", "--delimiter", "--jobs", "-j", "--dry-run"},
        ),
        ("init", {"--force", "--dry-run"}),
    ],
)
def test_the_manifest_has_all_flags_and_only_the_input_is_required(
    tool: Tool, command: str, flags: set[str]
) -> None:
    options = facts_of(tool, command)["options"]

    assert {flag for option in options for flag in option["flags"]} == flags
    required = [option["name"] for option in options if option.get("required")]
    assert required == (["input_path"] if command == "process" else [])
