"""The HTML and the data of the explorer, without a browser."""

import json
import posixpath
import re
from pathlib import Path
from typing import Any

import pytest

from docs.lab.play import (
    MAX_SCHEDULES_WITH_PAGES,
    PLAY_FOLDER,
    add_to_site,
    page_of_schedule,
    recorded_scenarios,
    schedules_with_page,
)
from docs.site.previews import PICTURE
from sampletool.lab.explorer.page import one_file
from sampletool.lab.explorer.scenario_data import scenario_data, schedules_of
from sampletool.lab.recording import Recording
from sampletool.lab.scenario import find_scenario, scenario_names
from tests.lab.conftest import Lab
from tests.lab.explorer.orders import orders

_FIELDS_OF_EVENTS = ("worker", "step", "outcome", "state", "note")


@pytest.mark.parametrize(
    ("name", "variant"), [("lost-config-update", "wrong-two-locks"), ("torn-write", "naive")]
)
def test_the_tree_has_every_recording_and_no_more(lab: Lab, name: str, variant: str) -> None:
    explored = lab.explore(name, variant)

    data = scenario_data(find_scenario(name), {variant: explored})["ways"][variant]

    found = {order.schedule: order for order in orders(data)}
    assert set(found) == {recording.schedule for recording in explored.recordings}
    for recording in explored.recordings:
        order = found[recording.schedule]
        assert order.reason == recording.reason
        assert [_facts_of(event) for event in order.events] == _recorded_facts(recording)


def _facts_of(event: dict[str, Any]) -> tuple[str, ...]:
    return tuple(str(event.get(field, "")) for field in _FIELDS_OF_EVENTS)


def _recorded_facts(recording: Recording) -> list[tuple[str, ...]]:
    facts: list[tuple[str, ...]] = []
    for event in recording.events:
        facts.append((event.worker, event.step, event.outcome, event.state, event.note or ""))
    return facts


def test_a_step_is_at_its_line_of_the_shown_source(lab: Lab) -> None:
    explored = {"naive": lab.explore("lost-config-update", "naive")}

    data = scenario_data(find_scenario("lost-config-update"), explored)["ways"]["naive"]

    lines = {(event["step"], data["source"][event["line"]].strip()) for event in data["events"]}
    write = 'FILE.write_text(f"{text}{worker} = 1\\n")'
    assert lines == {("read", "text = FILE.read_text()"), ("write", write)}


def test_nothing_in_the_data_ends_its_element_and_nothing_on_the_page_is_loaded() -> None:
    evil_title = "</script><script>alert(1)</script><!--&\u2028"
    evil = recorded_scenarios()[0] | {"title": evil_title}

    page = one_file([evil])

    assert page.count("<script") == page.count("</script") == 2
    data = re.search(r'<script type="application/json" id="data">(.*?)</script>', page, re.DOTALL)
    assert data is not None
    assert json.loads(data[1])["scenarios"][0]["title"] == evil_title
    loading = re.compile(
        r"""\b(?:src|href)=["'](?!data:,)|@import|url\(|fetch\(|XMLHttpRequest|\bimport\b"""
    )
    assert loading.findall(page.replace(data[1], "")) == []


def test_there_is_a_recording_of_every_scenario_beside_the_pages() -> None:
    assert {scenario["name"] for scenario in recorded_scenarios()} == {*scenario_names()}


def test_each_page_of_the_explorer_has_a_title_a_description_and_a_picture(
    tmp_path: Path,
) -> None:
    add_to_site(tmp_path)

    pages = sorted((tmp_path / PLAY_FOLDER).rglob("*.html"))
    titles = []
    for page in pages:
        html = page.read_text()
        titles += re.findall(r"<title>(.*)</title>", html)
        (description,) = re.findall(r'<meta property="og:description" content="([^"]*)">', html)
        (picture,) = re.findall(r'<meta property="og:image" content="([^"]*)">', html)
        folder = page.parent.relative_to(tmp_path).as_posix()
        assert len(description) > 20, page
        assert posixpath.normpath(posixpath.join(folder, picture)).endswith(PICTURE), page
    assert len(set(titles)) == len(pages)


def test_each_schedule_has_a_page_and_of_many_the_told_one_and_one_of_each_result() -> None:
    paths = set()
    for scenario in recorded_scenarios():
        for variant, data in scenario["ways"].items():
            results = dict(schedules_of(data))
            chosen = schedules_with_page(data)
            paths |= {page_of_schedule(scenario["name"], variant, each) for each in chosen}
            if len(results) <= MAX_SCHEDULES_WITH_PAGES:
                assert chosen == list(results)
            else:
                assert any(schedule.startswith(data["shows"]) for schedule in chosen)
                assert {results[schedule] for schedule in chosen} == set(results.values())
                assert len(chosen) <= len(set(results.values())) + 1
    # No two schedules share a page.
    total = 0
    for scenario in recorded_scenarios():
        total += sum(len(schedules_with_page(data)) for data in scenario["ways"].values())
    assert len(paths) == total
