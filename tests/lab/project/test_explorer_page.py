"""What the explorer's page is made of, without a browser."""

import json
import re
from typing import Any

import pytest

from docs.lab.play import RECORDED
from sampletool.lab.explorer.page import described, html
from sampletool.lab.recording import Recording
from sampletool.lab.scenario import find, names
from tests.lab.conftest import Lab
from tests.lab.explorer.orders import orders


@pytest.mark.parametrize(("name", "variant"), [("lost-config-update", "wrong-two-locks"), ("torn-write", "naive")])
def test_the_graph_has_every_recording_and_no_more(lab: Lab, name: str, variant: str) -> None:
    explored = lab.explore(name, variant)

    way = described(find(name), {variant: explored})["ways"][variant]

    found = {schedule: (reason, events) for schedule, reason, events in orders(way)}
    assert set(found) == {recording.schedule for recording in explored.recordings}
    for recording in explored.recordings:
        reason, events = found[recording.schedule]
        assert reason == recording.reason
        assert [_facts_of(event) for event in events] == [tuple(map(str, each)) for each in _recorded(recording)]


def _facts_of(event: dict[str, Any]) -> tuple[str, ...]:
    return tuple(str(event.get(name, "")) for name in ("worker", "step", "outcome", "state", "note"))


def _recorded(recording: Recording) -> list[tuple[str, ...]]:
    return [(each.worker, each.step, each.outcome, each.state, each.note or "") for each in recording.events]


def test_a_step_is_at_its_line_of_the_source_that_is_shown(lab: Lab) -> None:
    explored = {"naive": lab.explore("lost-config-update", "naive")}

    way = described(find("lost-config-update"), explored)["ways"]["naive"]

    shown = {(event["step"], way["source"][event["line"]].strip()) for event in way["events"]}

    write = 'FILE.write_text(f"{text}{worker} = 1\\n")'
    assert shown == {("read", "text = FILE.read_text()"), ("write", write)}


def test_nothing_in_the_data_ends_its_element_and_nothing_on_the_page_is_loaded() -> None:
    evil = json.loads(RECORDED[0].read_text()) | {"title": "</script><script>alert(1)</script><!--&\u2028"}

    page = html([evil])

    assert page.count("<script") == page.count("</script") == 2
    data = re.search(r'<script type="application/json" id="data">(.*?)</script>', page, re.DOTALL)
    assert data is not None
    assert json.loads(data[1])["scenarios"][0]["title"] == evil["title"]
    loading = re.compile(r"""\b(?:src|href)=["'](?!data:,)|@import|url\(|fetch\(|XMLHttpRequest|\bimport\b""")
    assert loading.findall(page.replace(data[1], "")) == []


def test_there_is_a_recording_of_every_scenario_beside_the_pages() -> None:
    assert {file.stem for file in RECORDED} == {*names()}
