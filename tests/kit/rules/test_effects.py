"""sampletool/kit/testing/rules/test_effects.py: what is wrong with an effect is named."""

from typing import Any

import pytest

from sampletool.kit.testing.rules.test_effects import faults_of_effect


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
