"""Every scenario file, whatever is added: it breaks where it says so and holds where it says so."""

import pytest

from sampletool.lab.draw import timeline
from sampletool.lab.scenario import FIXED, NAIVE, find_scenario, is_right, scenario_names
from sampletool.lab.scenarios import torn_write

from .conftest import Lab

EVERY = pytest.mark.parametrize("name", scenario_names())


@EVERY
def test_a_scenario_tells_its_whole_story(name: str) -> None:
    scenario = find_scenario(name)

    assert len(scenario.story.split()) > 40
    assert {NAIVE, FIXED} <= set(scenario.variants)
    assert all(
        variant == NAIVE or variant.startswith(("wrong-", FIXED)) for variant in scenario.variants
    )
    assert scenario.happened[1].startswith("https://")
    assert scenario.question.endswith("?")
    assert all(
        text and text[0].isupper() and text.endswith((".", "?"))
        for text in (scenario.rule, scenario.promise)
    )


@EVERY
def test_its_schedules_show_what_they_are_there_to_show_and_replay_to_the_same(
    lab: Lab, name: str
) -> None:
    for variant_name, variant in find_scenario(name).variants.items():
        first = lab.play(name, variant_name, variant.schedule)

        assert first.is_broken != is_right(variant_name), f"{variant_name}: {first.reason}"
        assert first.schedule.startswith(variant.schedule)
        assert variant.expected_problem in (first.reason or "")
        assert max(map(len, timeline(first))) <= 80
        if variant_name in (NAIVE, FIXED):  # the others are played as these are
            assert lab.play(name, variant_name, first.schedule) == first


def test_the_picture_of_a_torn_write_shows_each_line_that_was_written() -> None:
    seen = [torn_write.in_one_line(text) for text in ("", "[settings]\n", "[settings]\na = 1\n")]

    assert seen == ["(empty)", "[settings]", "[settings] a=1"]
