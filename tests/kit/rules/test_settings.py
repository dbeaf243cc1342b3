"""sampletool/kit/testing/rules/test_settings.py: what is wrong with a setting is named."""

from typing import Any

import pytest

from sampletool.kit import program
from sampletool.kit.testing.rules.test_settings import faults_of

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


def test_a_wrong_name_is_explained_with_the_variable_of_the_program(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(program, "PROGRAM", "led-ger")

    (fault,) = faults_of("Few", _RIGHT)

    assert fault == "Few: write it in lower_snake, as it is a part of LED_GER_…"


def test_a_help_without_a_period_is_named() -> None:
    assert faults_of("few", {**_RIGHT, "help": "So many"}) == ["few: end the help with a period"]
