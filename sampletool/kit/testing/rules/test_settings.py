"""The settings of each part are complete, and have names of their own."""

import ast
import re
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any, cast

from ...part_discovery import offered
from ...program import env_variable
from ...settings import known
from ...settings.kinds import KINDS, KnownSetting, read_value
from ..how_to import fail_if_any
from ..patterns import can_be_slow
from .own_code import file_of

_HEADING = "Settings"
_FACTS = known.all_settings()["jobs"]
_OPTIONAL_FACTS = {"deprecated", "former_names"}
_FACTS_OF_KIND = {"choice": {"choices"}, "pattern": {"pattern", "pattern_help"}}
"""The facts that only a setting of this kind has."""


def faults_of(name: str, facts: Any) -> list[str]:
    """Return how to correct one setting of a part."""
    if not isinstance(facts, dict):
        return [f"{name}: give it exactly {', '.join(_FACTS)}"]
    facts_of_kind = _FACTS_OF_KIND.get(facts.get("kind", ""), set())
    needed = [*_FACTS, *sorted(facts_of_kind)]
    if facts.keys() - _OPTIONAL_FACTS != set(needed):
        return [f"{name}: give it exactly {', '.join(needed)}"]
    faults = [
        *_faults_of_texts(facts),
        *_faults_of_name(name),
        *_faults_of_choices(facts),
        *_faults_of_pattern(facts),
    ]
    if not faults:
        faults += _faults_of_value(facts)
    return [f"{name}: {fault}" for fault in faults]


def _faults_of_name(name: str) -> Iterator[str]:
    is_lower_snake = name.isidentifier() and name == name.lower()
    if not is_lower_snake:
        yield f"write it in lower_snake, as it is a part of {env_variable('')}…"


def _faults_of_texts(facts: dict[str, Any]) -> Iterator[str]:
    for fact, text in facts.items():
        if fact in ("former_names", "choices"):
            continue
        if not isinstance(text, str) or text == "":
            yield f"{fact} must be a text"
    for former_name in facts.get("former_names", ()):
        if not isinstance(former_name, str):
            yield "former_names must be a tuple of texts"
    if not str(facts["help"]).endswith("."):
        yield "end the help with a period"


def _faults_of_choices(facts: dict[str, Any]) -> Iterator[str]:
    choices = facts.get("choices", ("a", "b"))
    if not isinstance(choices, tuple) or len(set(choices)) < 2:
        yield "choices must be a tuple of at least two texts"
        return
    for choice in choices:
        if not isinstance(choice, str) or not choice:
            yield "choices must be a tuple of texts that are not empty"
        if choice == known.AUTO:
            yield 'leave "auto" out of the choices: each setting accepts it'


def _faults_of_pattern(facts: dict[str, Any]) -> Iterator[str]:
    if facts["kind"] != "pattern" or not isinstance(facts["pattern"], str):
        return
    try:
        if can_be_slow(facts["pattern"]):
            yield (
                "the pattern repeats a group, or has more than three repetitions. "
                "Put a + behind each repetition, as in (ab?)*+"
            )
    except re.error as error:
        yield f"the pattern is not a regular expression: {error}"
    if str(facts["pattern_help"]).endswith("."):
        yield 'pattern_help completes the sentence "Use …": end it without a period'


def _faults_of_value(facts: dict[str, Any]) -> Iterator[str]:
    if facts["kind"] not in KINDS:
        yield f"kind must be one of {', '.join(KINDS)}"
    elif facts["default"] != known.AUTO:
        try:
            read_value(cast(KnownSetting, facts), facts["default"])
        except ValueError as error:
            yield f"the default: {error}"


def test_the_settings_of_each_part_are_complete() -> None:
    faults = []
    for module in offered("settings"):
        for name, facts in module.SETTINGS.items():
            for fault in faults_of(name, facts):
                faults.append(f"{file_of(module.__name__)}: {fault}.")

    fail_if_any(faults, "Write the setting as in the how-to", _HEADING)


def test_no_two_settings_have_one_name() -> None:
    files_by_name = defaultdict(list)
    for name in known.SETTINGS:
        files_by_name[name].append("the kit")
    for module in offered("settings"):
        for name in module.SETTINGS:
            files_by_name[name].append(file_of(module.__name__))

    faults = []
    for name, files in files_by_name.items():
        if len(files) > 1:
            *others, last = files
            faults.append(f"{last}: there is a setting `{name}` in {' and '.join(others)}, too.")

    fail_if_any(faults, "Give one of them another name", _HEADING)


def test_the_settings_of_a_part_import_nothing() -> None:
    faults: list[str] = []
    for module in offered("settings"):
        faults += imports_in(module)

    fail_if_any(faults, "Write `SETTINGS` as a literal", _HEADING)


def imports_in(module: ModuleType) -> Iterator[str]:
    """Yield a sentence about each import in the file of a module."""
    for node in ast.walk(ast.parse(Path(str(module.__file__)).read_text())):
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            yield f"{file_of(module.__name__)}:{node.lineno}: there is an import."
