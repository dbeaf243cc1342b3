"""In a browser, the pages of the site report no errors, and load only files of the site."""

from collections.abc import Iterator
from importlib import resources
from pathlib import Path

import pytest

from docs.lab.generate import path_of
from docs.site.sidebar import children
from sampletool.kit.testing.waiting import wait_until
from sampletool.lab.levels import names_in_order
from tests.lab.explorer.browser import Browser, NoBrowser, ProtocolError, browsing
from tests.project.built_site import built_site

pytest.importorskip("sphinx", reason="Sphinx is not installed: make .venv/.testable")
pytest.importorskip("axe_core_python", reason="axe is not installed: make .venv/.testable")
_PAGES = ("index", "lab/learn/1-two-processes", "lab/lost-config-update", "reference/config-set")
_SCREENS = [(1440, "light"), (360, "dark")]
# A race that is played in a page is a page of its own, with tests of its own.
_AXE = """
axe.run(document, { iframes: false }).then((found) => found.violations.map(({ id, nodes }) => {
    const reports = nodes.map((node) => `${node.html} ${node.failureSummary}`);
    return `${id}: ${reports.join(" | ")}`;
}))
"""


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return built_site(tmp_path_factory)


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    try:
        with browsing(tmp_path_factory.mktemp("profile")) as browser:
            yield browser
    except NoBrowser as reason:
        pytest.skip(f"no browser: {reason}")


def test_axe_finds_nothing_in_a_page_on_a_phone_or_a_wide_screen_in_either_theme(
    site: Path, browser: Browser
) -> None:
    axe = resources.files("axe_core_python").joinpath("axe.min.js").read_text()
    found = {}
    for page in _PAGES:
        for width, theme in _SCREENS:
            browser.show_as(width=width, theme=theme)
            browser.open((site / f"{page}.html").as_uri())
            browser.run(axe)
            found[page, width, theme] = browser.run(_AXE)
            assert browser.run("document.documentElement.scrollWidth <= innerWidth"), (page, width)

    assert {at: violations for at, violations in found.items() if violations} == {}
    assert browser.complaints == []
    assert [address for address in browser.requests if not address.startswith(site.as_uri())] == []


def _found(browser: Browser, site: Path, query: str) -> list[str]:
    """Return the pages that a search finds, the best one first, as paths without `.html`."""
    browser.open(f"{(site / 'search.html').as_uri()}?q={query}")
    wait_until(lambda: browser.run("document.querySelectorAll('#search-results li a').length > 0"))
    links = browser.run(
        "[...document.querySelectorAll('#search-results li a')].map((link) => link.href)"
    )
    return [link.removeprefix(f"{site.as_uri()}/").partition(".html")[0] for link in links]


@pytest.mark.parametrize(
    ("query", "page"),
    [
        ("install", "start/install"),
        ("quickstart", "start/quickstart"),
        ("--lock-timeout", "reference/options"),
        ("LOCK_HELD", "reference/errors"),
        ("config set", "reference/config-set"),
        ("session_ttl", "reference/settings"),
    ],
)
def test_a_search_from_disk_finds_the_right_page_first(
    site: Path, browser: Browser, query: str, page: str
) -> None:
    found = _found(browser, site, query)

    assert found[0] == page


@pytest.mark.parametrize("width", [1280, 390])
def test_nothing_in_the_frame_of_the_front_page_is_cut_off_or_scrolls(
    site: Path, browser: Browser, width: int
) -> None:
    browser.show_as(width=width, height=900, motion="reduce")
    browser.open((site / "index.html").as_uri())
    browser.run("document.querySelector('iframe').loading = 'eager'")
    wait_until(lambda: _has_frame(browser))
    variants = browser.run_in_frame("view.race.variants.map((each) => each.name)")
    longest = "[...view.variant.orders].sort((a, b) => b.path.length - a.path.length)[0].path"

    too_small = {}
    heights = []
    for variant in variants:
        browser.run_in_frame(f"openVariant(view.race.name, {variant!r})")
        for step in ("", f"openPath({longest})", "answer(null)"):
            browser.run_in_frame(step)
            wait_until(lambda: _is_frame_fitting(browser))
            heights.append(browser.run(_FRAME_HEIGHT))
            found = browser.run_in_frame(_TOO_SMALL)
            if found:
                too_small[variant, step] = found

    assert len(variants) == 6
    assert too_small == {}
    # A long source is cut to the lines around the current one, so the buttons stay near.
    assert max(heights) < 3000


def _has_frame(browser: Browser) -> bool:
    try:
        return bool(browser.run_in_frame("document.querySelectorAll('#variants input').length"))
    except ProtocolError:
        return False


def _is_frame_fitting(browser: Browser) -> bool:
    """Return whether the frame is as high as the page inside it. Borders may add a few pixels."""
    frame_height = browser.run(_FRAME_HEIGHT)
    body_height = browser.run_in_frame(_BODY_HEIGHT)
    return bool(0 <= frame_height - body_height <= 4)


_FRAME_HEIGHT = "document.querySelector('iframe').clientHeight"
_BODY_HEIGHT = "Math.ceil(document.body.getBoundingClientRect().height)"
# A legend is only for screen readers.
_TOO_SMALL = """[...document.querySelectorAll("html, body, body *:not(legend)")]
  .filter((each) => {
    const isShown = each.checkVisibility() && each.clientWidth > 1;
    const isTooLow = each.scrollHeight > each.clientHeight + 2;
    const isTooNarrow = each.scrollWidth > each.clientWidth + 2;
    const isWholePage = each === document.documentElement;
    const hidesContent = getComputedStyle(each).overflow !== "visible" || isWholePage;
    return isShown && hidesContent && (isTooLow || isTooNarrow);
  })
  .map((each) => `${each.tagName} ${each.id} ${each.className}`)"""


def test_the_site_and_the_explorer_have_the_same_typefaces(site: Path, browser: Browser) -> None:
    font = "getComputedStyle(document.querySelector(selector)).fontFamily"
    script = f"['body', 'code'].map((selector) => {font})"
    browser.open((site / "lab" / "lost-config-update.html").as_uri())
    on_the_site = browser.run(script)
    browser.open((site / "lab" / "play" / "lost-config-update.html").as_uri())

    assert browser.run(script) == on_the_site


def test_the_explorer_in_a_page_uses_the_mode_that_the_reader_chose(
    site: Path, browser: Browser
) -> None:
    browser.show_as(width=1280, theme="light")
    browser.open((site / "index.html").as_uri())
    wait_until(lambda: _has_frame(browser))
    mode = "getComputedStyle(document.documentElement).colorScheme"

    browser.run("document.body.dataset.theme = 'dark'")
    wait_until(lambda: browser.run_in_frame(mode) == "dark")
    browser.run("document.body.dataset.theme = 'auto'")
    wait_until(lambda: browser.run_in_frame(mode) == "light dark")


def test_a_long_path_in_a_table_does_not_squeeze_the_sentences_beside_it(
    site: Path, browser: Browser
) -> None:
    browser.show_as(width=1280)
    browser.open((site / "kit" / "architecture.html").as_uri())

    # The tables of the walk have four columns. Three of them have names, the last one sentences.
    widths = browser.run(
        "[...document.querySelectorAll('td:nth-child(4)')].map((cell) => cell.clientWidth)"
    )

    assert len(widths) > 20
    assert min(widths) > 250


def test_a_race_in_a_page_is_there_to_be_played(site: Path, browser: Browser) -> None:
    browser.open((site / "lab" / "learn" / "2-half-a-file.html").as_uri())

    address = browser.run("document.querySelector('iframe').src")

    assert address == (site / "lab" / "play" / "torn-write.html").as_uri()


def test_the_sidebar_lists_the_races_from_easy_to_hard() -> None:
    races = [f"lab/{path_of(name)}" for name in names_in_order()]

    assert children()["lab/index"] == races
