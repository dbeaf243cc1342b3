"""The explorer in a real browser: each race is played to its end with the keyboard only.

All tests share one browser, because it takes longer to start one than to run most of the tests.
"""

import json
import random
import re
import shutil
from collections.abc import Iterator
from importlib import resources
from pathlib import Path
from typing import Any

import pytest

from docs.lab.play import PLAY_FOLDER, add_to_site, recorded_scenarios, schedules_with_page
from docs.site.previews import STATIC
from sampletool.kit.project import ROOT
from sampletool.kit.testing.scale import SOAK
from sampletool.kit.testing.tool import Tool
from sampletool.lab.explorer.page import one_file
from tests.lab.explorer.browser import Browser, NoBrowser, browsing
from tests.lab.explorer.orders import Order, orders

_STRIKE_KEYS = {"!": "k", "~": "t", "*": "p"}
_SCENARIOS = recorded_scenarios()
_VARIANTS = [(scenario["name"], variant) for scenario in _SCENARIOS for variant in scenario["ways"]]
_FIRST_RACE = "lost-config-update"
_ADDRESS = "decodeURIComponent(location.hash)"
_ANSWERS = "[...document.querySelectorAll('.answer span')].map((each) => each.textContent)"


class Explorer:
    """The explorer's pages of the site, and the browser that shows them."""

    def __init__(self, browser: Browser, site: Path) -> None:
        self.browser = browser
        self.folder = f"{site.as_uri()}/{PLAY_FOLDER}"

    def open(self, name: str, address: str = "") -> None:
        """Open the page of a race, or of a schedule."""
        suffix = f"#{address}" if address else ""
        self.browser.open(f"{self.folder}/{name}.html{suffix}")

    def text(self, selector: str) -> str:
        return str(self.browser.run(f"document.querySelector({json.dumps(selector)}).textContent"))

    def play(self, schedule: str) -> None:
        """Press the keys for a schedule. For `A2!3`, they are the number of events and the kill."""
        for token in schedule.split():
            strike = re.fullmatch(r"[A-Z]\d*(?P<kind>[!~*])(?P<events>\d*)", token)
            keys = token[0].lower()
            if strike is not None:
                keys = strike["events"] + _STRIKE_KEYS[strike["kind"]]
            for key in keys:
                self.browser.press(key)

    def answer(self, text: str) -> None:
        answers = self.browser.run(_ANSWERS)
        self.browser.press(str(answers.index(text) + 1))


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build the explorer's pages of the site, without the other pages."""
    directory = tmp_path_factory.mktemp("site")
    add_to_site(directory)
    shutil.copytree(STATIC, directory / "_static")
    return directory


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    try:
        with browsing(tmp_path_factory.mktemp("browser")) as browser:
            yield browser
    except NoBrowser as reason:
        pytest.skip(f"no browser: {reason}")


@pytest.fixture
def explorer(browser: Browser, site: Path) -> Iterator[Explorer]:
    """Open the explorer without progress. Afterwards, check that it did not load anything else."""
    browser.show_as()
    explorer = Explorer(browser, site)
    explorer.open(_FIRST_RACE)
    browser.run("localStorage.clear()")
    browser.requests.clear()
    browser.complaints.clear()
    explorer.open(_FIRST_RACE)
    yield explorer
    assert browser.complaints == []
    allowed = (f"{site.as_uri()}/", "about:blank")
    assert [each for each in browser.requests if not each.startswith(allowed)] == []


def _order_to_play(variant: str, data: dict[str, Any]) -> Order:
    """Return any order of a fix, and the shortest order that breaks any other variant."""
    recorded = list(orders(data))
    if variant.startswith("fixed"):
        return recorded[0]
    broken = [order for order in recorded if order.reason]
    return min(broken, key=lambda order: len(order.schedule))


def test_every_race_is_played_to_its_end_by_keyboard_alone(explorer: Explorer) -> None:
    browser = explorer.browser
    played = []
    for scenario in _SCENARIOS:
        browser.wait_for("document.querySelector('#race')?.value", scenario["name"])
        for variant, data in scenario["ways"].items():
            order = _order_to_play(variant, data)
            outcome = order.reason or scenario["promise"]
            count = len(list(orders(data)))

            explorer.play(order.schedule)
            explorer.answer(outcome)

            verdict = explorer.text("#verdict")
            assert verdict.startswith("It broke" if order.reason else "It holds")
            assert "That is what you said." in verdict
            assert outcome in explorer.text("#message")
            replay = f'--variant {variant} --schedule "{order.schedule}"'
            assert replay in explorer.text("#command")
            if variant.startswith("fixed"):
                browser.press("x")
                assert "None of them breaks it." in explorer.text("#task")
                assert explorer.text("#count").startswith(f"{count} of {count} seen, 0 bad")
            else:
                assert "You have found 1 of the" in explorer.text("#task")
            chosen = browser.run("document.querySelector('#variants :checked').value")
            played.append((scenario["name"], chosen))
            browser.press("n")

    assert played == _VARIANTS
    browser.wait_for("document.querySelector('#race')?.value", _FIRST_RACE)
    total = len(_VARIANTS)
    assert explorer.text("#progress") == f"You have solved {total} of {total} variants."


def test_the_progress_is_kept_for_all_races_until_the_reader_resets_it(
    explorer: Explorer,
) -> None:
    solve_naive = "A1 B1 A2 B2"

    explorer.play(solve_naive)
    explorer.browser.press("0")
    explorer.open("torn-write")
    progress_on_another_page = explorer.text("#progress")
    entry_in_menu = explorer.text(f"#race option[value={_FIRST_RACE}]")
    explorer.open(_FIRST_RACE)
    count_after_reload = explorer.text("#count")
    explorer.browser.run("document.querySelector('#reset-progress').click()")
    explorer.open(_FIRST_RACE)

    assert progress_on_another_page == f"You have solved 1 of {len(_VARIANTS)} variants."
    assert entry_in_menu.endswith("(1 of 6)")
    assert count_after_reload == "1 of 6 seen, 1 bad"
    assert explorer.text("#count") == "0 of 6 seen"
    assert explorer.text("#progress") == f"You have solved 0 of {len(_VARIANTS)} variants."


def test_two_tabs_do_not_lose_each_others_progress(explorer: Explorer) -> None:
    # Another tab solves another race after this page has read the progress.
    explorer.browser.run("localStorage.setItem('tool-lab/solved/torn-write/naive', '1')")

    explorer.play("A1 B1 A2 B2")
    explorer.browser.press("0")
    explorer.open(_FIRST_RACE)

    assert explorer.text("#progress").startswith("You have solved 2 of")


def test_the_menu_has_the_levels_and_opens_with_the_first_race(explorer: Explorer) -> None:
    labels = explorer.browser.run(
        "[...document.querySelectorAll('#race optgroup')].map((group) => group.label)"
    )

    assert labels == list(dict.fromkeys(scenario["level"] for scenario in _SCENARIOS))
    assert explorer.browser.run("document.querySelector('#race').value") == _FIRST_RACE
    assert explorer.browser.run("document.querySelector('#race').selectedIndex") == 0


def test_the_page_of_a_schedule_shows_its_end_and_has_an_address_to_share(
    explorer: Explorer,
) -> None:
    explorer.open(f"{_FIRST_RACE}/naive/A1-B1-A2-B2")

    assert explorer.text("#verdict h3") == "How did it end?"
    assert '--schedule "A1 B1 A2 B2"' in explorer.text("#command")
    address = explorer.browser.run("addressToShare()")
    assert address == f"{explorer.folder}/{_FIRST_RACE}/naive/A1-B1-A2-B2.html"
    explorer.browser.press("u")
    address = explorer.browser.run("addressToShare()")
    assert address == f"{explorer.folder}/{_FIRST_RACE}.html#{_FIRST_RACE}/naive/A1.B1.A2"


def test_each_told_schedule_is_shown_by_its_page(explorer: Explorer, site: Path) -> None:
    for scenario in _SCENARIOS:
        folder = site / PLAY_FOLDER / scenario["name"] / "naive"
        page = random.choice(sorted(folder.iterdir()))

        explorer.open(f"{scenario['name']}/naive/{page.stem}")

        (shown,) = re.findall('--schedule "(.*)"', explorer.text("#command"))
        assert shown in schedules_with_page(scenario["ways"]["naive"])
        assert f": {shown} (naive)</title>" in page.read_text()


def test_a_waiting_worker_names_the_holder_and_a_step_can_be_undone(explorer: Explorer) -> None:
    explorer.open(_FIRST_RACE, f"{_FIRST_RACE}/fixed/A1.B1")

    assert explorer.text(".worker.B .status") == "waits for A"
    assert explorer.browser.run("document.querySelector('.turn.B').ariaDisabled") == "true"
    explorer.browser.press("b")
    assert explorer.text("#message") == "B waits for A. It cannot continue now."
    explorer.browser.press("u")
    assert explorer.text(".worker.B .status") == "next: lock"
    explorer.browser.wait_for(_ADDRESS, f"#{_FIRST_RACE}/fixed/A1")
    explorer.browser.press("r")
    explorer.browser.wait_for(_ADDRESS, f"#{_FIRST_RACE}/fixed")


def test_the_source_is_shown_line_by_line_and_a_docstring_is_one_string(explorer: Explorer) -> None:
    source = _SCENARIOS[0]["ways"]["fixed"]["source"]

    explorer.open(_FIRST_RACE, f"{_FIRST_RACE}/fixed")

    lines = "[...document.querySelector('.source').querySelectorAll('.line')]"
    shown = explorer.browser.run(f"{lines}.map((line) => line.textContent.trimEnd())")
    assert shown == [line.strip() for line in source]
    first_line = next(number for number, line in enumerate(source) if line.count('"""') == 1)
    docstring_line = next(
        number for number in range(first_line + 1, len(source)) if source[number].strip()
    )
    kinds = explorer.browser.run(
        f"[...{lines}[{docstring_line}].children].map((part) => part.className)"
    )
    assert kinds == ["string"]


def test_tab_reaches_the_buttons_and_an_outdated_copy_is_shown(explorer: Explorer) -> None:
    explorer.open(_FIRST_RACE, f"{_FIRST_RACE}/naive")
    for _ in range(20):
        explorer.browser.press("Tab")
        if explorer.browser.run("document.activeElement.className") == "turn A":
            break
    explorer.browser.press("Enter")
    explorer.browser.press("b")

    assert explorer.browser.run("document.activeElement.className") == "turn A"
    assert explorer.text(".worker.A [aria-current]").strip().startswith("FILE.write_text")
    assert explorer.text(".worker.B .own dd") == "[settings]\njobs = 4"
    explorer.browser.press("s")
    assert explorer.text("#verdict").startswith("It broke")


def test_random_orders_end_the_same_way_in_real_processes(explorer: Explorer, tool: Tool) -> None:
    for name, variant in random.sample(_VARIANTS, 30 if SOAK else 3):
        explorer.open(name, f"{name}/{variant}")
        while explorer.browser.run("!document.querySelector('.answers')"):
            explorer.browser.press(random.choice(_possible_keys(explorer)))
        explorer.browser.press("0")
        shown = explorer.text("#verdict h3")
        command = explorer.text("#command")

        arguments = re.findall(r'"[^"]+"|\S+', command)[1:]
        ran = tool(*(argument.strip('"') for argument in arguments))

        verdict = ran.response["data"]["runs"][0]["verdict"]
        assert verdict == {"It holds": "holds", "It broke": "broken"}[shown], command


def _possible_keys(explorer: Explorer) -> list[str]:
    buttons = ".turn:not([aria-disabled=true]), .strike:not([aria-disabled=true])"
    key_of_each = "(each) => each.getAttribute('aria-keyshortcuts')"
    found: list[str] = explorer.browser.run(
        f"[...document.querySelectorAll('{buttons}')].map({key_of_each})"
    )
    return found


def test_one_file_has_everything_and_requests_only_itself(
    explorer: Explorer, tmp_path: Path
) -> None:
    file = tmp_path / "explorer.html"
    file.write_text(one_file(_SCENARIOS))

    explorer.browser.requests.clear()
    explorer.browser.open(file.as_uri())
    race = explorer.browser.run("document.querySelector('#race').value")
    explorer.play("A1 B1 A2 B2")
    explorer.browser.press("0")
    explorer.browser.run("openRace(DATA.menu[1])")
    requests = {request.partition("#")[0] for request in explorer.browser.requests}
    explorer.browser.requests.clear()

    assert race == _FIRST_RACE
    assert explorer.browser.run("document.querySelector('#race').value") == _SCENARIOS[1]["name"]
    assert requests == {file.as_uri()}


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_axe_finds_nothing_in_either_theme_on_a_phone_or_a_wide_screen(
    explorer: Explorer, theme: str
) -> None:
    try:
        axe = resources.files("axe_core_python").joinpath("axe.min.js").read_text()
    except ModuleNotFoundError:
        pytest.skip("axe is not installed: make .venv/.testable")
    browser = explorer.browser
    width = 360 if theme == "dark" else 1440
    browser.show_as(width=width, height=800, theme=theme, motion="reduce")
    found = []
    for path in ("A1.B1", "A1.B1.A2.B2"):
        explorer.open(_FIRST_RACE, f"{_FIRST_RACE}/naive/{path}")
        browser.run(axe)
        browser.run("document.querySelectorAll('details').forEach((each) => { each.open = true; })")
        found += browser.run(_AXE)
    browser.press("0")
    found += browser.run(_AXE)

    assert found == []
    assert browser.run("document.documentElement.scrollWidth <= innerWidth")


_AXE = """axe.run(document).then((result) => result.violations.map(({ id, nodes }) => {
    const places = nodes.map((node) => `${node.html} ${node.failureSummary}`);
    return `${id}: ${places.join(" | ")}`;
}))"""


def test_no_label_of_a_picture_in_the_pages_leaves_it_or_covers_another(browser: Browser) -> None:
    pictures = sorted((ROOT / "docs").glob("[!_]*/**/*.svg"))
    browser.open("about:blank")
    texts = json.dumps([picture.read_text() for picture in pictures])
    misplaced: list[Any] = browser.run(f"{_MISPLACED_LABELS}({texts})")

    assert [(pictures[number].name, label) for number, label in misplaced] == []


_MISPLACED_LABELS = """((pictures) => pictures.flatMap((picture, number) => {
  const box = document.body.appendChild(document.createElement("div"));
  const shadow = box.attachShadow({ mode: "open" });
  shadow.innerHTML = picture;
  const whole = shadow.querySelector("svg").getBoundingClientRect();
  const isMisplaced = (text) => {
    const label = text.getBoundingClientRect();
    const before = text.previousElementSibling.getBoundingClientRect();
    const overlaps = before.top === label.top && before.right > label.left + 1;
    return overlaps || label.left < whole.left - 1 || label.right > whole.right + 1;
  };
  const labels = [...shadow.querySelectorAll("text")].filter(isMisplaced);
  return labels.map((text) => [number, text.textContent]);
}))"""
