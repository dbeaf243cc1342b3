"""The exercises: each starter file breaks, and the solution on the page is right."""

import ast
import re
import shutil
from contextlib import closing
from pathlib import Path

import pytest

from docs.lab.blocks import SOLUTIONS, solution_path
from docs.lab.generate import LABS, path_of
from sampletool.kit.testing.tool import Tool
from sampletool.lab.starter_files import exercise_names, starter_text
from sampletool.lab.tried import trying
from tests.lab.support import shared_fork_server

_JUDGES = ("prepare", "invariant", "after_power_cut")


@pytest.mark.parametrize("name", exercise_names())
def test_the_starter_file_breaks(tool: Tool, name: str) -> None:
    created = tool("lab", "exercise", name).data
    file_name = Path(created["output"]).name

    ran = tool("lab", "try", file_name)

    assert (created["effect"], ran.status, ran.code) == ("created", 3, "RACE_FOUND")


@pytest.mark.parametrize("name", exercise_names())
def test_no_schedule_breaks_the_solution(tool: Tool, name: str) -> None:
    shutil.copy(solution_path(name), tool.cwd / "solution.py")

    ran = tool("lab", "try", "solution.py")

    assert ran.status == 0, ran.text


def test_a_lock_file_with_another_name_is_no_solution(tmp_path: Path) -> None:
    text = starter_text("stale-lock").replace('"lock", os.O', '"other", os.O')
    file = tmp_path / "mine.py"
    file.write_text(text.replace('os.remove("lock")', 'os.remove("other")'))

    # Only until the first broken schedule: on a busy machine, all of them take too long.
    with trying(file, shared_fork_server()) as tried_file, closing(tried_file.runs()) as runs:
        reasons = (run.recording.reason for run in runs if run.recording.is_broken)
        assert next(reasons, None) == "B waits for ever."


@pytest.mark.parametrize("flush", ["os.fsync(file.fileno())", "os.fsync(directory)"])
def test_saving_without_a_flush_is_no_solution(tool: Tool, flush: str) -> None:
    text = solution_path("torn-write").read_text()
    assert text.count(flush) == 1
    (tool.cwd / "mine.py").write_text(text.replace(flush, "pass"))

    ran = tool("lab", "try", "mine.py")

    assert ran.code == "RACE_FOUND"
    assert "After a power cut:" in ran.error["message"]


def test_overwriting_in_place_is_no_solution(tool: Tool) -> None:
    text = starter_text("torn-write")
    in_place = 'with FILE.open("r+") as file:\n        file.write(text)'
    (tool.cwd / "mine.py").write_text(text.replace("FILE.write_text(text)", in_place))

    assert tool("lab", "try", "mine.py").code == "RACE_FOUND"


@pytest.mark.parametrize("name", exercise_names())
def test_the_solution_is_judged_by_the_functions_of_the_starter_file(name: str) -> None:
    starter = _functions(starter_text(name))
    solution = _functions(solution_path(name).read_text())

    for judge in _JUDGES:
        assert solution.get(judge) == starter.get(judge)
    assert solution != starter


@pytest.mark.parametrize("name", exercise_names())
def test_the_page_has_the_exercise_and_its_solution(name: str) -> None:
    page = (LABS / f"{path_of(name)}.md").read_text()

    assert f"tool lab exercise {name}\ntool lab try {name.replace('-', '_')}.py" in page
    assert "<!-- fill: solution -->" in page
    assert "<summary>Hint</summary>" in page


def test_each_lesson_ends_in_an_exercise_that_exists() -> None:
    lessons = sorted(LABS.glob("learn/**/[1-9]-*.md"))

    exercises = []
    for lesson in lessons:
        _, _, your_turn = lesson.read_text().partition("## Your turn")
        exercises += re.findall(r"\$ tool lab exercise ([\w-]+)", your_turn)

    assert len(exercises) == len(lessons)
    assert set(exercises) <= set(exercise_names())


def test_the_page_for_teachers_lists_every_exercise() -> None:
    page = (LABS / "teach.md").read_text()

    for name in exercise_names():
        assert re.search(rf"[|,] {name}\b", page), name


def test_each_solution_belongs_to_an_exercise() -> None:
    solutions = {path for path in SOLUTIONS.rglob("*.py") if path.name != "__init__.py"}

    assert solutions == {solution_path(name) for name in exercise_names()}


def _functions(text: str) -> dict[str, str]:
    """Return each function of a file, without comments and formatting."""
    functions = {}
    for node in ast.parse(text).body:
        if isinstance(node, ast.FunctionDef):
            functions[node.name] = ast.dump(node)
    return functions
