"""The generated pages contain the facts that a reader needs, in sentences."""

import re

import pytest

from docs.kit import guarantees
from docs.kit.house import layers
from sampletool.kit.project import ROOT
from sampletool.kit.testing import reference
from sampletool.kit.testing.pages import made
from sampletool.kit.testing.reference.command import param_blocks

KIT = ROOT / "docs" / "kit"


def test_each_guarantee_and_each_mechanism_of_the_kit_is_a_sentence_that_a_person_wrote() -> None:
    page = guarantees.pages()[KIT / "guarantees.md"]

    headings = re.findall(r"^## (.+)$", page, re.MULTILINE)
    items = re.findall(r"^\* (.+\n\n  .+)$", page, re.MULTILINE)

    assert len(headings) > 40
    assert len(items) > 80
    assert len(items) == page.count("\n* ")
    for heading in headings:
        assert re.fullmatch(r"[A-Z`].*[\w)]", heading), heading
    for item in items:
        parts = re.fullmatch(r"(.*)\.\n\n  Code: (.*)\. Test: (.*)\.", item)
        assert parts is not None, item
        sentence, code, test = parts.groups()
        assert re.match(r"[A-Z`]", sentence), item
        # Without a verb, it would be a fragment such as "SKIP LOCKED".
        assert len(sentence.split()) >= 4, item
        assert re.fullmatch(r"(`[\w.]+` in )?`[\w./]+`", code), item
        assert re.fullmatch(r"`test_\w+`", test), item


def test_an_option_is_shown_with_what_it_does_its_default_and_its_limits() -> None:
    page = reference.pages()[reference.FOLDER / "log.md"]

    assert (
        "### `--limit N`\n\nShow at most N items. Default: `100`. "
        "The value must be from 1 to 10000.\n"
    ) in page


def test_the_former_flag_of_an_option_is_shown_as_deprecated() -> None:
    option = {
        "flags": ["--at-least", "--min"],
        "metavar": "N",
        "help": "Count only items with at least N pieces.",
        "default": 0,
        "deprecated_flags": {"--min": "Use --at-least."},
    }

    heading, text = param_blocks(option)

    assert heading == "### `--at-least N`"
    assert text == (
        "Count only items with at least N pieces. Default: `0`. "
        "The former name `--min` is deprecated."
    )


def test_each_error_has_a_heading_and_says_what_to_do_and_whether_to_try_again() -> None:
    page = reference.pages()[reference.FOLDER / "errors.md"]

    _, *sections = page.split("\n## ")

    assert len(sections) > 40
    for section in sections:
        assert re.match(r"`[A-Z0-9_]+`\n\n[A-Z].+\.\n", section), section
        assert "* **What to do:** " in section, section
        assert "* **Try again:** " in section, section
        # A placeholder such as {path} is no word that a reader knows.
        assert "{" not in section, section


def test_a_link_to_an_error_leads_to_its_heading() -> None:
    pages = reference.pages()
    headings = re.findall(r"^## `(.+)`$", pages[reference.FOLDER / "errors.md"], re.MULTILINE)

    linked = re.findall(r"\(errors\.md#(\w+)\)", pages[reference.FOLDER / "config-set.md"])

    assert "lock_held" in linked
    assert set(linked) <= {heading.lower() for heading in headings}


def test_a_column_in_which_each_cell_would_be_empty_is_left_out() -> None:
    for path, content in made().items():
        for table in re.findall(r"(?:^\|.*\n)+", content, re.MULTILINE):
            _, _, *rows = [line.strip("|\n").split(" | ") for line in table.splitlines()]
            for column in zip(*rows, strict=True):
                assert any(cell.strip() for cell in column), f"{path}: {table}"


def test_each_box_of_the_picture_is_above_the_boxes_that_it_imports() -> None:
    found = {"app": {"text", "lock"}, "lock": {"text"}, "text": set(), "clock": set()}

    assert layers(found) == [["app"], ["lock"], ["clock", "text"]]


def test_boxes_that_import_each_other_cannot_be_drawn() -> None:
    with pytest.raises(AssertionError, match=r"these import each other: \['a', 'b'\]"):
        layers({"a": {"b"}, "b": {"a"}, "c": set()})
