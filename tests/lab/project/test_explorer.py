"""The explorer in a real browser: played to the end of every level, by keyboard alone, and true to real processes.

One module, and one browser for all of it: to start one takes longer than most of these tests.
"""

import json
import random
import re
from collections.abc import Iterator
from importlib import resources
from typing import Any

import pytest

from docs.lab.play import RECORDED, page
from sampletool.kit.project import ROOT
from sampletool.kit.testing.scale import SOAK
from sampletool.kit.testing.tool import Tool
from tests.lab.explorer.browser import Browser, NoBrowser, browsing
from tests.lab.explorer.orders import orders

_KEYS = {"!": "k", "~": "t", "*": "p"}
_SCENARIOS = [json.loads(file.read_text()) for file in RECORDED]
_LEVELS = [(scenario["name"], variant) for scenario in _SCENARIOS for variant in scenario["ways"]]


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    directory = tmp_path_factory.mktemp("browser")
    try:
        with browsing(directory / "profile") as browser:
            (directory / "play.html").write_text(page())
            browser.home = (directory / "play.html").as_uri()
            yield browser
    except NoBrowser as reason:
        pytest.skip(f"no browser: {reason}")


@pytest.fixture
def explorer(browser: Browser) -> Iterator[Browser]:
    """At its beginning. It asks for itself and nothing else, and does not complain."""
    browser.show_as()
    browser.open("about:blank")
    browser.requests, browser.complaints = [], []
    browser.open(browser.home)
    yield browser
    assert browser.complaints == []
    assert {request.partition("#")[0] for request in browser.requests} == {browser.home}


def text(browser: Browser, selector: str) -> str:
    return str(browser.run(f"document.querySelector({json.dumps(selector)}).textContent"))


def take(browser: Browser, schedule: str) -> None:
    """`A2!3`, a strike within a step, is the number of events and then the key."""
    for token in schedule.split():
        strike = re.fullmatch(r"[A-Z]\d*([!~*])(\d*)", token)
        for key in f"{strike[2]}{_KEYS[strike[1]]}" if strike else token[0].lower():
            browser.press(key)


def wait_for_address(browser: Browser, wanted: str) -> None:
    """It is written after the last of several quick steps."""
    while browser.run("location.hash") != wanted:
        pass


def answers(browser: Browser) -> list[str]:
    return list(browser.run("[...document.querySelectorAll('.answer span')].map((each) => each.textContent)"))


def test_every_level_is_played_to_its_end_by_keyboard_alone(explorer: Browser) -> None:
    played = []
    for scenario in _SCENARIOS:
        for variant, way in scenario["ways"].items():
            found = list(orders(way))
            is_right = variant.startswith("fixed")
            schedule, reason, _ = (
                found[0] if is_right else min((run for run in found if run[1]), key=lambda run: len(run[0]))
            )
            take(explorer, schedule)
            truth = reason or scenario["promise"]
            explorer.press(str(answers(explorer).index(truth) + 1))
            assert text(explorer, "#verdict").startswith("It broke" if reason else "It holds")
            assert truth in text(explorer, "#verdict")
            assert "That is what you said." in text(explorer, "#verdict")
            assert truth in text(explorer, "#told")
            assert f'--variant {variant} --schedule "{schedule}"' in text(explorer, "#command")
            if is_right:
                explorer.press("x")
                assert "none of them breaks it" in text(explorer, "#task")
                assert text(explorer, "#count").startswith(f"{len(found)} of {len(found)} seen, 0 bad")
            else:
                assert "You broke it: 1 of its" in text(explorer, "#task")
            played.append((scenario["name"], explorer.run("document.querySelector('#ways :checked').value")))
            explorer.press("n")

    assert played == _LEVELS
    wait_for_address(explorer, f"#{_SCENARIOS[0]['name']}/naive")


def test_a_worker_that_waits_names_who_it_waits_for_and_a_step_can_be_taken_back(explorer: Browser) -> None:
    explorer.open(f"{explorer.home}#lost-config-update/fixed/A1.B1")

    assert text(explorer, ".worker.B .status") == "waits for A"
    assert explorer.run("document.querySelector('.turn.B').ariaDisabled") == "true"
    explorer.press("b")
    assert text(explorer, "#told") == "B waits for A: it cannot go on now."
    explorer.press("u")
    assert text(explorer, ".worker.B .status") == "next: lock"
    wait_for_address(explorer, "#lost-config-update/fixed/A1")
    explorer.press("r")
    wait_for_address(explorer, "#lost-config-update/fixed")


def test_the_buttons_are_reached_by_tab_and_a_copy_that_grew_old_is_shown(explorer: Browser) -> None:
    explorer.open(f"{explorer.home}#lost-config-update/naive")
    for _ in range(20):
        explorer.press("Tab")
        if explorer.run("document.activeElement.className") == "turn A":
            break
    explorer.press("Enter")
    explorer.press("b")

    assert explorer.run("document.activeElement.className") == "turn A"
    assert text(explorer, ".worker.A [aria-current]").strip().startswith("FILE.write_text")
    assert text(explorer, ".worker.B .own dd") == "[settings]\njobs = 4"
    explorer.press("s")
    assert text(explorer, "#verdict").startswith("It broke")


def test_random_orders_are_replayed_in_real_processes_with_the_same_verdict(explorer: Browser, tool: Tool) -> None:
    for name, variant in random.sample(_LEVELS, 30 if SOAK else 3):
        explorer.open(f"{explorer.home}#{name}/{variant}")
        while explorer.run("!document.querySelector('.answers')"):
            free = ".turn:not([aria-disabled=true]), .strike:not([aria-disabled=true])"
            keys = explorer.run(
                f"[...document.querySelectorAll('{free}')].map((each) => each.getAttribute('aria-keyshortcuts'))"
            )
            explorer.press(random.choice(keys))
        explorer.press("0")
        shown, command = text(explorer, "#verdict h3"), text(explorer, "#command")

        words = re.findall(r'"[^"]+"|\S+', command)[1:]
        ran = tool(*(word.strip('"') for word in words))

        assert ran.response["data"]["runs"][0]["verdict"] == {"It holds": "holds", "It broke": "broken"}[shown], command


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_axe_finds_nothing_in_either_theme_on_a_phone_or_a_wide_screen(explorer: Browser, theme: str) -> None:
    try:
        axe = resources.files("axe_core_python").joinpath("axe.min.js").read_text()
    except ModuleNotFoundError:
        pytest.skip("axe is not installed: make .venv/.testable")
    explorer.show_as(width=360 if theme == "dark" else 1440, height=800, theme=theme, motion="reduce")
    found = []
    for schedule in ("A1 B1", "A1 B1 A2 B2"):
        explorer.open(f"{explorer.home}#lost-config-update/naive/{schedule.replace(' ', '.')}")
        explorer.run(axe)
        explorer.run("document.querySelectorAll('details').forEach((each) => { each.open = true; })")
        found += explorer.run(f"({_AXE})()")
    explorer.press("0")
    found += explorer.run(f"({_AXE})()")

    assert found == []
    assert explorer.run("document.documentElement.scrollWidth <= innerWidth")


_AXE = """async () => (await axe.run(document)).violations.map(
    ({ id, nodes }) => `${id}: ${nodes.map((node) => `${node.html} ${node.failureSummary}`).join(" | ")}`)"""


def test_no_label_of_a_picture_in_the_pages_leaves_it_or_covers_another(browser: Browser) -> None:
    pictures = sorted((ROOT / "docs").glob("[!_]*/**/*.svg"))
    browser.open("about:blank")
    outside: list[Any] = browser.run(f"{_OUTSIDE}({json.dumps([each.read_text() for each in pictures])})")

    assert [(pictures[number].name, label) for number, label in outside] == []


_OUTSIDE = """((pictures) => pictures.flatMap((picture, number) => {
  const own = document.body.appendChild(document.createElement("div")).attachShadow({ mode: "open" });
  own.innerHTML = picture;
  const whole = own.querySelector("svg").getBoundingClientRect();
  return [...own.querySelectorAll("text")].filter((text) => {
    const label = text.getBoundingClientRect();
    const before = text.previousElementSibling.getBoundingClientRect();
    const overlaps = before.top === label.top && before.right > label.left + 1;
    return overlaps || label.left < whole.left - 1 || label.right > whole.right + 1;
  }).map((text) => [number, text.textContent]);
}))"""
