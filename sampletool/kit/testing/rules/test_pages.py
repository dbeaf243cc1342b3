"""The pages show what really happens, and lead to files that exist."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

# Typer's dependency rich brings this package.
from markdown_it import MarkdownIt

from ...program import PACKAGE
from ...project import ROOT
from ..console import Terminal, commands_of, matches
from ..how_to import fail_if_any, relative
from ..pages import stale_pages
from .own_code import own_pages

_HEADING = "Pages"
_FILE = re.compile(r"^\*\*([\w.]+)\*\*\n\n```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)
"""A program with its name above it: the commands of the page expect it in their directory."""
_LINK = re.compile(r"\]\(([^)#:\s]+)(?:#[^)]*)?\)")
_NAMED_FILE = re.compile(rf"`((?:{PACKAGE}|tests|docs)/[\w./-]+)`")
_SHOWING = [page for page in own_pages() if "```console" in page.read_text()]


def test_the_generated_pages_are_current() -> None:
    faults = [f"{relative(page)}: it differs from the code." for page in stale_pages()]

    fail_if_any(faults, "Run `make pages`", _HEADING)


@pytest.mark.parametrize("page", _SHOWING, ids=relative)
def test_each_console_block_prints_what_the_page_shows(page: Path, tmp_path: Path) -> None:
    terminal = Terminal(tmp_path)
    for name, content in _FILE.findall(page.read_text()):
        terminal.run(f"cat > {name} << 'END'\n{content}END")

    for command in commands_of(page.read_text()):
        printed = terminal.run(command.text)
        if not matches(command.expected, printed):
            fault = f"{relative(page)}:{command.line}: `{command.text}` prints:\n{printed.rstrip()}"
            what_to_do = "Correct the page. Where output differs from run to run, write `...`"
            fail_if_any([fault], what_to_do, _HEADING)


def test_each_link_leads_to_a_file() -> None:
    faults: list[str] = []
    for page in own_pages():
        faults += broken_links(page)

    fail_if_any(faults, "Correct the link", _HEADING)


def broken_links(page: Path) -> Iterator[str]:
    """Yield a sentence about each link of a page that leads to no file of the project."""
    for link in _LINK.findall(page.read_text()):
        if not (page.parent / link).exists():
            yield f"{relative(page)}: the link leads to {link}, which does not exist."


def test_each_file_that_a_page_names_exists() -> None:
    faults = []
    for page in own_pages():
        for name in _NAMED_FILE.findall(page.read_text()):
            if not (ROOT / name).exists():
                faults.append(f"{relative(page)}: `{name}` does not exist.")

    fail_if_any(faults, "Name the file that the page is about", _HEADING)


def test_no_name_with_underscores_is_shown_as_bold_text() -> None:
    faults: list[str] = []
    for page in own_pages():
        faults += lost_underscores(page)

    fail_if_any(faults, "Put names of files in backticks", _HEADING)


def lost_underscores(page: Path) -> Iterator[str]:
    """Yield a sentence about each name that Markdown misreads.

    A reader sees `**a/__init__.py**` as a/init.py.
    """
    for block in MarkdownIt("commonmark").parse(page.read_text()):
        for part in block.children or ():
            if part.type in ("strong_open", "em_open") and part.markup.startswith("_"):
                line = block.map[0] + 1 if block.map else 1
                yield f"{relative(page)}:{line}: underscores become bold text."
