"""Every scenario file, whatever is added: it breaks where it says so, holds where it says so, and can tell the two."""

import shutil
from pathlib import Path

import pytest

from docs.lab.generate import LABS, folder_of, generate, index
from sampletool.lab.errors import UnexpectedOutcome
from sampletool.lab.explore import explore, fork_server_for
from sampletool.lab.play import play
from sampletool.lab.scenario import FIXED, NAIVE, find, module_of, names
from sampletool.lab.scratch import PACKAGE_ROOT

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
    with fork_server_for(name) as fork_server:
        for variant, way in find(name).ways.items():
            first = play(name, variant, way.shows, fork_server=fork_server).recording

            assert first.is_broken == (variant != FIXED), f"{variant}: {first.reason}"
            assert first.schedule.startswith(way.shows)
            assert play(name, variant, first.schedule, fork_server=fork_server).recording == first


@EVERY
def test_on_every_schedule_the_right_way_holds_the_wrong_ones_are_found_out_and_its_page_says_so(name: str) -> None:
    made = generate(name)

    assert f"| fixed | {find(name).ways[FIXED].says} | " in made[f"{folder_of(name)}{name}.md"]
    for file, content in made.items():
        assert (LABS / file).read_text() == content, (
            f"docs/labs/{file} is stale: run python -m docs.lab.generate {name}"
        )


def test_the_pages_are_those_of_the_scenarios() -> None:
    assert set(index().splitlines()) <= set((LABS / "index.md").read_text().splitlines())
    assert {path.stem for path in LABS.rglob("*.md")} == {*names(), "index"}


@EVERY
def test_without_its_mechanism_the_right_way_breaks(name: str, tmp_path: Path) -> None:
    removal = find(name).removal
    package = tmp_path / "without" / "sampletool"
    shutil.copytree(PACKAGE_ROOT / "sampletool", package, ignore=shutil.ignore_patterns("*.pyc.*"))
    text = (package / removal.file).read_text()
    assert text.count(removal.line) == 1, f"{removal.file} does not have it, or has it twice"
    (package / removal.file).write_text(text.replace(removal.line, removal.instead))

    try:
        bad = explore(name, FIXED, package_root=package.parent, stop_at_bad=True).bad
    except UnexpectedOutcome as surprise:
        pytest.fail(f"the mechanism was not taken out, the scenario was: {surprise.message}")

    assert bad
