"""sampletool/kit/command_help.py: the help pages of the tool, of its groups and of its commands."""

from typing import Any

import pytest

from sampletool.kit import command_help
from sampletool.kit.command_help import (
    command_item,
    command_page,
    group_page,
    tool_page,
    usage_line,
)
from sampletool.kit.contract.command_spec import CommandSpec
from sampletool.kit.contract.help_page import Item, ItemSection
from sampletool.kit.help_topics import TOPICS

_KEY: dict[str, Any] = {"name": "key", "metavar": "KEY", "required": True, "help": "Key to show."}
_VALUE: dict[str, Any] = {"name": "value", "metavar": "VALUE", "required": False, "help": "Value."}
_RAW: dict[str, Any] = {
    "name": "raw",
    "flags": ["--raw"],
    "required": False,
    "help": "Print only the value.",
}


def _lines(page: Any) -> list[str]:
    text: str = page.text(100, bold=False)
    return text.split("\n")


def test_the_usage_of_a_command_has_its_arguments_and_not_its_options() -> None:
    usage = usage_line("tool config get", [_KEY, _RAW, _VALUE], is_group=False)

    assert usage == "tool config get [OPTIONS] KEY [VALUE]"


def test_an_argument_with_brackets_of_its_own_gets_no_more() -> None:
    optional = {**_VALUE, "metavar": "[VALUE...]"}

    assert usage_line("tool get", [optional], is_group=False) == "tool get [OPTIONS] [VALUE...]"


def test_the_usage_of_a_group_ends_with_a_command() -> None:
    assert usage_line("tool config", [], is_group=True) == "tool config [OPTIONS] COMMAND [ARGS]..."


def test_a_command_has_sections_for_arguments_options_and_examples() -> None:
    spec = CommandSpec(effect="nothing", examples=("config get jobs",))

    lines = _lines(command_page("tool config get", "Show a value.", [_KEY, _RAW], spec))

    assert lines[:13] == [
        "Usage: tool config get [OPTIONS] KEY",
        "",
        "  Show a value.",
        "",
        "Arguments:",
        "  KEY  Key to show.",
        "",
        "Options:",
        "  --raw  Print only the value.",
        "",
        "Examples:",
        "  tool config get jobs",
        "",
    ]
    assert lines[13] == "Global options, described in `tool --help`:"
    assert lines[14].startswith("  --json, --format, --fields, --color, --quiet, --verbose, ")


def test_the_page_of_a_command_tells_its_history() -> None:
    spec = CommandSpec(effect="nothing", deprecated="Use get.", former_names=("show", "print"))

    lines = _lines(command_page("tool config get", "Show a value.", [], spec))

    former_names = "Formerly `tool config show` and `tool config print`."
    assert lines[2:7] == [
        "  Show a value.",
        "",
        "  Deprecated. Use get.",
        "",
        f"  {former_names} Old names still work, but cause a warning.",
    ]


def test_a_group_has_its_commands_and_the_names_of_the_global_options() -> None:
    commands = ItemSection("Commands", [Item("get", "Show a value.")])

    lines = _lines(group_page("tool config", "Read settings.", commands))

    assert lines[:7] == [
        "Usage: tool config [OPTIONS] COMMAND [ARGS]...",
        "",
        "  Read settings.",
        "",
        "Commands:",
        "  get  Show a value.",
        "",
    ]
    assert lines[7] == "Global options, described in `tool --help`:"


@pytest.mark.parametrize("address", ["https://docs.example.org", ""])
def test_the_page_of_the_tool_ends_with_where_to_read_more(
    monkeypatch: pytest.MonkeyPatch,
    address: str,
) -> None:
    monkeypatch.setattr(command_help, "DOCUMENTATION", address)
    sections = [ItemSection("Work", [Item("build", "Build.")])]

    page = tool_page("Build things.", [_RAW], sections)

    topics = f"Help topics: {', '.join(TOPICS)}."
    footer = ["For help on a command or a topic, run `tool help NAME`.", topics]
    if address:
        footer.append(f"Documentation: {address}")
    assert list(page.footer) == footer
    assert page.usage == "tool [OPTIONS] COMMAND [ARGS]..."
    titles = [section.title for section in page.sections]
    assert titles == ["Work", "Global options, before or after the command"]
    lines = _lines(page)
    assert any(line.startswith("  --raw") for line in lines)
    assert any(line.startswith("  -C, --cwd DIR") for line in lines)


def test_the_row_of_a_command_is_the_first_line_of_its_help() -> None:
    plain = CommandSpec(effect="nothing")
    deprecated = CommandSpec(effect="nothing", deprecated="Use get.")

    assert command_item("get", "Show.\n\nMore.", plain) == Item("get", "Show.")
    assert command_item("get", "Show.", deprecated) == Item("get", "Show.", note="[deprecated]")
    assert command_item("config", "Settings.", None) == Item("config", "Settings.")
