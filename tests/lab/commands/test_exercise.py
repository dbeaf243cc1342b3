"""tool lab exercise"""

from pathlib import Path

from sampletool.kit.testing.tool import Tool
from sampletool.lab.starter_files import exercise_names, starter_text


def test_the_starter_file_is_created_under_the_name_of_the_race(tool: Tool) -> None:
    data = tool("lab", "exercise", "stale-lock").data

    assert data["effect"] == "created"
    assert Path(data["output"]) == tool.cwd / "stale_lock.py"
    assert (tool.cwd / "stale_lock.py").read_text() == starter_text("stale-lock")


def test_a_file_that_the_learner_has_changed_is_never_overwritten(tool: Tool) -> None:
    tool("lab", "exercise", "stale-lock")
    file = tool.cwd / "stale_lock.py"
    file.write_text("my work\n")

    refused = tool("lab", "exercise", "stale-lock")

    assert refused.code == "OUTPUT_EXISTS"
    assert "lab try stale_lock.py`" in refused.error["suggestion"]
    assert "lab exercise stale-lock --output stale_lock_2.py`" in refused.error["suggestion"]
    assert file.read_text() == "my work\n"


def test_a_file_name_with_a_space_is_quoted_in_the_commands_to_copy(tool: Tool) -> None:
    created = tool("lab", "exercise", "stale-lock", "--output", "my file.py", "--format", "text")
    (tool.cwd / "my file.py").write_text("my work\n")

    refused = tool("lab", "exercise", "stale-lock", "--output", "my file.py")

    assert "lab try 'my file.py'" in created.text
    assert "lab try 'my file.py'`" in refused.error["suggestion"]
    assert "--output 'my file_2.py'`" in refused.error["suggestion"]


def test_a_file_that_is_already_there_unchanged_is_fine(tool: Tool) -> None:
    tool("lab", "exercise", "stale-lock")

    assert tool("lab", "exercise", "stale-lock").data["effect"] == "unchanged"


def test_another_name_can_be_chosen(tool: Tool) -> None:
    tool("lab", "exercise", "stale-lock", "--output", "mine.py")

    assert (tool.cwd / "mine.py").read_text() == starter_text("stale-lock")


def test_a_dry_run_creates_nothing(tool: Tool) -> None:
    forecast = tool("lab", "exercise", "stale-lock", "--dry-run").data

    assert forecast["effect"] == "created"
    assert list(tool.cwd.iterdir()) == []


def test_a_race_without_an_exercise_is_refused_by_name(tool: Tool) -> None:
    refused = tool("lab", "exercise", "coordinator")
    unknown = tool("lab", "exercise", "nosuch")

    assert (refused.code, unknown.code) == ("NO_EXERCISE", "SCENARIO_NOT_FOUND")
    assert exercise_names()[0] in refused.error["suggestion"]


def test_the_output_says_what_to_run_next(tool: Tool) -> None:
    said = tool("lab", "exercise", "stale-lock", "--format", "text").text

    assert "lab try stale_lock.py" in said


def test_the_next_command_names_the_file_where_it_is(tool: Tool) -> None:
    (tool.cwd / "solutions").mkdir()

    created = tool(
        "lab", "exercise", "stale-lock", "--output", "solutions/mine.py", "--format", "text"
    )

    assert "lab try solutions/mine.py" in created.text


def test_without_a_name_all_exercises_are_listed_and_nothing_is_created(tool: Tool) -> None:
    refused = tool("lab", "exercise")

    assert refused.code == "VALIDATION_ERROR"
    assert all(name in refused.error["suggestion"] for name in exercise_names())
    assert list(tool.cwd.iterdir()) == []
