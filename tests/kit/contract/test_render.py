"""Nothing that an answer carries can break its form."""

import json
from dataclasses import dataclass

from hypothesis import given
from hypothesis import strategies as st

from sampletool.kit.contract.answer import Answer, Notice
from sampletool.kit.contract.file_errors import FileNotFound
from sampletool.kit.contract.render import json_line, render
from sampletool.kit.contract.text import counted, printable


@dataclass(frozen=True)
class Said:
    text: str
    absent: str | None = None

    def lines(self) -> list[str]:
        return [self.text]


_ANY_TEXT = st.text(st.characters(codec=None, categories=None))


@given(_ANY_TEXT)
def test_json_is_one_ascii_line_whatever_it_carries(text: str) -> None:
    line = render(Answer(Said(text), None, [], {}), "json")

    assert line.isascii()
    assert line.count(b"\n") == 1
    assert json.loads(line)["data"].keys() == {"text"}


@given(_ANY_TEXT)
def test_text_cannot_forge_a_line_or_move_the_cursor(text: str) -> None:
    shown = render(Answer(Said(text), None, [], {}), "text").decode()

    assert shown.count("\n") == 1
    assert all(char.isprintable() for char in shown[:-1])


def test_harmless_text_is_shown_as_it_is() -> None:
    assert printable("naïve ☃ 日本") == "naïve ☃ 日本"


def test_what_would_mislead_is_escaped() -> None:
    assert printable("a\x1b]0;x\x07\u202eb\u200bc\n\udce9") == "a\\x1b]0;x\\x07\\u202eb\\u200bc\\n\\xe9"


def test_one_is_not_many() -> None:
    assert [counted(number, "row") for number in (0, 1, 2)] == ["0 rows", "1 row", "2 rows"]


def test_an_error_is_absent_on_success_and_data_may_go_with_it_on_failure() -> None:
    good = json.loads(render(Answer(Said("x"), None, [], {}), "json"))
    bad = json.loads(render(Answer(Said("x"), FileNotFound("/f"), [], {}), "json"))

    assert "error" not in good
    assert (bad["ok"], bad["data"]) == (False, {"text": "x"})
    assert good["warnings"] == []


def test_a_failure_says_what_happened_and_what_to_do() -> None:
    text = render(Answer(None, FileNotFound("/f"), [Notice("CODE", "Careful.")], {}), "text").decode().splitlines()

    assert text[0] == "Warning: Careful."
    assert text[1] == "Error: /f does not exist. [FILE_NOT_FOUND]"
    assert text[2].startswith("Check the path")


def test_members_that_do_not_apply_are_absent() -> None:
    assert json.loads(json_line([Said("x"), {"k": (1, 2)}])) == [{"text": "x"}, {"k": [1, 2]}]
