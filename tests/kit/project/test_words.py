"""Help, errors and pages have no words that readers found strange, and no endless sentences."""

import pytest

from tests.kit.project.words import Text, all_texts


def test_texts_have_no_strange_words_and_no_long_sentences() -> None:
    problems = []
    for text in all_texts():
        problems += text.problems()

    assert problems == []


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
