"""Every scenario file, whatever is added: it breaks where it says so and holds where it says so."""

from collections.abc import Iterator

import pytest

from sampletool.kit.stepping.fork_server import ForkServer
from sampletool.lab.draw import timeline
from sampletool.lab.explore import fork_server_for
from sampletool.lab.play import play
from sampletool.lab.scenario import FIXED, NAIVE, find, is_right, module_of, names

EVERY = pytest.mark.parametrize("name", names())


@pytest.fixture(scope="module")
def fork_server() -> Iterator[ForkServer]:
    """One for all: to start one takes longer than many schedules."""
    with fork_server_for(*names()) as server:
        yield server


@EVERY
def test_a_scenario_tells_its_whole_story(name: str) -> None:
    scenario = find(name)

    assert len(module_of(name).__doc__.split()) > 40
    assert {NAIVE, FIXED} <= set(scenario.ways)
    assert all(way == NAIVE or way.startswith(("wrong-", FIXED)) for way in scenario.ways)
    assert scenario.happened[1].startswith("https://")
    assert scenario.question.endswith("?")
    assert all(text and text[0].isupper() and text.endswith((".", "?")) for text in (scenario.rule, scenario.promise))


@EVERY
def test_its_schedules_show_what_they_are_there_to_show_and_replay_to_the_same(
    name: str, fork_server: ForkServer
) -> None:
    for variant, way in find(name).ways.items():
        first = play(name, variant, way.shows, fork_server=fork_server).recording

        assert first.is_broken != is_right(variant), f"{variant}: {first.reason}"
        assert first.schedule.startswith(way.shows)
        assert way.breaks in (first.reason or "")
        assert max(map(len, timeline(first))) <= 80
        assert play(name, variant, first.schedule, fork_server=fork_server).recording == first
