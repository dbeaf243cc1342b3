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

    Return None if the file is no exercise. The docstring of an exercise begins with `Exercise:`.
    """
    docstring = ast.get_docstring(ast.parse(file.read_bytes())) or ""
    if not docstring.startswith("Exercise:"):
        return None
    names = exercise_names()
    title = docstring.partition("\n")[0]
    for name, following in zip(names, [*names[1:], ""], strict=True):
        if f'"""{title}' in starter_text(name):
            return following
    return None


def starter_file_name(name: str) -> str:
    """Return the default name of the file that is created for the learner."""
    return _starter_path(name).name


def _starter_path(name: str) -> Path:
    """Return the path that the starter file of a scenario has, if the scenario has an exercise."""
    scenario_path = Path(module_of(name).__file__)
    return _EXERCISES / scenario_path.relative_to(_SCENARIOS)
