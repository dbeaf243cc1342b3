"""The pages of the races: their generated blocks are current, and the pages fit their scenarios."""

import re
from pathlib import Path

import pytest

from docs.lab.generate import LABS, UnknownBlock, fill, generate, index, path_of
from sampletool.lab.scenario import find_scenario, scenario_names
from tests.lab.conftest import Lab

_MAX_RACES = 24


class _NoBlocks:
    """A scenario whose page has no generated blocks."""

    scenario = find_scenario("lost-config-update")

    def content_of(self, what: str) -> str | None:
        return "new" if what == "known" else None


@pytest.mark.parametrize("name", scenario_names())
def test_the_generated_blocks_of_a_page_are_current(lab: Lab, name: str) -> None:
    generated = generate(name, lab.fork_server)

    for file, content in generated.items():
        hint = f"docs/lab/{file} is out of date. Run: python -m docs.lab.generate {name}"
        assert (LABS / file).read_text() == content, hint


@pytest.mark.parametrize("name", scenario_names())
def test_a_page_begins_with_the_title_of_its_scenario_and_links_to_its_real_case(name: str) -> None:
    page = (LABS / f"{path_of(name)}.md").read_text()
    scenario = find_scenario(name)

    assert page.splitlines()[0] == f"# {scenario.title}"
    assert scenario.happened[1] in page
    assert scenario.no_verb in page.replace("\n", " ")


@pytest.mark.parametrize("name", scenario_names())
def test_a_page_shows_each_picture_once(name: str) -> None:
    page = (LABS / f"{path_of(name)}.md").read_text()

    shown = re.findall(r"<!-- fill: picture ([\w-]+) -->", page)

    assert sorted(shown) == sorted(set(shown))
    assert set(shown) == set(find_scenario(name).variants)


def test_the_index_lists_every_race_once() -> None:
    page = (LABS / "index.md").read_text()

    # A project that has removed a part may have empty lines in its place.
    is_current = set(index().splitlines()) <= set(page.splitlines())
    assert is_current, "docs/lab/index.md is out of date. Run: python -m docs.lab.generate"
    linked = re.findall(r"^\| [^|]+ \| \[[^\]]+\]\(([\w/-]+)\.md\)", page, re.MULTILINE)
    assert sorted(linked) == sorted(path_of(name) for name in scenario_names())


def test_there_are_at_most_24_races() -> None:
    assert len(scenario_names()) <= _MAX_RACES


def test_filling_replaces_what_is_between_the_marks_and_keeps_the_rest() -> None:
    page = "a <!-- fill: known -->old\ntext<!-- end --> b\n"

    assert fill(page, _NoBlocks()) == "a <!-- fill: known -->new<!-- end --> b\n"


def test_a_block_that_does_not_exist_is_an_error() -> None:
    with pytest.raises(UnknownBlock, match="lost-config-update: there is no block 'nosuch'"):
        fill("<!-- fill: nosuch --><!-- end -->", _NoBlocks())


def test_every_page_of_a_race_belongs_to_a_scenario() -> None:
    pages = {path.relative_to(LABS).with_suffix("").as_posix() for path in LABS.rglob("*.json")}

    assert pages == {path_of(name) for name in scenario_names()}
    assert all(Path(LABS / f"{page}.md").exists() for page in pages)
