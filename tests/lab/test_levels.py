"""The order of the scenarios as a course."""

import pytest

from sampletool.lab.levels import (
    LEVELS,
    OTHER_LEVEL,
    level_of,
    names_by_level,
    names_in_order,
)
from sampletool.lab.scenario import scenario_names


def test_each_scenario_has_one_place_in_the_course() -> None:
    assert sorted(names_in_order()) == scenario_names()


def test_the_course_starts_with_the_lost_update() -> None:
    assert names_in_order()[0] == "lost-config-update"
    assert level_of("lost-config-update") == "start here"


def test_the_levels_come_in_the_order_of_the_list() -> None:
    shown = list(names_by_level())

    assert shown == [level for level in LEVELS if level in shown]


def test_a_scenario_without_a_level_comes_last(monkeypatch: pytest.MonkeyPatch) -> None:
    all_names = [*scenario_names(), "a-new-race"]
    monkeypatch.setattr("sampletool.lab.levels.scenario_names", lambda: all_names)

    assert names_in_order()[-1] == "a-new-race"
    assert level_of("a-new-race") == OTHER_LEVEL


def test_a_level_without_scenarios_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sampletool.lab.levels.scenario_names", lambda: ["stale-lock"])

    assert names_by_level() == {"locks": ["stale-lock"]}


def test_an_unknown_scenario_has_no_level() -> None:
    with pytest.raises(KeyError):
        level_of("nosuch")
