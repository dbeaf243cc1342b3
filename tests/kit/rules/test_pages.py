"""sampletool/kit/testing/pages.py: which pages a project generates."""

import shutil

from sampletool.kit.program import KIT
from tests.kit.ledger import Ledger

_GENERATOR = """
from pathlib import Path

_FOLDER = Path(__file__).parent


def made():
    return {_FOLDER / "list.md": "# List\\n"}


def main():
    (_FOLDER / "picture.md").write_text("# Picture\\n")
"""


def test_the_index_has_the_titles_of_all_pages_and_the_generated_ones(ledger: Ledger) -> None:
    ledger.write({"docs/books/generate.py": _GENERATOR})

    ledger.run_module(f"{KIT}.testing.pages")

    index = (ledger.directory / "docs" / "index.md").read_text()
    assert index.splitlines()[-4:] == [
        "* [Guide](books/guide.md) <!-- books -->",
        "* [List](books/list.md) <!-- books -->",
        "* [Picture](books/picture.md) <!-- books -->",
        "* [Reference](reference/index.md)",
    ]


def test_an_index_that_a_person_wrote_is_not_replaced(ledger: Ledger) -> None:
    ledger.write({"docs/index.md": "# Ledger\n"})

    ledger.run_module(f"{KIT}.testing.pages")

    assert (ledger.directory / "docs" / "index.md").read_text() == "# Ledger\n"


def test_the_reference_has_a_page_for_each_command_and_none_for_a_former_command(
    ledger: Ledger,
) -> None:
    ledger.write({"docs/reference/page-print.md": "# led-ger page print\n"})
    stale = ledger.run_rules("-k", "generated_pages")

    ledger.run_module(f"{KIT}.testing.pages")

    pages = {path.name for path in (ledger.directory / "docs" / "reference").iterdir()}
    assert {"page-add.md", "config-set.md", "errors.md", "settings.md"} <= pages
    assert "page-print.md" not in pages
    fault = stale.failures["test_the_generated_pages_are_current"]
    assert "docs/reference/page-print.md: it differs" in fault


def test_a_page_that_a_part_generates_is_compared_too(ledger: Ledger) -> None:
    ledger.write({"docs/books/generate.py": _GENERATOR})
    ledger.run_module(f"{KIT}.testing.pages")
    ledger.write({"docs/books/list.md": "# Another list\n"})

    ran = ledger.run_rules("-k", "generated_pages")

    assert "docs/books/list.md: it differs" in ran.failures["test_the_generated_pages_are_current"]


def test_a_project_without_docs_has_no_pages(ledger: Ledger) -> None:
    shutil.rmtree(ledger.directory / "docs")

    ledger.run_module(f"{KIT}.testing.pages")

    assert not (ledger.directory / "docs").exists()
    assert ledger.run_rules("-k", "generated_pages").exit_code == 0
