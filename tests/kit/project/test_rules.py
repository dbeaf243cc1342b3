"""The rules of the page "Add a command" that no other test enforces: settings of parts, a test for each command."""

import ast
import re
from collections import Counter
from importlib import import_module
from pathlib import Path
from pkgutil import walk_packages
from typing import Any

import pytest

from sampletool.kit.parts import command_packages, offered
from sampletool.kit.settings import known
from tests.kit.trees import ROOT

_FACTS = known.all_settings()["jobs"]
_OPTIONAL_FACTS = {"deprecated", "former_names"}
_KINDS = ("count", "duration", "text")


def faults_of(name: str, facts: Any) -> list[str]:
    """What is wrong with one setting of a part, in words of how to correct it."""
    if not isinstance(facts, dict) or {*facts} - _OPTIONAL_FACTS != {*_FACTS}:
        return [f"{name}: give it exactly {', '.join(_FACTS)}"]
    faults = [
        f"{name}: {fact} has to be a text"
        for fact, text in facts.items()
        if fact != "former_names" and (not isinstance(text, str) or not text)
    ]
    if not (name.isidentifier() and name == name.lower()):
        faults.append(f"{name}: write it in lower_snake, as it is a part of TOOL_…")
    if facts["kind"] not in _KINDS:
        faults.append(f"{name}: kind is one of {', '.join(_KINDS)}")
    elif not faults and facts["default"] != known.AUTO:
        try:
            known.read_as(facts["kind"], facts["default"])
        except ValueError as error:
            faults.append(f"{name}: the default: {error}")
    if not all(isinstance(former, str) for former in facts.get("former_names", ())):
        faults.append(f"{name}: former_names is a tuple of texts")
    if not str(facts["help"]).endswith("."):
        faults.append(f"{name}: end the help with a full stop")
    return faults


def test_settings_of_parts_are_complete() -> None:
    faults = [
        fault
        for module in offered("settings")
        for item in module.SETTINGS.items()
        for fault in faults_of(*item)
    ]

    assert faults == []


_RIGHT = {"kind": "count", "default": "5", "help": "So many."}


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
    ],
)
def test_a_wrong_setting_is_named(name: str, facts: Any) -> None:
    assert faults_of("few", _RIGHT) == []
    assert faults_of("few", {**_RIGHT, "former_names": ("some",), "deprecated": "Use many."}) == []
    assert [fault.partition(":")[0] for fault in faults_of(name, facts)] == [name]


def test_no_two_settings_have_one_name() -> None:
    names = Counter(
        [*known.SETTINGS, *(name for module in offered("settings") for name in module.SETTINGS)]
    )

    assert [name for name, times in names.items() if times > 1] == []


def test_the_settings_of_a_part_import_nothing() -> None:
    for module in offered("settings"):
        nodes = ast.walk(ast.parse(Path(module.__file__).read_text()))
        assert not any(isinstance(node, (ast.Import, ast.ImportFrom)) for node in nodes), (
            module.__file__
        )


def test_every_command_is_called_by_a_test_of_its_part() -> None:
    """As `"item", "add"` or as `"item add"`."""
    silent = []
    for package in command_packages():
        tests = ROOT / "tests" / package.split(".")[1]
        texts = "".join(file.read_text() for file in tests.rglob("*.py"))
        for module in walk_packages(import_module(package).__path__, f"{package}."):
            words = module.name.removeprefix(f"{package}.").replace("_", "-").split(".")
            is_command = not module.ispkg and words[-1][0] != "-"
            if is_command and not re.search('"' + '(?:", "| )'.join(words) + r"\b", texts):
                silent.append(" ".join(words))

    assert silent == [], "write a test for each"
