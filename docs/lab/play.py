"""Build the explorer's pages of the site, from the recordings next to the pages of the races.

`make docs` builds them below lab/play. They are not in the repository:

* NAME.html is the page of a race. It opens with the bug.
* NAME/VARIANT/SCHEDULE.html is the page of one schedule, see `schedules_with_page`.

All of them load the same style and the same script, and data/NAME.js with the recordings of their
race. Each page has a title, a description and a picture, which other sites show with a link to it.
Every other schedule has an address, too: the page of its race with the schedule after a `#`.
"""

import json
import re
from collections.abc import Mapping
from html import escape
from pathlib import Path
from typing import Any

from docs.lab.generate import path_of
from docs.site.previews import preview_tags
from sampletool.lab.explorer.page import (
    DATA_VARIABLE,
    SCRIPT_NAME,
    STYLE_NAME,
    SitePage,
    explorer_data,
    menu_of,
    script_text,
    site_page,
    style_text,
)
from sampletool.lab.explorer.scenario_data import schedules_of
from sampletool.lab.levels import names_in_order
from sampletool.lab.scenario import INTERRUPT, KILL, POWER_CUT

_HERE = Path(__file__).parent

MAX_SCHEDULES_WITH_PAGES = 30
"""The number of schedules of a variant up to which each of them has a page."""

PLAY_FOLDER = "lab/play"
"""Where the pages are on the site."""

_FILE_NAMES_OF_FAULTS = {KILL: "kill", INTERRUPT: "term", POWER_CUT: "power-cut"}

_Data = Mapping[str, Any]


def recorded_scenarios() -> list[dict[str, Any]]:
    """Return the data of all scenarios, in the order of the menu."""
    files = [_HERE / f"{path_of(name)}.json" for name in names_in_order()]
    return [json.loads(file.read_text()) for file in files]


def add_to_site(site: Path) -> None:
    """Write the explorer's pages, and the files that they load."""
    folder = site / PLAY_FOLDER
    scenarios = recorded_scenarios()
    menu = menu_of(scenarios)
    for entry in menu:
        entry["page"] = f"{entry['name']}.html"
        entry["article"] = f"../{path_of(entry['name'])}.html"
    _write(folder / STYLE_NAME, style_text())
    _write(folder / SCRIPT_NAME, script_text())
    for scenario in scenarios:
        _add_race(folder, scenario, menu)


def schedules_with_page(variant: _Data) -> list[str]:
    """Return the schedules of a variant that have a page of their own.

    These are all schedules if there are few. Otherwise they are the schedule that the page of the
    race tells, and the shortest one of each result.
    """
    results = dict(schedules_of(variant))
    if len(results) <= MAX_SCHEDULES_WITH_PAGES:
        return list(results)
    by_length = sorted(results, key=lambda schedule: (len(schedule), schedule))
    chosen = [next(each for each in by_length if each.startswith(variant["shows"]))]
    seen_results = set()
    for schedule in by_length:
        result = results[schedule]
        if result not in seen_results:
            seen_results.add(result)
            chosen.append(schedule)
    return list(dict.fromkeys(chosen))


def page_of_schedule(race: str, variant: str, schedule: str) -> str:
    """Return the path of the page of a schedule, below the folder of the explorer's pages."""
    name = re.sub(r"[^\w ]", lambda match: _name_of_fault(match[0]), schedule)
    return f"{race}/{variant}/{name.replace(' ', '-')}.html"


def _name_of_fault(kind: str) -> str:
    # A fault that has no name yet gets the number of its character.
    return f".{_FILE_NAMES_OF_FAULTS.get(kind, ord(kind))}"


def _add_race(folder: Path, scenario: _Data, menu: list[dict[str, Any]]) -> None:
    name = scenario["name"]
    pages = {}
    for variant, data in scenario["ways"].items():
        for schedule in schedules_with_page(data):
            path = page_of_schedule(name, variant, schedule)
            pages[_address(name, variant, schedule)] = path
            _write(folder / path, _schedule_page(scenario, variant, schedule, path))
    _write(folder / f"{name}.html", _race_page(scenario, pages))
    own_menu = [dict(entry) for entry in menu]
    for entry in own_menu:
        if entry["name"] == name:
            entry["pages"] = pages
    data = json.dumps(explorer_data([scenario], own_menu), separators=(",", ":"))
    _write(folder / _data_file(name), f"window.{DATA_VARIABLE} = {data};\n")


def _race_page(scenario: _Data, pages: Mapping[str, str]) -> str:
    name = scenario["name"]
    title = f"Play it: {scenario['title']}"
    links = [f'<li><a href="{path}">{escape(address)}</a></li>' for address, path in pages.items()]
    text = "\n".join(
        [
            f"<h2>{escape(scenario['title'])}</h2>",
            f"<p>{escape(scenario['subtitle'])}</p>",
            f"<p>What must be true: {escape(scenario['promise'])}</p>",
            "<ul>",
            *links,
            "</ul>",
        ]
    )
    return _page(f"{name}.html", name, title, scenario["subtitle"], text, start=f"{name}/naive")


def _schedule_page(scenario: _Data, variant: str, schedule: str, path: str) -> str:
    name = scenario["name"]
    data = scenario["ways"][variant]
    reason = dict(schedules_of(data))[schedule]
    result = f"It breaks: {reason}" if reason else f"It holds: {scenario['promise']}"
    title = f"{scenario['title']}: {schedule} ({variant})"
    steps = [f"{event['worker']}: {event['step']}" for event in _events_of(data, schedule)]
    description = f"{result} The steps are {', '.join(steps)}."
    items = [f"<li>{escape(step)}</li>" for step in steps]
    lines = [f"<h2>{escape(title)}</h2>", "<ol>", *items, "</ol>", f"<p>{escape(result)}</p>"]
    text = "\n".join(lines)
    start = _address(name, variant, schedule)
    return _page(path, name, title, description, text, start=start)


def _events_of(variant: _Data, schedule: str) -> list[dict[str, Any]]:
    """Return the events of a schedule."""
    indexes, next_nodes, *_ = variant["nodes"][variant["root"]]
    indexes = list(indexes)
    for token in schedule.split():
        new_indexes, next_nodes, *_ = variant["nodes"][next_nodes[token]]
        indexes += new_indexes
    return [variant["events"][index] for index in indexes]


def _page(path: str, name: str, title: str, description: str, text: str, *, start: str) -> str:
    root = "../" * path.count("/")
    icon = f"{root}../../_static/favicon.svg"
    tags = [
        *preview_tags(f"{PLAY_FOLDER}/{path}", title, description),
        f'<link rel="icon" href="{icon}" type="image/svg+xml">',
    ]
    page = SitePage(
        title=title,
        metadata="\n".join(tags),
        text=text,
        root=root,
        data_file=_data_file(name),
        start=start,
    )
    return site_page(page)


def _data_file(name: str) -> str:
    return f"data/{name}.js"


def _address(race: str, variant: str, schedule: str) -> str:
    """Return the address of a schedule as the script writes it."""
    return f"{race}/{variant}/{schedule.replace(' ', '.')}"


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
