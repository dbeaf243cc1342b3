"""Schedules as strings."""

import pytest

from sampletool.kit.contract.errors import InvalidValues
from sampletool.lab.recording import parse_schedule

from .conftest import Lab


def test_a_fault_is_no_step() -> None:
    assert parse_schedule("A1 A! B1 B*") == ["A1", "A!", "B1", "B*"]


@pytest.mark.parametrize("text", ["1A", "A1;B1", "Z1", "A-1", "ABAB"])
def test_what_is_no_schedule_is_refused(text: str) -> None:
    with pytest.raises(InvalidValues, match="schedule"):
        parse_schedule(text)


@pytest.mark.parametrize("text", ["A2", "A1 A1", "A1 A2 A3", "C1", "A1 A2 B1 B2 A3", "A", "A0"])
def test_a_schedule_that_the_workers_cannot_follow_is_refused(lab: Lab, text: str) -> None:
    with pytest.raises(InvalidValues, match="not possible there"):
        lab.play("lost-config-update", "naive", text)
