"""The effects that a part adds are complete, and have names of their own."""

import re
from typing import Any

from ...effects import EFFECTS
from ...part_discovery import offered
from ..how_to import fail_if_any
from .own_code import file_of
from .test_settings import imports_in

_HEADING = "The spec"


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
        faults.append("the help must be a text that ends with a period")
    if not isinstance(facts.get("changes_nothing", True), bool):
        faults.append("changes_nothing must be True or False")
    return [f"{name}: {fault}" for fault in faults]


def test_the_effects_of_each_part_are_complete() -> None:
    faults = []
    for module in offered("effects"):
        for name, facts in module.EFFECTS.items():
            for fault in faults_of_effect(name, facts):
                faults.append(f"{file_of(module.__name__)}: {fault}.")

    fail_if_any(faults, "Write the effect as in the how-to", _HEADING)


def test_the_effects_of_a_part_import_nothing() -> None:
    faults: list[str] = []
    for module in offered("effects"):
        faults += imports_in(module)

    fail_if_any(faults, "Write `EFFECTS` as a literal", _HEADING)
