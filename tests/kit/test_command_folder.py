"""Commands are files; options go before and after; one answer has all mistakes of a call."""

import re

import pytest

from sampletool.kit.app import root_command
from sampletool.kit.context import Context
from sampletool.kit.contract.errors import ExitStatus
from sampletool.kit.global_options import HelpRequested
from sampletool.kit.safety.signals import Signals
from sampletool.kit.testing.tool import Tool


@pytest.mark.parametrize(
    "call",
    [
        ["--session-id", "s", "config", "get", "jobs"],
        ["config", "--session-id", "s", "get", "jobs"],
        ["config", "get", "--session-id", "s", "jobs"],
        ["config", "get", "jobs", "--session-id", "s"],
        ["--session-id", "outer", "config", "get", "jobs", "--session-id=s"],
    ],
)
def test_an_option_may_stand_anywhere_and_the_innermost_wins(tool: Tool, call: list[str]) -> None:
    assert tool(*call).meta["session_id"] == "s"


def test_what_stands_behind_two_dashes_is_no_option(tool: Tool) -> None:
    ran = tool("config", "set", "--", "message", "--format=text")

    assert ran.text.startswith("{")
    assert ran.data["changes"] == [{"key": "message", "effect": "created"}]
    assert tool("config", "get", "message").data["value"] == "--format=text"


def test_all_mistakes_of_a_call_are_in_one_answer(tool: Tool) -> None:
    ran = tool("--bogus", "config", "--lock-timeout", "soon", "get", "--reveel", "--format", "xml")

    assert (ran.status, ran.code) == (ExitStatus.USAGE, "USAGE_ERROR")
    assert [(error["param"], error["code"]) for error in ran.error["errors"]] == [
        ("--bogus", "UNKNOWN_OPTION"),
        ("--lock-timeout", "INVALID_VALUE"),
        ("--reveel", "UNKNOWN_OPTION"),
        ("--format", "INVALID_VALUE"),
        ("KEY", "MISSING"),
    ]
    assert "--reveal" in ran.error["errors"][2]["suggestion"]


def test_a_word_too_many_is_a_mistake_beside_the_others(tool: Tool) -> None:
    ran = tool("config", "path", "extra", "--lock-timeout", "soon")

    assert [error["code"] for error in ran.error["errors"]] == ["INVALID_VALUE", "EXTRA_ARGUMENT"]
    assert "(extra)" in ran.error["message"]
    assert ran.error["suggestion"] == "Usage: `tool config path [OPTIONS]`. For help, run `tool config path --help`."


def test_an_unknown_letter_among_others_hides_no_other_mistake(tool: Tool) -> None:
    for letters in ("-qx", "-xq", "-x5"):
        ran = tool("config", "get", letters, "--bogus")
        assert [error["param"] for error in ran.error["errors"]] == ["-x", "--bogus", "KEY"]


@pytest.mark.parametrize(
    ("call", "hint"),
    [
        (["confg"], "'config'"),
        (["config", "sett"], "'set'"),
        (["config"], "get, list, path, set"),
        (["config", "get", "--revel", "x"], "--reveal"),
        (["config", "set", "n", "-5"], "write `--` before it."),
        (["config", "set", "api.token", "x", "-5"], "write `--` before it."),
        (["config", "get"], "Usage: `tool config get [OPTIONS] KEY`. For help, run `tool config get --help`."),
        (["config", "list", "--format"], "Write --format json|jsonl|text."),
        (["version"], "Did you mean '--version'"),
        (["config", "get", "--scope", "x"], "For help, run `tool config get --help`."),
        (["config", "get", "--token", "x"], "For help, run `tool config get --help`."),
        (["config", "get", "--revael", "x"], "Did you mean '--reveal'?"),
    ],
)
def test_a_mistake_comes_with_a_way_out(tool: Tool, call: list[str], hint: str) -> None:
    ran = tool(*call)

    assert ran.status == ExitStatus.USAGE
    assert hint in ran.error["suggestion"]


def test_the_sentences_of_several_mistakes_read_as_one(tool: Tool) -> None:
    message = tool("--bogus", "config", "nope", "--wrong").error["message"]

    assert message == "No such option: --bogus; No such command: tool config nope."


def test_a_usage_error_has_the_form_that_was_asked_for(tool: Tool) -> None:
    ran = tool("config", "get", "--bogus", "--format", "text")
    assert (ran.stdout, ran.stderr.partition(b" -")[0]) == (b"", b"Error: No such option:")
    assert tool("confg", "--format", "text").stdout == b""
    assert tool("config", "get", "--bogus", "--format=text", "--json").code == "USAGE_ERROR"


def test_a_usage_error_names_the_command_it_belongs_to(tool: Tool) -> None:
    assert tool("config", "get", "--bogus").meta["command"] == "config.get"


@pytest.mark.parametrize("option", ["--json", "--quiet", "--verbose"])
def test_a_flag_takes_no_value(tool: Tool, option: str) -> None:
    assert tool("config", "list", f"{option}=yes").code == "USAGE_ERROR"


def help_of(command: str, width: int = 80) -> str:
    args = [*command.split(), "--help"]
    with pytest.raises(HelpRequested) as asked:
        root_command(args).main(args=args, prog_name="tool", standalone_mode=False, obj=Context(Signals()))
    return asked.value.text(width, False)


def test_help_of_every_command_is_there_and_its_summary_fits_into_a_line(
    tool: Tool,
) -> None:
    commands = [entry["command"] for entry in tool("manifest").data["commands"]]
    groups = {command.split()[0] for command in commands if " " in command}
    listed = {above: help_of(above) for above in ("", *groups)}
    for command in (*commands, *groups):
        text = help_of(command)
        usage, _, summary, *_ = text.splitlines()
        above, _, name = command.rpartition(" ")
        assert usage.startswith(f"Usage: tool {command} ")
        assert "{" not in usage, f"{command}: give the argument a metavar: {usage}"
        assert summary.strip().endswith("."), f"{command}: end the first line of the help with a full stop: {summary}"
        assert len(summary.strip()) <= 55, (
            f"{command}: more than 55 characters in the first line of the help: {summary}"
        )
        assert re.search(rf"^  {name} +{re.escape(summary.strip())}$", listed[above], re.MULTILINE)
        assert not re.search(r"<(str|int|float|path|choice)", text), f"{command}: give the option a metavar: {text}"
        wide = [line for line in text.partition("Examples:")[0].splitlines() if len(line) > 80]
        assert wide == [], f"{command}: these words cannot be broken into lines of 80"


def test_what_every_command_takes_is_listed_once(tool: Tool) -> None:
    assert "--lock-timeout DURATION" in tool("--help").text
    for command in (["config"], ["config", "set"]):
        text = tool(*command, "--help").text
        assert "--lock-timeout DURATION" not in text
        assert "Every command also takes --json, --format," in text
        assert "see `tool --help`" in " ".join(text.split())


@pytest.mark.parametrize("command", ["", "config", "config set"])
def test_help_is_the_same_however_it_is_asked_for(tool: Tool, command: str) -> None:
    asked = {tool("help", *command.split()).text, tool(*command.split(), "-h").text, help_of(command) + "\n"}

    assert len(asked) == 1


def test_examples_are_shown_as_they_are_typed(tool: Tool) -> None:
    assert "\n  echo s3cret | tool config set api.token -\n" in tool("help", "config", "set").text


def test_help_of_what_is_not_there_is_a_mistake(tool: Tool) -> None:
    assert tool("help", "confg").error["suggestion"] == "Did you mean 'config'?"


def test_the_version_has_a_short_option(tool: Tool) -> None:
    assert tool("-V").text == tool("--version").text


@pytest.mark.parametrize("width", [40, 60, 80, 120])
def test_help_is_as_wide_as_the_terminal_and_breaks_between_words_only(tool: Tool, width: int) -> None:
    assert tool("--help", COLUMNS=str(width)).text == help_of("", width) + "\n"
    for entry in ({"command": ""}, *tool("manifest").data["commands"]):
        wide, text = help_of(entry["command"], 10_000), help_of(entry["command"], width)

        assert set(text.split()) == set(wide.split())
        indented = [line for line in text.partition("Examples:")[0].splitlines() if len(line) > width]
        assert [line for line in indented if len(line.split()) > 1 and width >= 60] == []


def test_commands_are_listed_below_the_heading_of_their_part(tool: Tool) -> None:
    headings = [line for line in tool("--help").text.splitlines() if line.endswith(":")]

    assert "Settings, locks, sessions and this machine:" in headings
    assert re.search(r"^Settings,.*:\n  config ", tool("--help").text, re.MULTILINE)


def test_headings_are_bold_where_colour_is_wanted(tool: Tool) -> None:
    assert "\x1b[1mUsage:\x1b[0m tool [OPTIONS]" in tool("--help", FORCE_COLOR="1").text
    assert "\x1b" not in tool("--help").text
