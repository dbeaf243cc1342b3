"""Every scenario file, whatever is added: it breaks where it says so, holds where it says so, and can tell the two."""

import shutil
from pathlib import Path

import pytest

from sampletool.lab.explore import explore, troupe_for
from sampletool.lab.play import PACKAGE_ROOT, play
from sampletool.lab.scenario import FIXED, NAIVE, find, module_of, names
from sampletool.lab.verdict import UnexpectedOutcome

EVERY = pytest.mark.parametrize("name", names())


@EVERY
def test_a_scenario_tells_its_whole_story(name: str) -> None:
    scenario = find(name)

    assert len(module_of(name).__doc__.split()) > 40
    assert {NAIVE, FIXED} <= set(scenario.ways)
    assert all(way in (FIXED, NAIVE) or way.startswith("wrong-") for way in scenario.ways)
    assert scenario.happened[1].startswith("https://")
    assert scenario.question.endswith("?")
    assert all(text and text[0].isupper() and text.endswith((".", "?")) for text in (scenario.rule, scenario.good))


@EVERY
def test_its_schedules_show_what_they_are_there_to_show_and_replay_to_the_same(name: str) -> None:
    with troupe_for(name) as troupe:
        for variant, way in find(name).ways.items():
            first = play(name, variant, way.shows, troupe=troupe).recording

            assert first.is_broken == (variant != FIXED), f"{variant}: {first.reason}"
            assert first.schedule.startswith(way.shows)
            assert play(name, variant, first.schedule, troupe=troupe).recording == first


@EVERY
def test_the_right_way_holds_on_every_schedule(name: str) -> None:
    explored = explore(name, FIXED)

    assert explored.recordings
    assert explored.reasons == {}
    assert len({recording.schedule for recording in explored.recordings}) == len(explored.recordings)


@EVERY
def test_every_wrong_way_is_found_to_be_wrong(name: str) -> None:
    for variant in set(find(name).ways) - {FIXED}:
        assert explore(name, variant, stop_at_bad=True).bad, variant


@EVERY
def test_without_its_mechanism_the_right_way_breaks(name: str, tmp_path: Path) -> None:
    removal = find(name).removal
    package = tmp_path / "without" / "sampletool"
    shutil.copytree(PACKAGE_ROOT / "sampletool", package, ignore=shutil.ignore_patterns("__pycache__"))
    text = (package / removal.file).read_text()
    assert text.count(removal.line) == 1, f"{removal.file} does not have it, or has it twice"
    (package / removal.file).write_text(text.replace(removal.line, removal.instead))

    try:
        bad = explore(name, FIXED, package_root=package.parent, stop_at_bad=True).bad
    except UnexpectedOutcome as surprise:
        pytest.fail(f"the mechanism was not taken out, the scenario was: {surprise.message}")

    assert bad
