"""Nothing that an answer carries can break its form."""

import json
from dataclasses import dataclass
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from sampletool.kit.contract.answer import Answer, Screen, json_line, render
from sampletool.kit.contract.file_errors import FileNotFound
from sampletool.kit.contract.text import counted, printable


@dataclass(frozen=True)
class Said:
    text: str
    absent: str | None = None

    def lines(self) -> list[str]:
        return [self.text]


@dataclass(frozen=True)
class Valued:
    value: Any

    def lines(self) -> list[str]:
        return []


_ANY_TEXT = st.text(st.characters(codec=None, categories=None))


@given(_ANY_TEXT)
def test_json_is_one_ascii_line_whatever_it_carries(text: str) -> None:
    line, _ = render(Answer(Said(text), None, [], {}), "json")

    assert line.isascii()
    assert line.count(b"\n") == 1
    assert json.loads(line)["data"].keys() == {"text"}


@given(_ANY_TEXT)
def test_text_cannot_forge_a_line_or_move_the_cursor(text: str) -> None:
    stdout, stderr = render(Answer(Said(text), None, [{"code": "CODE", "message": text}], {}), "text")
    shown = stdout.decode()

    assert stderr.count("\n") == 1
    assert all(char.isprintable() for char in stderr[:-1])
    assert shown.count("\n") == 1
    assert all(char.isprintable() for char in shown[:-1])


def test_harmless_text_is_shown_as_it_is() -> None:
    assert printable("naïve ☃ 日本") == "naïve ☃ 日本"


def test_what_would_mislead_is_escaped() -> None:
    assert printable("a\x1b]0;x\x07\u202eb\u200bc\n\udce9") == "a\\x1b]0;x\\x07\\u202eb\\u200bc\\n\\xe9"


def test_one_is_not_many() -> None:
    assert [counted(number, "row") for number in (0, 1, 2)] == ["0 rows", "1 row", "2 rows"]


def test_an_error_is_absent_on_success_and_data_may_go_with_it_on_failure() -> None:
    good = json.loads(render(Answer(Said("x"), None, [], {}), "json")[0])
    bad = json.loads(render(Answer(Said("x"), FileNotFound("/f"), [], {}), "json")[0])

    assert "error" not in good
    assert (bad["ok"], bad["data"]) == (False, {"text": "x"})
    assert good["warnings"] == []


def test_a_failure_says_what_happened_and_what_to_do() -> None:
    stdout, stderr = render(Answer(None, FileNotFound("/f"), [{"code": "CODE", "message": "Careful."}], {}), "text")
    text = stderr.splitlines()

    assert stdout == b""
    assert text[0] == "Warning: Careful."
    assert text[1] == "Error: /f does not exist. [FILE_NOT_FOUND]"
    assert text[2].startswith("Check the path")


def test_problems_of_an_error_have_a_line_each() -> None:
    error = FileNotFound("/a")
    error.context["problems"] = ["line 1: no\x1b", "line 2: neither"]

    _, stderr = render(Answer(None, error, [], {}), "text")

    assert stderr.splitlines()[1:3] == ["line 1: no\\x1b", "line 2: neither"]


def test_members_that_do_not_apply_are_absent() -> None:
    assert json.loads(json_line([Said("x"), {"k": (1, 2)}])) == [{"text": "x"}, {"k": [1, 2]}]


def test_messages_break_between_words() -> None:
    _, stderr = render(Answer(None, FileNotFound("/a/long/path"), [], {}), "text", Screen(width=40))

    assert all(len(line) <= 40 for line in stderr.splitlines())
    assert "Error: /a/long/path does not exist." in stderr


def test_an_answer_is_the_value_alone_where_that_is_asked_for() -> None:
    assert render(Answer(Valued(["\x1b[1m", 1]), None, [], {}), "raw") == (b'["\\u001b[1m", 1]\n', "")
    assert render(Answer(Valued("\x1b[1mas it is"), None, [], {}), "raw") == (b"\x1b[1mas it is\n", "")


def test_a_page_names_the_cursor_of_the_next_one_as_a_shell_takes_it() -> None:
    stdout, _ = render(Answer(Said("a"), None, [], {"next_cursor": "after:it's"}), "text")

    assert stdout.decode() == "a\nMore follow: --after 'after:it'\"'\"'s'\n"
