"""sampletool/kit/contract/response.py: no content can break the form of a response."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sampletool.kit.contract.errors import ToolError
from sampletool.kit.contract.file_errors import FileNotFound
from sampletool.kit.contract.response import (
    Format,
    Presentation,
    Rendered,
    Response,
    Result,
    Screen,
    json_line,
    render,
    result_meta,
    to_data,
    value_text,
)
from sampletool.kit.contract.table import Line, header_row
from sampletool.kit.contract.text import BOLD, PLAIN, RED, YELLOW


@dataclass(frozen=True)
class Message:
    text: str
    absent: str | None = None

    def lines(self) -> list[str]:
        return [self.text]


@dataclass(frozen=True)
class Valued:
    value: Any

    def lines(self) -> list[str]:
        return []


class Pair(NamedTuple):
    left: Any
    right: Any


class PairResult(NamedTuple):
    left: Any
    right: Any

    def lines(self) -> list[str]:
        return []


def response_with(
    result: Result | None = None,
    error: ToolError | None = None,
    warning: str | None = None,
    **meta: Any,
) -> Response:
    """Return a response with at most one warning."""
    warnings = []
    if warning is not None:
        warnings.append({"code": "CODE", "message": warning})
    return Response(result=result, error=error, warnings=warnings, meta=meta)


_AS_JSON = Presentation(format="json")
_AS_TEXT = Presentation(format="text")
_AS_RAW = Presentation(format="raw")

_ANY_TEXT = st.text(st.characters(codec=None, categories=None))


_CONTENTS: list[object] = [
    "text",
    None,
    7,
    [Pair(1, None), Message("x")],
    ("a", "b"),
    {"key": {"inner": [True]}},
    Path("/w"),
    "caf\udce9",
]


def _rendering_failure(response: Response, presentation: Presentation) -> Exception | None:
    """Return the error that `render` raises, or None."""
    try:
        render(response, presentation)
    except Exception as error:
        return error
    return None


@pytest.mark.parametrize("form", ["json", "jsonl", "text", "raw"])
@pytest.mark.parametrize("content", _CONTENTS, ids=ascii)
def test_every_result_can_be_printed_in_every_format(form: Format, content: object) -> None:
    assert _rendering_failure(response_with(Valued(content)), Presentation(format=form)) is None


@pytest.mark.parametrize("form", ["json", "jsonl", "text", "raw"])
@pytest.mark.parametrize("result", [None, Message("x")], ids=["no result", "result"])
@pytest.mark.parametrize("error", [None, FileNotFound("/f")], ids=["success", "failure"])
@pytest.mark.parametrize("screen", [Screen(), Screen(30, True, True)], ids=["file", "terminal"])
def test_every_response_can_be_printed_in_every_format(
    form: Format,
    result: Result | None,
    error: ToolError | None,
    screen: Screen,
) -> None:
    response = response_with(result, error, "Careful.", dry_run=True, next_cursor="after:x")
    presentation = Presentation(format=form, screen=screen, error_also_on_stderr=True)

    assert _rendering_failure(response, presentation) is None


@given(_ANY_TEXT)
def test_json_is_one_ascii_line_whatever_it_carries(text: str) -> None:
    line = render(response_with(Message(text)), _AS_JSON).stdout

    assert line.isascii()
    assert line.count(b"\n") == 1
    assert line.endswith(b"\n")
    assert json.loads(line)["data"].keys() == {"text"}


@given(_ANY_TEXT)
def test_text_cannot_forge_a_line_or_move_the_cursor(text: str) -> None:
    rendered = render(response_with(Message(text), warning=text), _AS_TEXT)
    shown = rendered.stdout.decode()

    assert rendered.stderr.count("\n") == 1
    assert all(char.isprintable() for char in rendered.stderr[:-1])
    assert shown.count("\n") == 1
    assert all(char.isprintable() for char in shown[:-1])


def test_the_envelope_of_a_success_has_no_error() -> None:
    response = response_with(Message("x"), warning="Careful.", command="c")

    line = render(response, _AS_JSON).stdout

    assert line == (
        b'{"ok":true,"data":{"text":"x"},'
        b'"warnings":[{"code":"CODE","message":"Careful."}],"meta":{"command":"c"}}\n'
    )


def test_the_envelope_of_a_failure_has_the_error_and_the_work_that_was_done_before() -> None:
    error = FileNotFound("/f")

    line = render(response_with(Message("x"), error), _AS_JSON).stdout

    envelope = json.loads(line)

    assert list(envelope) == ["ok", "error", "data", "warnings", "meta"]
    assert envelope["ok"] is False
    assert envelope["error"] == error.describe()
    assert envelope["data"] == {"text": "x"}


@pytest.mark.parametrize("form", ["json", "jsonl"])
def test_json_goes_to_stdout_only(form: Format) -> None:
    failed = response_with(None, FileNotFound("/f"), warning="Careful.")

    rendered = render(failed, Presentation(format=form))

    assert json.loads(rendered.stdout)["data"] is None
    assert rendered.stderr == ""


def test_only_the_selected_fields_are_in_the_data() -> None:
    only_left = Presentation(fields={"left": {}})

    line = render(response_with(PairResult(1, 2)), only_left).stdout

    assert json.loads(line)["data"] == {"left": 1}


def test_a_failure_in_text_says_what_happened_and_what_to_do() -> None:
    failed = response_with(None, FileNotFound("/f"), warning="Careful.")

    rendered = render(failed, _AS_TEXT)

    lines = rendered.stderr.splitlines()
    assert rendered.stdout == b""
    assert lines[0] == "Warning: Careful."
    assert lines[1] == "Error: /f does not exist. [FILE_NOT_FOUND]"
    assert lines[2].startswith("Check the path")
    assert len(lines) == 3


def test_each_problem_of_an_error_has_its_own_line() -> None:
    error = FileNotFound("/a", problems=["line 1: no\x1b", "line 2: neither"])

    lines = render(response_with(None, error), _AS_TEXT).stderr.splitlines()

    assert lines[1:3] == ["line 1: no\\x1b", "line 2: neither"]


def test_members_that_do_not_apply_are_absent() -> None:
    line = json_line([Message("x"), {"k": (1, 2)}, Pair(1, Message("y"))])

    assert json.loads(line) == [{"text": "x"}, {"k": [1, 2]}, {"left": 1, "right": {"text": "y"}}]


@pytest.mark.parametrize("record", [Valued, lambda value: Pair(value, 1)])
def test_a_null_that_a_caller_has_stored_is_a_value(record: Callable[[Any], Any]) -> None:
    """Its type is `Any`, so the schema requires it. Clients refused responses without it."""
    assert None in to_data(record(None)).values()


def test_the_keys_of_an_object_are_texts_and_its_values_keep_none() -> None:
    assert to_data({1: None, "a": Pair(1, 2)}) == {"1": None, "a": {"left": 1, "right": 2}}


def test_a_byte_that_is_not_utf_8_is_shown_by_its_number_and_an_emoji_as_it_is() -> None:
    assert json.loads(json_line("caf\udce9 \ud83d \U0001f600")) == "caf\\xe9 \\ud83d \U0001f600"


@pytest.mark.parametrize(
    ("character", "shown"),
    [("\ud7ff", "\ud7ff"), ("\ud800", "\\ud800"), ("\udfff", "\\udfff"), ("\ue000", "\ue000")],
    ids=ascii,
)
def test_only_surrogates_are_escaped_in_a_line_that_has_some(character: str, shown: str) -> None:
    assert json.loads(json_line(f"\udce9{character}")) == f"\\xe9{shown}"


def test_json_has_no_numbers_that_are_not_finite() -> None:
    with pytest.raises(ValueError, match="not JSON compliant"):
        json_line(float("nan"))


def test_a_value_that_json_does_not_know_is_shown_as_text() -> None:
    assert json_line({"path": Path("/w")}) == b'{"path":"/w"}\n'


def test_a_value_is_shown_to_a_person_as_text_or_as_json() -> None:
    assert value_text("a b") == "a b"
    assert value_text(["ä", 1]) == '["ä", 1]'
    assert value_text([Path("/w")]) == '["/w"]'


def test_messages_break_between_words() -> None:
    narrow = Presentation(format="text", screen=Screen(width=40))

    stderr = render(response_with(None, FileNotFound("/a/long/path")), narrow).stderr

    assert all(len(line) <= 40 for line in stderr.splitlines())
    assert "Error: /a/long/path does not exist." in stderr


def test_only_the_titles_of_messages_are_coloured_and_only_if_stderr_has_colours() -> None:
    failed = response_with(None, FileNotFound("/f", suggestion="Look."), warning="Careful.")

    in_colour = render(failed, Presentation("text", Screen(width=20, stderr_color=True))).stderr
    plain = render(failed, Presentation("text", Screen(width=20, color=True))).stderr

    assert in_colour == (
        f"{YELLOW}Warning:{PLAIN} Careful.\n"
        f"{RED}Error:{PLAIN} /f does not\nexist.\n[FILE_NOT_FOUND]\nLook.\n"
    )
    assert plain == in_colour.replace(YELLOW, "").replace(RED, "").replace(PLAIN, "")


@pytest.mark.parametrize(
    ("value", "printed"),
    [
        (["\x1b[1m", 1], b'["\\u001b[1m", 1]\n'),
        ("\x1b[1mas it is", b"\x1b[1mas it is\n"),
        ("caf\udce9", b"caf\\udce9\n"),
    ],
)
def test_a_raw_value_is_printed_alone_and_as_it_is(value: Any, printed: bytes) -> None:
    rendered = render(response_with(Valued(value)), _AS_RAW)

    assert rendered == Rendered(printed, "")


def test_a_failure_without_a_value_prints_nothing_raw() -> None:
    rendered = render(response_with(None, FileNotFound("/f")), _AS_RAW)

    assert rendered.stdout == b""
    assert rendered.stderr.startswith("Error: /f does not exist.")


def test_a_page_names_the_cursor_of_the_next_one_quoted_for_a_shell() -> None:
    page = response_with(Message("a"), next_cursor="after:it's")

    stdout = render(page, _AS_TEXT).stdout

    assert stdout.decode() == "a\nThere is more. To continue, pass --after 'after:it'\"'\"'s'\n"


def test_a_dry_run_says_that_nothing_was_changed() -> None:
    dry_run = response_with(Message("a: deleted"), dry_run=True)

    stdout = render(dry_run, _AS_TEXT).stdout

    assert stdout == b"Dry run, nothing was changed. The result would be:\na: deleted\n"


def test_a_dry_run_without_a_result_prints_nothing() -> None:
    dry_run = response_with(Valued(1), dry_run=True)

    stdout = render(dry_run, _AS_TEXT).stdout

    assert stdout == b""


class PageResult(NamedTuple):
    next_cursor: str | None = None
    replayed: bool = False
    total: int | None = None

    def lines(self) -> list[str]:
        return []


def test_meta_has_the_members_of_a_result_that_are_about_the_run() -> None:
    assert result_meta(PageResult("after:b", True)) == {
        "has_more": True,
        "truncated": True,
        "next_cursor": "after:b",
        "replayed": True,
    }
    assert result_meta(PageResult()) == {"has_more": False}
    assert result_meta(PageResult(total=0)) == {"has_more": False, "total": 0}
    assert result_meta(Message("x")) == {}
    assert result_meta(None) == {}


def test_what_belongs_to_meta_is_not_repeated_in_the_data() -> None:
    line = render(response_with(PageResult("after:b", True)), Presentation()).stdout

    assert json.loads(line)["data"] == {}


def test_a_person_sees_an_error_also_where_stdout_gets_json() -> None:
    failed = response_with(None, FileNotFound("/f"), warning="Careful.")

    shown = render(failed, Presentation(format="json", error_also_on_stderr=True))
    succeeded = render(
        response_with(Message("x")), Presentation(format="json", error_also_on_stderr=True)
    )

    assert shown.stdout == render(failed, Presentation(format="json")).stdout
    assert shown.stderr.startswith("Error: /f does not exist. [FILE_NOT_FOUND]\n")
    assert succeeded.stderr == ""


def test_quiet_hides_a_success_with_its_warnings_and_no_error() -> None:
    quiet = Presentation(format="text", is_quiet=True)

    success = render(response_with(Message("x"), warning="Careful."), quiet)
    failure = render(
        response_with(Message("done before"), FileNotFound("/f"), warning="Careful."), quiet
    )

    assert success == Rendered(b"", "")
    assert failure.stdout == b"done before\n"
    assert failure.stderr.startswith("Warning: Careful.\nError: /f does not exist.")


def test_json_is_not_quiet() -> None:
    quiet = Presentation(format="json", is_quiet=True)

    assert b'"text":"x"' in render(response_with(Message("x")), quiet).stdout


class TableResult(NamedTuple):
    rows: list[Line]

    def lines(self) -> list[Line]:
        return self.rows


def test_a_table_fits_the_terminal_and_has_its_colors() -> None:
    table = response_with(TableResult([header_row("name", "value"), ("key", "x" * 50)]))

    in_colour = render(table, Presentation("text", Screen(width=20, color=True))).stdout.decode()
    in_file = render(table, Presentation("text")).stdout.decode()

    assert in_colour == f"{BOLD}NAME{PLAIN}  {BOLD}VALUE         {PLAIN}\nkey   {'x' * 13}…\n"
    assert in_file == f"NAME  VALUE\nkey   {'x' * 50}\n"


def test_a_result_of_a_failure_in_raw_is_printed_too() -> None:
    rendered = render(response_with(Valued("kept"), FileNotFound("/f")), Presentation(format="raw"))

    assert rendered.stdout == b"kept\n"
    assert rendered.stderr.startswith("Error: ")
