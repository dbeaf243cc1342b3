"""Lists have pages, and --fields selects members."""

import os
import shlex
import subprocess
from pathlib import Path

import pytest

from sampletool.kit.contract.errors import InvalidValues
from sampletool.kit.contract.response import (
    MAX_LIST_BYTES,
    Presentation,
    Response,
    count_fitting,
    render,
)
from sampletool.kit.cursor import format_cursor, parse_cursor
from sampletool.kit.pages import (
    first_page,
    page_of,
    read_number,
)
from sampletool.kit.program import KIT
from sampletool.kit.safety.private_directory import private_directory
from sampletool.kit.testing.tool import Ran, Tool
from tests.kit.ledger import Ledger

_LISTS = ["config list", "lock list", "session list", "manifest", "log --command config.set"]


def pages(tool: Tool, command: list[str], limit: int) -> list[Ran]:
    """Return all pages of a list, each with at most `limit` rows."""
    found = [tool(*command, "--limit", str(limit))]
    while cursor := found[-1].meta.get("next_cursor"):
        assert len(found) < 1000, "the pages have no end"
        found.append(tool(*command, "--limit", str(limit), "--after", cursor))
    return found


def create_rows(tool: Tool) -> None:
    """Let each list have several rows: sessions, settings and lines of the log."""
    sessions = private_directory(Path(os.environ["TMPDIR"]) / f"tool-{os.getuid()}")
    for name in ("one", "two", "three"):
        private_directory(sessions / name)
    for number in range(3):
        tool("config", "set", f"k{number}", "1")


@pytest.mark.parametrize("command_line", ["config list", "lock list", "session list", "manifest"])
@pytest.mark.usefixtures("workspace")
def test_each_page_says_how_long_the_whole_list_is(tool: Tool, command_line: str) -> None:
    """These lists are in memory anyway. To count the lines of the log, all of it would be read."""
    create_rows(tool)

    whole = tool(*command_line.split())
    some = pages(tool, command_line.split(), 2)

    (rows,) = [member for member in whole.data.values() if isinstance(member, list)]
    assert {page.meta["total"] for page in some} == {len(rows)}
    assert "total" not in whole.data


@pytest.mark.parametrize("command_line", _LISTS)
@pytest.mark.usefixtures("workspace")
def test_pages_together_are_the_whole_list(tool: Tool, command_line: str) -> None:
    create_rows(tool)
    command = command_line.split()
    whole = tool(*command).data
    (name,) = [member for member, value in whole.items() if isinstance(value, list)]

    some = pages(tool, command, 2)

    rows = []
    for page in some:
        assert len(page.data[name]) <= 2
        rows += page.data[name]
    assert rows == whole[name]


@pytest.mark.parametrize(
    "cursor",
    ["null", "", "after", "2", ":", ":x", "config.list", "config.list:", "config.list:%FF"],
)
def test_a_text_that_is_not_a_cursor_is_refused(tool: Tool, cursor: str) -> None:
    ran = tool("config", "list", "--after", cursor)

    assert ran.code == "USAGE_ERROR"
    (mistake,) = ran.error["errors"]
    assert mistake["param"] == "--after"
    assert f"'{cursor}' is not a" in mistake["message"]


@pytest.mark.usefixtures("workspace")
def test_only_the_selected_fields_are_in_the_data(tool: Tool) -> None:
    value = tool("config", "get", "level", "--fields", "value").data
    sources = tool("config", "explain", "level", "--fields", "sources.wins").data
    effect = tool("--fields", "effect", "config", "set", "a", "1").data

    assert value == {"value": 1}
    assert sources == {"sources": [{"wins": True}]}
    assert effect == {"effect": "created"}


def test_a_command_with_an_unknown_field_changes_nothing(tool: Tool, workspace: Path) -> None:
    before = (workspace / "tool.toml").read_bytes()

    ran = tool("config", "set", "a", "1", "--fields", "efect,value")

    assert (ran.status, ran.code) == (2, "USAGE_ERROR")
    assert [mistake["value"] for mistake in ran.error["errors"]] == ["efect", "value"]
    assert "Did you mean 'effect'?" in ran.error["suggestion"]
    assert (workspace / "tool.toml").read_bytes() == before


@pytest.mark.usefixtures("workspace")
def test_selected_fields_are_printed_as_json_even_if_a_variable_chooses_text(tool: Tool) -> None:
    ran = tool("config", "get", "level", "--fields", "value", TOOL_FORMAT="text")

    assert ran.data == {"value": 1}


@pytest.mark.parametrize("option", ["--format=text", "--raw"])
@pytest.mark.usefixtures("workspace")
def test_fields_cannot_be_selected_in_text(tool: Tool, option: str) -> None:
    ran = tool("config", "get", "level", "--fields", "value", option)

    assert ran.status == 2


def test_a_page_ends_early_if_its_rows_are_long(tool: Tool, workspace: Path) -> None:
    lines = [f'key-{number:04} = "{"é" * 200}"\n' for number in range(300)]
    (workspace / "tool.toml").write_text(f"[settings]\n{''.join(lines)}")

    found = pages(tool, ["config", "list"], limit=10_000)

    assert len(found) > 1
    listed = []
    for page in found:
        assert len(page.stdout) <= 64 * 1024
        for setting in page.data["settings"]:
            if setting["key"].startswith("key-"):
                listed.append(setting["key"])
    assert listed == [f"key-{number:04}" for number in range(300)]


def test_the_first_row_is_on_a_page_however_long_it_is() -> None:
    page = first_page(["x" * MAX_LIST_BYTES * 2, "y"], 10, str)

    assert len(page.rows) == 1
    assert page.next_cursor is not None


@pytest.mark.parametrize(("row_count", "page_length"), [(2, 2), (3, 2)])
def test_there_is_a_next_page_only_if_there_are_more_rows_than_the_limit(
    row_count: int,
    page_length: int,
) -> None:
    page = first_page(["a", "b", "c"][:row_count], 2, str)

    assert len(page.rows) == page_length
    assert page.next_cursor == ("b" if row_count > 2 else None)


def test_an_empty_list_is_an_empty_page() -> None:
    rows: list[str] = []

    page = first_page(rows, 2, str)

    assert (page.rows, page.next_cursor) == ([], None)


# A page of a list in memory


def _all_pages(rows: list[str], limit: int, *, descending: bool) -> list[list[str]]:
    """Return the rows of each page, from the first to the last."""
    found = []
    cursor = None
    for _ in range(len(rows) + 1):
        page = page_of(rows, limit, cursor, lambda row: row, descending=descending)
        found.append(page.rows)
        cursor = page.next_cursor
        if cursor is None:
            break
    return found


def test_the_pages_of_a_list_are_sorted_and_repeat_nothing() -> None:
    rows = ["b", "d", "a", "e", "c"]

    assert _all_pages(rows, 2, descending=False) == [["a", "b"], ["c", "d"], ["e"]]
    assert _all_pages(rows, 2, descending=True) == [["e", "d"], ["c", "b"], ["a"]]
    assert _all_pages(rows, 5, descending=False) == [["a", "b", "c", "d", "e"]]


def test_a_row_that_is_added_between_two_pages_hides_no_other() -> None:
    second_page = page_of(["a", "a2", "b", "c"], 2, "b", lambda row: row)

    assert second_page.rows == ["c"]


def test_a_page_that_is_as_large_as_allowed_is_whole() -> None:
    # As JSON, the row has two quotes and a newline more.
    largest = "x" * (MAX_LIST_BYTES // 2 - 3)

    assert count_fitting([largest, largest]) == 2
    assert count_fitting([largest, largest + "x"]) == 1
    assert count_fitting([]) == 0


@pytest.mark.parametrize("limit", ["0", "10001", "-1", "many"])
def test_a_limit_is_a_number_from_1_to_10000(tool: Tool, limit: str) -> None:
    ran = tool("config", "list", f"--limit={limit}")

    assert (ran.status, ran.error["errors"][0]["param"]) == (2, "--limit")
    assert tool("config", "list", "--limit=10000").status == 0


# Cursors


@pytest.mark.usefixtures("workspace")
def test_a_cursor_names_the_list_and_the_last_row(tool: Tool) -> None:
    first = tool("config", "list", "--limit", "1")

    assert first.meta["next_cursor"] == f"config.list:{first.data['settings'][0]['key']}"


@pytest.mark.parametrize(
    "position",
    ["jobs", "a\n'\t\"b", "%", "100%0A", "a:b", "naïve 漢", "\x00\x7f\u2028", "caf\udce9"],
)
def test_a_cursor_that_is_copied_from_the_text_into_a_shell_has_the_whole_position(
    position: str,
) -> None:
    cursor = format_cursor("config.list", position)
    page = Response(result=None, error=None, warnings=[], meta={"next_cursor": cursor})
    text = render(page, Presentation(format="text")).stdout.decode()
    _, _, copied = text.rpartition("pass --after ")

    passed = subprocess.check_output(["sh", "-c", f"printf %s {copied}"], text=True)

    assert cursor.isprintable()
    assert parse_cursor(passed) == ("config.list", position)


_LIST_COMMAND = f'''"""List the pages."""

from dataclasses import dataclass

import typer

from {KIT}.contract.command_spec import CommandSpec
from {KIT}.pages import AfterOption, LimitOption, page_of

spec = CommandSpec(effect="nothing", examples=("page list",))


@dataclass(frozen=True)
class Listing:
    """Some titles."""

    titles: list[str]
    next_cursor: str | None

    def lines(self) -> list[str]:
        """Return what a person sees."""
        return self.titles


def command(ctx: typer.Context, after: AfterOption = None, limit: LimitOption = 1) -> Listing:
    """List the pages."""
    titles = ["a", "a\\n\\'\\t\\"b", "aB", "z"]
    page = page_of(titles, limit, after, lambda title: title)
    return Listing(page.rows, page.next_cursor)
'''


def test_pages_lose_no_row_whose_position_has_a_newline_a_quote_and_a_tab(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path)
    ledger.add_command("page/list", _LIST_COMMAND)

    printed = [ledger.run_module("ledger", "page", "list", "--format", "text")]
    while "pass --after " in printed[-1]:
        assert len(printed) < 10, "the pages have no end"
        _, _, copied = printed[-1].rpartition("pass --after ")
        (cursor,) = shlex.split(copied)
        options = ["--format", "text", "--after", cursor]
        printed.append(ledger.run_module("ledger", "page", "list", *options))

    titles = [text.splitlines()[0] for text in printed]
    assert titles == ["a", "a\\n'\\t\"b", "aB", "z"]


@pytest.mark.usefixtures("workspace")
def test_a_cursor_of_another_list_is_refused(tool: Tool) -> None:
    cursor = tool("config", "list", "--limit", "1").meta["next_cursor"]

    ran = tool("manifest", "--after", cursor, "--limit", "no number")

    assert (ran.status, ran.code) == (2, "USAGE_ERROR")
    # It is one of the mistakes that are reported at once.
    (mistake,) = [each for each in ran.error["errors"] if each["param"] == "--after"]
    assert mistake["value"] == cursor
    assert "This list is manifest, and the cursor is from 'config.list'" in mistake["message"]
    assert mistake["suggestion"] == "Pass the `meta.next_cursor` of the previous page."


def test_the_position_in_a_list_of_numbers_is_a_number() -> None:
    assert read_number(None) == 0
    assert read_number("17") == 17


@pytest.mark.parametrize("digit_count", [19, 5000])
def test_a_number_that_no_row_has_is_no_position(digit_count: int) -> None:
    assert read_number("9" * 18) == 10**18 - 1

    with pytest.raises(InvalidValues):
        read_number("9" * digit_count)


@pytest.mark.parametrize("position", ["", "x", "-1", "1.5"])
def test_a_text_is_no_position_in_a_list_of_numbers(position: str) -> None:
    with pytest.raises(InvalidValues) as caught:
        read_number(position)

    (mistake,) = caught.value.mistakes
    assert (mistake.param, mistake.code, mistake.value) == ("--after", "INVALID_VALUE", position)
    assert mistake.message == f"'{position}' is not a valid cursor"
    assert mistake.suggestion == "Pass the `meta.next_cursor` of the previous page."
