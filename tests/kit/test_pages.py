"""Lists have pages, and --fields selects members."""

import os
from pathlib import Path

import pytest

from sampletool.kit.pages import MAX_PAGE_BYTES, first_page
from sampletool.kit.testing.tool import Ran, Tool

_LISTS = ["config list", "lock list", "session list", "manifest", "log --command config.set"]


def pages(tool: Tool, call: list[str], limit: int) -> list[Ran]:
    found = [tool(*call, "--limit", str(limit))]
    while cursor := found[-1].meta.get("next_cursor"):
        found.append(tool(*call, "--limit", str(limit), "--after", cursor))
    return found


@pytest.mark.parametrize("call", _LISTS)
def test_pages_together_are_the_whole_list(tool: Tool, workspace: Path, call: str) -> None:
    for name in ("one", "two", "three"):
        opened = Path(os.environ["TMPDIR"]) / f"tool-{os.getuid()}" / name
        opened.mkdir(mode=0o700, parents=True)
        opened.parent.chmod(0o700)
    for number in range(3):
        tool("config", "set", f"k{number}", "1")
    whole = tool(*call.split()).data
    (name,) = (member for member, value in whole.items() if isinstance(value, list))

    some = pages(tool, call.split(), 2)

    assert [item for page in some for item in page.data[name]] == whole[name]
    assert all(len(page.data[name]) <= 2 for page in some)


@pytest.mark.parametrize("cursor", ["null", "", "after", "2"])
def test_what_is_no_cursor_is_refused(tool: Tool, cursor: str) -> None:
    ran = tool("config", "list", "--after", cursor)

    assert (ran.code, ran.error["errors"][0]["param"]) == ("VALIDATION_ERROR", "--after")


def test_only_the_fields_that_are_asked_for_are_in_the_data(tool: Tool, workspace: Path) -> None:
    assert tool("config", "get", "level", "--fields", "value").data == {"value": 1}
    assert tool("config", "explain", "level", "--fields", "sources.wins").data == {"sources": [{"wins": True}]}
    assert tool("--fields", "effect", "config", "set", "a", "1").data == {"effect": "created"}


def test_a_field_that_is_not_there_changes_nothing(tool: Tool, workspace: Path) -> None:
    before = (workspace / "tool.toml").read_bytes()

    ran = tool("config", "set", "a", "1", "--fields", "efect,value")

    assert (ran.status, ran.code) == (2, "USAGE_ERROR")
    assert [mistake["value"] for mistake in ran.error["errors"]] == ["efect", "value"]
    assert "Did you mean 'effect'?" in ran.error["suggestion"]
    assert (workspace / "tool.toml").read_bytes() == before


def test_fields_are_of_json_and_not_of_text(tool: Tool, workspace: Path) -> None:
    assert tool("config", "get", "level", "--fields", "value", TOOL_FORMAT="text").data == {"value": 1}
    assert tool("config", "get", "level", "--fields", "value", "--format", "text").status == 2
    assert tool("config", "get", "level", "--fields", "value", "--raw").status == 2


def test_a_page_ends_early_if_its_rows_are_long(tool: Tool, workspace: Path) -> None:
    lines = [f'key-{number:04} = "{"é" * 200}"\n' for number in range(300)]
    (workspace / "tool.toml").write_text(f"[settings]\n{''.join(lines)}")

    found = pages(tool, ["config", "list"], limit=10_000)

    assert len(found) > 1
    assert all(len(page.stdout) <= 64 * 1024 for page in found)
    listed = [setting["key"] for page in found for setting in page.data["settings"]]
    assert [key for key in listed if key.startswith("key-")] == [f"key-{number:04}" for number in range(300)]


def test_the_first_row_is_on_a_page_however_long_it_is() -> None:
    page = first_page(["x" * MAX_PAGE_BYTES * 2, "y"], 10, str)

    assert len(page.rows) == 1
    assert page.next_cursor is not None


@pytest.mark.parametrize(("row_count", "page_length"), [(2, 2), (3, 2)])
def test_there_is_a_next_page_only_if_there_are_more_rows_than_the_limit(row_count: int, page_length: int) -> None:
    page = first_page(["a", "b", "c"][:row_count], 2, str)

    assert len(page.rows) == page_length
    assert page.next_cursor == ("after:b" if row_count > 2 else None)


def test_an_empty_list_is_an_empty_page() -> None:
    rows: list[str] = []

    page = first_page(rows, 2, str)

    assert (page.rows, page.next_cursor) == ([], None)
