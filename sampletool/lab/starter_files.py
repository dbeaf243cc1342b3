"""Find the starter files of the exercises.

A starter file has the bug of a race as a learner would write it, and the functions prepare() and
invariant(). The learner changes it until `tool lab try` finds no broken schedule. It has the name
of its scenario, and is in exercises/ where the scenario is in scenarios/.
"""

import ast
from pathlib import Path

from .errors import NoExercise
from .levels import names_in_order
from .scenario import module_of

_PACKAGE = Path(__file__).parent
_SCENARIOS = _PACKAGE / "scenarios"
_EXERCISES = _PACKAGE / "exercises"


def exercise_names() -> list[str]:
    """Return the scenarios that have an exercise, from easy to hard."""
    return [name for name in names_in_order() if _starter_path(name).exists()]


def starter_text(name: str) -> str:
    """Return the starter file of a scenario. Raise ScenarioNotFound or NoExercise."""
    path = _starter_path(name)
    if not path.exists():
        available = ", ".join(exercise_names())
        raise NoExercise(scenario=name, suggestion=f"These races have one: {available}.")
    return path.read_text()


def exercise_after(file: Path) -> str | None:
    """Return the name of the exercise after the one in this file. Return "" after the last one.

    Return None if the file is no exercise.
    """
    title = _exercise_title(file.read_bytes())
    if title is None:
        return None
    names = exercise_names()
    for name, next_name in zip(names, [*names[1:], ""], strict=True):
        # The learner may have given the file another name, but hardly another title.
        if _exercise_title(starter_text(name).encode()) == title:
            return next_name
    return None


def _exercise_title(source: bytes) -> str | None:
    """Return the first line of the docstring of an exercise, or None if it is no exercise."""
    docstring = ast.get_docstring(ast.parse(source)) or ""
    title, _, _ = docstring.partition("\n")
    if not title.startswith("Exercise:"):
        return None
    return title


def starter_file_name(name: str) -> str:
    """Return the default name of the file that is created for the learner."""
    return _starter_path(name).name


def _starter_path(name: str) -> Path:
    """Return the path that the starter file of a scenario has, if the scenario has an exercise."""
    scenario_path = Path(module_of(name).__file__)
    return _EXERCISES / scenario_path.relative_to(_SCENARIOS)
