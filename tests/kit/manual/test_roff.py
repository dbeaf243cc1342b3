"""sampletool/kit/manual/roff.py: text is printed as it is, and the page is valid roff."""

import shutil
import subprocess

import pytest

from sampletool.kit.manual.roff import (
    RoffPage,
    bold,
    escape,
    with_bold_code,
    with_italic_placeholders,
)

_PLAIN = ["groff", "-man", "-Tutf8", "-P-cbou", "-ww"]
"""A command that formats a page without bold and underlined text, and warns of everything."""


@pytest.fixture
def page() -> RoffPage:
    return RoffPage(name="acme-add", date="2026-11-20", source="acme 1.0")


def _format(page: RoffPage) -> str:
    """Return what a reader sees. Skip the test if groff is not installed."""
    if shutil.which("groff") is None:
        pytest.skip("groff is not installed")
    completed = subprocess.run(
        _PLAIN,
        input=page.render(),
        capture_output=True,
        text=True,
        check=True,
    )
    assert completed.stderr == ""
    return completed.stdout


@pytest.mark.parametrize(
    "text",
    [
        "acme add --if-version 3",
        ".acme/ is a directory",
        "'quoted' and \"quoted\" and `code`",
        r"a backslash \ and \fB no bold \n",
        "~/.config/acme^2",
        "an ellipsis … and an accent é",
        "\\",
    ],
)
def test_text_is_printed_as_it_is(page: RoffPage, text: str) -> None:
    page.heading("NAME")
    page.paragraph(escape(text))

    assert f"NAME\n       {text}\n" in _format(page)


def test_a_long_paragraph_is_broken_between_words_and_loses_none(page: RoffPage) -> None:
    words = ["--lock-timeout", "TOOL_LOCK_TIMEOUT", ".tool/locks", "'s"] * 30
    page.heading("DESCRIPTION")
    page.paragraph(escape(" ".join(words)))

    source_lines = page.render().splitlines()
    formatted = _format(page)

    assert max(len(line) for line in source_lines) <= 80
    _, _, text = formatted.partition("DESCRIPTION")
    assert text.split()[: len(words)] == words


def test_no_word_is_hyphenated(page: RoffPage) -> None:
    words = ["TOOL_SESSION_ID", "configuration", "internationalization"] * 30
    page.heading("DESCRIPTION")
    page.paragraph(escape(" ".join(words)))

    formatted = _format(page)

    _, _, text = formatted.partition("DESCRIPTION")
    assert text.split()[: len(words)] == words


def test_an_indented_text_is_an_ordinary_paragraph(page: RoffPage) -> None:
    page.heading("DESCRIPTION")
    page.paragraph("\n    The first line\n    and the second.\n")

    assert "DESCRIPTION\n       The first line and the second.\n" in _format(page)


def test_the_lines_of_an_example_keep_their_spaces(page: RoffPage) -> None:
    page.heading("EXAMPLES")
    page.add_examples([escape("echo 'a  b' | acme add -"), escape(".local/bin/acme")])

    assert "       echo 'a  b' | acme add -\n       .local/bin/acme\n" in _format(page)


def test_each_line_of_an_item_begins_a_new_line_below_its_term(page: RoffPage) -> None:
    page.heading("EXIT STATUS")
    page.item("75", ["LOCK_HELD: a lock is held.", "BUSY: a server is busy."])

    expected = "       75     LOCK_HELD: a lock is held.\n              BUSY: a server is busy.\n"
    assert expected in _format(page)


def test_code_in_backticks_is_bold() -> None:
    assert with_bold_code("See `acme add`.") == rf"See {bold('acme add')}."


def test_an_unpaired_backtick_is_a_character() -> None:
    assert with_bold_code("a ` b") == escape("a ` b")


def test_a_placeholder_is_in_italics() -> None:
    assert with_italic_placeholders("[CSV]... json|NAME") == r"[\fICSV\fR]... json|\fINAME\fR"
