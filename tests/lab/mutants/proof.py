"""What `tool lab check` says of each scenario. `make mutants` runs it in copies that lack a mechanism each."""

from pathlib import Path

import pytest

import sampletool
from sampletool.kit.testing.tool import Ran, Tool
from sampletool.lab.scenario import Removal, find, is_right, names
from tests.kit.mutants.source import Source

_PACKAGE = Path(sampletool.__file__).parent


@pytest.mark.parametrize("name", names())
def test_the_right_way_is_proved(name: str, tool: Tool) -> None:
    """Fails only by an answer that says why: a crash of the lab proves nothing about the mechanism."""
    ran = tool("lab", "check", name)

    assert not says_why(ran, taken_out_of(name))


def taken_out_of(name: str) -> list[Removal]:
    """Return the one that this copy lacks. Several may change the same code: what is there now tells which it is."""
    found = [each for each in find(name).mechanisms if is_taken_out(each)]
    return sorted(found, key=lambda each: len(each.instead))[-1:]


def is_taken_out(mechanism: Removal) -> bool:
    """Tell whether the replacement is in the code, and the mechanism is not, or only inside of the replacement."""
    file, _, function = mechanism.function.partition(":")
    source = Source(_PACKAGE.parent, file)
    if source.count(function, mechanism.instead) == 0:
        return False
    return source.count(function, mechanism.pattern) == 0 or mechanism.pattern.strip() in mechanism.instead


def says_why(ran: Ran, taken_out: list[Removal]) -> bool:
    """Whether the answer says that the right way breaks, names a schedule, and gives the reason that the page gives."""
    if ran.status != 3 or "although it is fixed, such as A" not in ran.error["message"].replace(
        "such as B", "such as A"
    ):
        return False
    reasons = []
    for variant in ran.response["data"]["variants"]:
        if is_right(variant["variant"]):
            reasons += variant["named_steps"]["reasons"]
            reasons += (variant["every_step"] or {"reasons": []})["reasons"]
    return all(any(each.breaks in reason for reason in reasons) for each in taken_out)
