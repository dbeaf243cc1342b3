"""The site has every page once, an index and a preview of each page, and loads nothing."""

import re
import struct
from pathlib import Path

import pytest

from docs.site import previews
from docs.site.previews import PICTURE, PICTURE_SIZE
from docs.site.reference_objects import with_objects
from docs.site.sidebar import all_pages, children, groups
from tests.project.built_site import built_site

pytest.importorskip("sphinx", reason="Sphinx is not installed: make .venv/.testable")

_LOADED = re.compile(
    r'<(script|img|iframe|link)\b[^>]*? (src|href)="(https?:)?//'
    r"|url\([\"']?(https?:)?//"
    r"|@import"
)
"""Code that makes a browser load something from another machine. A plain link does not."""
MAX_PICTURE_BYTES = 60_000


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the directory of the site."""
    return built_site(tmp_path_factory)


def test_each_page_is_in_the_sidebar_once() -> None:
    listed = []
    for entries in groups().values():
        listed += entries
    for pages in children().values():
        listed += pages

    assert sorted(listed) == all_pages()


def test_the_first_level_of_the_sidebar_has_at_most_12_entries() -> None:
    counts = [len(entries) for entries in groups().values()]

    assert sum(counts) <= 12


def test_the_site_loads_nothing_from_another_machine(site: Path) -> None:
    loading = []
    for file in site.rglob("*"):
        if file.suffix in (".html", ".css") and _LOADED.search(file.read_text()):
            loading.append(file.relative_to(site))

    assert loading == []


def test_a_page_that_is_outside_of_docs_is_on_the_site_and_links_lead_to_it(site: Path) -> None:
    how_to = (site / "kit" / "how-to.html").read_text()
    library = (site / "kit" / "library.html").read_text()
    changes = (site / "changelog.html").read_text()

    assert "sampletool/stock/__init__.py" in how_to
    assert 'id="add-an-error"' in how_to
    assert 'href="how-to.html' in library
    assert 'id="added"' in changes


def test_a_page_that_shows_the_explorer_does_not_say_how_to_create_it(site: Path) -> None:
    race = (site / "lab" / "stale-lock.html").read_text()

    assert '<iframe class="explorer"' in race
    assert "Choose the order of the steps yourself:" in race
    assert "creates a page called the explorer" not in race


def test_commands_options_settings_variables_and_errors_are_in_the_index(site: Path) -> None:
    index = (site / "genindex.html").read_text()

    for name in (
        "tool config set",
        "--if-version (config set)",
        "--lock-timeout",
        "session_ttl",
        "TOOL_SESSION_ID",
        "LOCK_HELD",
    ):
        assert f">{name}</a>" in index, name


def test_a_heading_in_a_block_of_code_names_no_object() -> None:
    page = "# tool config set\n\n```sh\n## Options\n### `--not-an-option`\n```\n"

    text = with_objects("reference/config-set", page)

    assert text.count("{reference-object}") == 1
    assert "{reference-object} tool config set\n:kind: command\n" in text


def test_each_page_is_there_as_markdown_and_in_the_list_for_language_models(site: Path) -> None:
    llms_txt = (site / "llms.txt").read_text()

    assert llms_txt.startswith("# sampletool\n\n> sampletool is ")
    for page in all_pages():
        assert (site / f"{page}.md").read_text().startswith("# "), page
        assert f"({page}.md): " in llms_txt, page


def test_each_page_has_a_title_a_description_and_a_picture_for_previews(site: Path) -> None:
    for page in ["index", *all_pages()]:
        html = (site / f"{page}.html").read_text()
        (description,) = re.findall(r'<meta property="og:description" content="([^"]*)">', html)
        (picture,) = re.findall(r'<meta property="og:image" content="([^"]*)">', html)
        assert len(description) > 20, page
        assert '<meta property="og:title" content="' in html, page
        assert (site / page).parent.joinpath(picture).is_file(), page


def test_the_addresses_for_previews_are_complete_once_the_site_is_published(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(previews, "DOCUMENTATION", "https://example.org/main/")

    tags = previews.preview_tags(
        "lab/play/torn-write.html", "Torn write", "A file is half written."
    )

    picture = f"https://example.org/main/{PICTURE}"
    assert f'<meta property="og:image" content="{picture}">' in tags
    page = "https://example.org/main/lab/play/torn-write.html"
    assert f'<meta property="og:url" content="{page}">' in tags


def test_the_picture_for_previews_has_the_size_that_the_pages_name(site: Path) -> None:
    picture = (site / PICTURE).read_bytes()

    # A PNG file begins with its signature and the chunk IHDR, which has the width and the height.
    signature, width, height = struct.unpack(">16sII", picture[:24])
    assert signature.startswith(b"\x89PNG")
    assert (width, height) == PICTURE_SIZE
    assert len(picture) < MAX_PICTURE_BYTES


def test_an_option_in_a_sentence_keeps_its_two_hyphens(site: Path) -> None:
    pages_with_dashes = []
    for page in all_pages():
        html = (site / f"{page}.html").read_text()
        if re.search("\N{EN DASH}[a-z]", html):
            pages_with_dashes.append(page)

    assert pages_with_dashes == []
    assert "longer than --timeout" in (site / "reference" / "exit-codes.html").read_text()
