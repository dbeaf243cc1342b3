"""Help, errors and pages have no words that readers found strange, and no endless sentences."""

from collections import defaultdict

import pytest

from sampletool.kit.project import ROOT
from tests.kit.project.words import Text, all_texts

_NOT_REWRITTEN: frozenset[str] = frozenset()
"""The folders and pages whose words are still those of version 0.2. This list only gets shorter."""


@pytest.fixture(scope="module")
def problems() -> dict[str, list[str]]:
    """Return the problems of each entry of the list, and of everything else under "rewritten"."""
    found: dict[str, list[str]] = defaultdict(list)
    for text in all_texts():
        found[_entry_of(text.place)] += text.problems()
    return found


def _entry_of(place: str) -> str:
    for entry in _NOT_REWRITTEN:
        if f"{place}/".startswith(f"{entry}/"):
            return entry
    return "rewritten"


def test_rewritten_texts_have_no_strange_words_and_no_long_sentences(
    problems: dict[str, list[str]],
) -> None:
    assert problems["rewritten"] == []


def test_what_has_no_problem_is_taken_off_the_list(problems: dict[str, list[str]]) -> None:
    done = [entry for entry in _NOT_REWRITTEN if entry in problems and not problems[entry]]

    assert done == [], "remove these from _NOT_REWRITTEN"


def test_each_entry_of_the_list_exists_unless_its_part_was_removed() -> None:
    missing = []
    for entry in _NOT_REWRITTEN:
        part_folder = "/".join(entry.split("/")[:2])
        if (ROOT / part_folder).exists() and not (ROOT / entry).exists():
            missing.append(entry)

    assert missing == [], "remove these from _NOT_REWRITTEN"


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        ("The write goes on.", "replace “goes on”"),
        ("Nobody's lock.", "replace “Nobody's”"),
        ("It lies\nin the way.", "replace “lies in”"),
        ("word " * 30 + "word.", "make shorter sentences"),
    ],
)
def test_a_problem_is_reported(words: str, problem: str) -> None:
    (found,) = Text("docs/kit", "a text", words).problems()

    assert problem in found
    assert found.startswith("docs/kit: a text: ")


@pytest.mark.parametrize(
    "words",
    [
        "A canewear shop, and one that belongs in it.",
        "word " * 29 + "word.",
        "word " * 20 + "word. " + "word " * 20 + "word.",
        "word " * 20 + "word\n\n" + "word " * 20 + "word",
        "word " * 29 + "`one piece of code`.",
        "Run it:\n\n```console\n$ echo It goes on.\n```\n",
    ],
)
def test_other_text_is_accepted(words: str) -> None:
    assert Text("docs/kit", "a text", words).problems() == []


def test_a_page_may_have_long_sentences() -> None:
    words = "word " * 40

    assert Text("docs/kit/page.md", "", words, is_page=True).problems() == []


def test_the_texts_of_each_kind_are_found() -> None:
    found = {(text.place, text.title) for text in all_texts()}

    for expected in (
        ("README.md", ""),
        ("docs/kit/log.md", ""),
        ("sampletool/kit", "summary of config set"),
        ("sampletool/kit", "help of sampletool.kit.commands.config"),
        ("sampletool/kit", "dry_run of config set"),
        ("sampletool/kit", "setting jobs"),
        ("sampletool/kit", "variable NO_COLOR"),
        ("sampletool/kit", "topic exit-codes"),
        ("sampletool/kit", "hint of KeyNotFound"),
        ("sampletool/kit", "message of LockTimeout"),
    ):
        assert expected in found
