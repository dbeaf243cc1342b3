"""The verdict of `tool lab check` about each scenario.

`make mutants` runs these tests in copies of the project, each of which lacks one mechanism.
"""

from pathlib import Path

import pytest

import sampletool
from sampletool.kit.testing.tool import Ran, Tool
from sampletool.lab.scenario import Mutation, find_scenario, is_right, scenario_names
from tests.kit.mutants.source import Source

_PACKAGE = Path(sampletool.__file__).parent


@pytest.mark.parametrize("name", scenario_names())
def test_the_right_way_is_proved(name: str, tool: Tool) -> None:
    """Fail only if the response gives the reason: a crash of the lab proves nothing."""
    ran = tool("lab", "check", name)

    assert not says_why(ran, taken_out_of(name))


def taken_out_of(name: str) -> list[Mutation]:
    """Return the mechanism that this copy lacks.

    Several mechanisms may be in the same code, so look at what replaces the code here.
    """
    found = [each for each in find_scenario(name).mechanisms if is_taken_out(each)]
    return sorted(found, key=lambda each: len(each.replacement_code))[-1:]


def is_taken_out(mechanism: Mutation) -> bool:
    """Return whether the replacement is in the code, and the mechanism is not.

    The replacement itself may contain the mechanism.
    """
    file, _, function = mechanism.function.partition(":")
    source = Source(_PACKAGE.parent, file)
    if source.count(function, mechanism.replacement_code) == 0:
        return False
    return (
        source.count(function, mechanism.original_code) == 0
        or mechanism.original_code.strip() in mechanism.replacement_code
    )


def says_why(ran: Ran, taken_out: list[Mutation]) -> bool:
    """Return whether the fixed variant breaks, with a schedule and the reason on the page."""
    if ran.status != 3 or "although it is fixed, such as A" not in ran.error["message"].replace(
        "such as B", "such as A"
    ):
        return False
    reasons = []
    for variant in ran.response["data"]["variants"]:
        if is_right(variant["variant"]):
            reasons += variant["named_steps"]["reasons"]
            reasons += (variant["every_step"] or {"reasons": []})["reasons"]
    return all(any(each.expected_problem in reason for reason in reasons) for each in taken_out)
