"""The rules of the page "Add a command" that no other test enforces.

They are about the settings of parts, and about a test for each command.
"""

import ast
import re
from collections import Counter
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from pkgutil import walk_packages
from typing import Any, cast

import pytest

from sampletool.kit.command_folder import command_name
from sampletool.kit.effects import EFFECTS
from sampletool.kit.part_discovery import command_packages, offered
from sampletool.kit.project import ROOT
from sampletool.kit.settings import known
from sampletool.kit.settings.kinds import KINDS, KnownSetting, read_value
from sampletool.kit.testing.patterns import can_be_slow

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
        yield "write it in lower_snake, as it is a part of TOOL_…"


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
        yield "end the help with a full stop"


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
            yield "the pattern repeats a group. Put a + behind the repetition, as in (ab?)*+"
    except re.error as error:
        yield f"the pattern is not a regular expression: {error}"
    if str(facts["pattern_help"]).endswith("."):
        yield 'pattern_help completes the sentence "Use …": end it without a full stop'


def _faults_of_value(facts: dict[str, Any]) -> Iterator[str]:
    if facts["kind"] not in KINDS:
        yield f"kind must be one of {', '.join(KINDS)}"
    elif facts["default"] != known.AUTO:
        try:
            read_value(cast(KnownSetting, facts), facts["default"])
        except ValueError as error:
            yield f"the default: {error}"


def test_settings_of_parts_are_complete() -> None:
    faults = []
    for module in offered("settings"):
        for name, facts in module.SETTINGS.items():
            faults += faults_of(name, facts)

    assert faults == []


_RIGHT = {"kind": "count", "default": "5", "help": "So many."}
_CHOICE = {**_RIGHT, "kind": "choice", "choices": ("up", "down"), "default": "up"}
_PATTERN = {**_RIGHT, "kind": "pattern", "pattern": "[0-9]+", "pattern_help": "digits"}


@pytest.mark.parametrize(
    ("name", "facts"),
    [
        ("few", "5"),
        ("few", {"kind": "count", "default": "5"}),
        ("few", {**_RIGHT, "kind": "number"}),
        ("few", {**_RIGHT, "default": 5}),
        ("few", {**_RIGHT, "default": "none"}),
        ("few", {**_RIGHT, "help": "So many"}),
        ("few", {**_RIGHT, "former_names": (5,)}),
        ("few", {**_RIGHT, "deprecated": ""}),
        ("few-pieces", _RIGHT),
        ("few", {**_RIGHT, "choices": ("5", "6")}),
        ("few", {**_RIGHT, "kind": "choice"}),
        ("few", {**_CHOICE, "choices": ("up",)}),
        ("few", {**_CHOICE, "choices": ["up", "down"]}),
        ("few", {**_CHOICE, "choices": ("up", 5)}),
        ("few", {**_CHOICE, "choices": ("up", "auto")}),
        ("few", {**_CHOICE, "default": "sideways"}),
        ("few", {**_RIGHT, "kind": "pattern", "pattern": "[0-9]+"}),
        ("few", {**_PATTERN, "pattern": "[0-9"}),
        ("few", {**_PATTERN, "pattern": 5}),
        ("few", {**_PATTERN, "pattern": "(0|[0-9]+)+"}),
        ("few", {**_PATTERN, "pattern_help": "Digits."}),
        ("few", {**_PATTERN, "default": "five"}),
    ],
)
def test_a_wrong_setting_is_named(name: str, facts: Any) -> None:
    faults = faults_of(name, facts)

    assert faults != []
    for fault in faults:
        assert fault.startswith(f"{name}: ")


@pytest.mark.parametrize("more", [{}, {"former_names": ("some",), "deprecated": "Use many."}])
def test_a_right_setting_has_no_fault(more: dict[str, Any]) -> None:
    for facts in (_RIGHT, _CHOICE, _PATTERN):
        assert faults_of("few", {**facts, **more}) == []


def test_no_two_settings_have_one_name() -> None:
    names = Counter(known.SETTINGS.keys())
    for module in offered("settings"):
        names.update(module.SETTINGS.keys())

    assert [name for name, times in names.items() if times > 1] == []


def test_the_settings_of_a_part_import_nothing() -> None:
    for module in offered("settings"):
        assert_imports_nothing(module)


def assert_imports_nothing(module: Any) -> None:
    """Fail if the file of the module imports something."""
    for node in ast.walk(ast.parse(Path(str(module.__file__)).read_text())):
        assert not isinstance(node, (ast.Import, ast.ImportFrom)), module.__file__


def faults_of_effect(name: str, facts: Any) -> list[str]:
    """Return how to correct one effect of a part."""
    if not isinstance(facts, dict) or facts.keys() - {"changes_nothing"} != {"help"}:
        return [f"{name}: give it a help, and changes_nothing if that is true"]
    faults = []
    if name in EFFECTS:
        faults.append("the kit has this effect")
    if not re.fullmatch("[a-z]+", name):
        faults.append("write it as one word in small letters")
    if not isinstance(facts["help"], str) or not facts["help"].endswith("."):
        faults.append("the help must be a text that ends with a full stop")
    if not isinstance(facts.get("changes_nothing", True), bool):
        faults.append("changes_nothing must be True or False")
    return [f"{name}: {fault}" for fault in faults]


def test_effects_of_parts_are_complete_and_import_nothing() -> None:
    faults = []
    for module in offered("effects"):
        for name, facts in module.EFFECTS.items():
            faults += faults_of_effect(name, facts)
        assert_imports_nothing(module)

    assert faults == []


@pytest.mark.parametrize(
    ("name", "facts"),
    [
        ("server", "Data on a server."),
        ("server", {}),
        ("server", {"help": "Data on a server"}),
        ("server", {"help": "Data on a server.", "changes_nothing": "no"}),
        ("server", {"help": "Data on a server.", "reads": True}),
        ("Server", {"help": "Data on a server."}),
        ("store", {"help": "Data on a server."}),
    ],
)
def test_a_wrong_effect_is_named(name: str, facts: Any) -> None:
    faults = faults_of_effect(name, facts)

    assert faults != []
    for fault in faults:
        assert fault.startswith(f"{name}: ")


@pytest.mark.parametrize("more", [{}, {"changes_nothing": True}, {"changes_nothing": False}])
def test_a_right_effect_has_no_fault(more: dict[str, Any]) -> None:
    assert faults_of_effect("server", {"help": "Data on a server.", **more}) == []


def command_words(package: str) -> Iterator[list[str]]:
    """Yield the words of each command of a part: `["item", "add"]`."""
    for module in walk_packages(import_module(package).__path__, f"{package}."):
        module_names = module.name.removeprefix(f"{package}.").split(".")
        words = [command_name(module_name) for module_name in module_names]
        is_private = words[-1].startswith("-")
        if not module.ispkg and not is_private:
            yield words


def test_every_command_is_called_by_a_test_of_its_part() -> None:
    untested = []
    for package in command_packages():
        tests = ROOT / "tests" / package.split(".")[1]
        texts = "".join(file.read_text() for file in tests.rglob("*.py"))
        for words in command_words(package):
            # As `"item", "add"` or as `"item add"`.
            joined_words = '(?:", "| )'.join(words)
            if not re.search(rf'"{joined_words}\b', texts):
                untested.append(" ".join(words))

    assert untested == [], "write a test for each"
