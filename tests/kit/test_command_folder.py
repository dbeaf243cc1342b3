"""Commands are files, and one response has all mistakes of a command line."""

import re
from collections.abc import Iterator
from typing import Annotated

import pytest

from sampletool.kit import command_folder, parse_level
from sampletool.kit.app import root_command
from sampletool.kit.context import Context
from sampletool.kit.contract.deprecation import DeprecatedFlag
from sampletool.kit.contract.errors import ExitStatus, UsageMistakes
from sampletool.kit.global_options import HelpRequested
from sampletool.kit.program import PROGRAM, __version__
from sampletool.kit.safety.signals import Signals
from sampletool.kit.testing.forked import function_program
from sampletool.kit.testing.tool import Ran, Tool, ended

_BOLD = "\x1b[1m"


def commands_of(tool: Tool) -> list[str]:
    """Return the names of all commands, such as `config set`."""
    return [entry["command"] for entry in tool("manifest").data["commands"]]


def pages_of(tool: Tool) -> list[str]:
    """Return the names of all commands, of their groups, and of the tool itself, which is ""."""
    commands = commands_of(tool)
    groups = {command.split()[0] for command in commands if " " in command}
    return ["", *sorted(groups), *commands]


def help_of(command: str, width: int = 80) -> str:
    """Return the help page of a command, of a group, or of the tool if the name is empty."""
    args = [*command.split(), "--help"]
    with pytest.raises(HelpRequested) as caught:
        root_command().main(
            args=args, prog_name=PROGRAM, standalone_mode=False, obj=Context(Signals())
        )
    return caught.value.text(width, False)


def without_examples(page: str) -> Iterator[str]:
    """Yield the lines of a page that are broken at its width. Command lines to copy are not."""
    is_example = False
    for line in page.splitlines():
        if line == "Examples:":
            is_example = True
        elif not line:
            is_example = False
        if not is_example:
            yield line


# Where options can be


@pytest.mark.parametrize(
    "args",
    [
        ["--session-id", "s", "config", "get", "jobs"],
        ["config", "--session-id", "s", "get", "jobs"],
        ["config", "get", "--session-id", "s", "jobs"],
        ["config", "get", "jobs", "--session-id", "s"],
        ["--session-id", "outer", "config", "get", "jobs", "--session-id=s"],
    ],
)
def test_a_global_option_works_in_every_place_and_the_last_one_wins(
    tool: Tool,
    args: list[str],
) -> None:
    assert tool(*args).meta["session_id"] == "s"


def test_a_word_after_two_dashes_is_not_an_option(tool: Tool) -> None:
    ran = tool("config", "set", "--", "message", "--format=text")

    assert ran.text.startswith("{")
    assert ran.data["changes"] == [{"key": "message", "effect": "created"}]
    assert tool("config", "get", "message").data["value"] == "--format=text"


def test_the_last_of_two_options_for_the_format_wins(tool: Tool) -> None:
    text_last = tool("config", "get", "jobs", "--json", "--format", "text")
    json_last = tool("config", "get", "jobs", "--format", "text", "--json")

    assert text_last.text == "auto\n"
    assert json_last.data["value"] == "auto"


def test_a_format_that_is_chosen_wins_over_raw(tool: Tool) -> None:
    assert tool("config", "get", "jobs", "--raw").text == "auto\n"
    assert tool("config", "get", "jobs", "--raw", "--json").data["value"] == "auto"
    assert tool("--json", "config", "get", "jobs", "--raw").data["value"] == "auto"


# Mistakes


def test_one_response_has_the_mistakes_of_all_levels(tool: Tool) -> None:
    ran = tool("--bogus", "config", "--lock-timeout", "soon", "get", "--reveel", "--format", "xml")

    assert (ran.status, ran.code) == (ExitStatus.USAGE, "USAGE_ERROR")
    assert [(mistake["param"], mistake["code"]) for mistake in ran.error["errors"]] == [
        ("--bogus", "UNKNOWN_OPTION"),
        ("--lock-timeout", "INVALID_VALUE"),
        ("--reveel", "UNKNOWN_OPTION"),
        ("--format", "INVALID_VALUE"),
        ("KEY", "MISSING"),
    ]
    assert "--reveal" in ran.error["errors"][2]["suggestion"]


def test_the_same_option_can_be_wrong_on_two_levels(tool: Tool) -> None:
    ran = tool("--timeout", "soon", "config", "list", "--timeout", "late")

    assert [mistake["param"] for mistake in ran.error["errors"]] == ["--timeout", "--timeout"]
    assert "'soon'" in ran.error["message"]
    assert "'late'" in ran.error["message"]


def test_an_argument_too_many_is_reported_with_the_other_mistakes(tool: Tool) -> None:
    ran = tool("config", "path", "extra", "--lock-timeout", "soon")

    assert [mistake["code"] for mistake in ran.error["errors"]] == [
        "INVALID_VALUE",
        "EXTRA_ARGUMENT",
    ]
    assert "(extra)" in ran.error["message"]
    usage = "Usage: `tool config path [OPTIONS]`."
    assert ran.error["suggestion"] == f"{usage} For help, run `tool config path --help`."


def test_the_value_of_an_unknown_option_is_not_reported_as_an_argument_too_many(tool: Tool) -> None:
    ran = tool("config", "get", "jobs", "--scope", "user")

    assert [mistake["code"] for mistake in ran.error["errors"]] == ["UNKNOWN_OPTION"]


def test_a_wrong_field_is_reported_with_the_other_mistakes(tool: Tool) -> None:
    ran = tool("config", "get", "jobs", "--bogus", "--fields", "nonsense")

    assert [mistake["code"] for mistake in ran.error["errors"]] == [
        "UNKNOWN_OPTION",
        "UNKNOWN_FIELD",
    ]
    assert "fields" not in ran.meta


@pytest.mark.parametrize("letters", ["-qx", "-xq", "-x5"])
def test_an_unknown_letter_among_others_hides_no_other_mistake(tool: Tool, letters: str) -> None:
    ran = tool("config", "get", letters, "--bogus")

    assert [mistake["param"] for mistake in ran.error["errors"]] == ["-x", "--bogus", "KEY"]


@pytest.mark.parametrize(
    ("args", "hint"),
    [
        (["confg"], "'config'"),
        (["config", "sett"], "'set'"),
        (["config"], "get, list, path, set"),
        (["config", "get", "--revel", "x"], "--reveal"),
        (["config", "set", "n", "-5"], "put `--` before the value."),
        (["config", "set", "api.token", "x", "-5"], "put `--` before the value."),
        (
            ["config", "get"],
            "Usage: `tool config get [OPTIONS] KEY`. For help, run `tool config get --help`.",
        ),
        (["config", "list", "--format"], "Use `--format json|jsonl|text`."),
        (["version"], "Did you mean '--version'"),
        (["config", "get", "--scope", "x"], "For help, run `tool config get --help`."),
        (["config", "get", "--token", "x"], "For help, run `tool config get --help`."),
        (["config", "get", "--revael", "x"], "Did you mean '--reveal'?"),
        (["exit-code"], "Did you mean 'help exit-codes'?"),
        (["help", "exit-code"], "Did you mean 'exit-codes'?"),
        (["help", "confg"], "Did you mean 'config'?"),
    ],
)
def test_a_mistake_has_a_hint(tool: Tool, args: list[str], hint: str) -> None:
    ran = tool(*args)

    assert ran.status == ExitStatus.USAGE
    assert hint in ran.error["suggestion"]


def test_the_messages_of_several_mistakes_are_one_sentence(tool: Tool) -> None:
    message = tool("--bogus", "config", "nope", "--wrong").error["message"]

    assert message == "No such option: --bogus; No such command: tool config nope."


def test_a_usage_error_has_the_requested_format(tool: Tool) -> None:
    text = tool("config", "get", "--bogus", "--format", "text")
    unknown_command = tool("confg", "--format", "text")
    json_last = tool("config", "get", "--bogus", "--format=text", "--json")

    assert (text.stdout, text.stderr.partition(b" -")[0]) == (b"", b"Error: No such option:")
    assert unknown_command.stdout == b""
    assert json_last.code == "USAGE_ERROR"


def test_a_usage_error_names_its_command(tool: Tool) -> None:
    assert tool("config", "get", "--bogus").meta["command"] == "config.get"


@pytest.mark.parametrize("option", ["--json", "--quiet", "--verbose"])
def test_a_flag_takes_no_value(tool: Tool, option: str) -> None:
    assert tool("config", "list", f"{option}=yes").code == "USAGE_ERROR"


def test_a_wrong_option_before_a_missing_command_is_an_error(tool: Tool) -> None:
    ran = tool("--bogus")

    assert [mistake["code"] for mistake in ran.error["errors"]] == ["UNKNOWN_OPTION", "MISSING"]


def test_a_missing_command_is_an_error_in_json_and_help_otherwise(tool: Tool) -> None:
    in_json = tool("--json")

    assert (in_json.code, in_json.status) == ("USAGE_ERROR", ExitStatus.USAGE)
    assert [mistake["code"] for mistake in in_json.error["errors"]] == ["MISSING"]
    page = tool("--help").text
    assert tool().text == tool("--help", "--json").text == tool("--quiet").text == page


# Help


def test_every_help_page_begins_with_the_usage_and_a_summary_of_one_line(tool: Tool) -> None:
    for command in pages_of(tool):
        usage, _, summary, *_ = help_of(command).splitlines()

        assert usage.startswith(f"Usage: tool {command}".rstrip())
        assert "{" not in usage
        assert summary.strip().endswith(".")


def test_every_help_page_fits_into_80_columns(tool: Tool) -> None:
    for command in pages_of(tool):
        wide = [line for line in without_examples(help_of(command)) if len(line) > 80]

        assert wide == [], command


def test_the_page_of_a_group_lists_its_commands_with_their_summaries(tool: Tool) -> None:
    for command in commands_of(tool):
        group, _, name = command.rpartition(" ")
        summary = help_of(command, 10_000).splitlines()[2].strip()

        rows = help_of(group, 10_000).splitlines()

        expected_row = rf"  {name} +{re.escape(summary)}( \[deprecated\])?"
        assert any(re.fullmatch(expected_row, row) for row in rows), command


def test_only_the_page_of_the_tool_describes_the_global_options(tool: Tool) -> None:
    assert "--lock-timeout DURATION" in tool("--help").text
    for args in (["config"], ["config", "set"]):
        page = tool(*args, "--help").text
        assert "--lock-timeout DURATION" not in page
        assert "Global options, described in `tool --help`:\n  --json, --format," in page


@pytest.mark.parametrize("command", ["", "config", "config set"])
def test_help_is_the_same_however_it_is_requested(tool: Tool, command: str) -> None:
    words = command.split()
    pages = {
        help_of(command) + "\n",
        tool("help", *words).text,
        tool("--quiet", "help", *words).text,
        tool(*words, "-h").text,
        tool(*words, "--help", "--json").text,
    }

    assert len(pages) == 1


def test_an_option_is_shown_with_its_default_and_its_limits() -> None:
    config_list = help_of("config list", 110)
    whole_tool = " ".join(help_of("", 110).split())

    assert re.search(r"--limit N .*\[default: \d+; 1 to 10000\]", config_list)
    assert re.search(r"--timeout DURATION .* \[default: no limit\]", whole_tool)


def test_examples_are_shown_as_they_are_typed(tool: Tool) -> None:
    assert "\n  echo s3cret | tool config set api.token -\n" in tool("help", "config", "set").text


@pytest.mark.parametrize("option", ["-V", "--version"])
def test_the_version_is_printed_with_the_name_of_the_tool(tool: Tool, option: str) -> None:
    assert tool(option).text == f"tool {__version__}\n"


@pytest.mark.parametrize("width", [40, 60, 80, 120])
def test_help_is_as_wide_as_the_terminal(tool: Tool, width: int) -> None:
    assert tool("--help", COLUMNS=str(width)).text == help_of("", width) + "\n"
    for command in pages_of(tool):
        page = help_of(command, width)

        # A line is only longer if a name or a word is.
        if width >= 60:
            long = [line for line in without_examples(page) if len(line) > width]
            assert [line for line in long if len(line.split()) > 1] == [], command
        assert set(page.split()) == set(help_of(command, 10_000).split()), command


def test_commands_are_listed_below_the_heading_of_their_part(tool: Tool) -> None:
    page = tool("--help").text

    assert re.search(r"^Settings,.*:\n  config ", page, re.MULTILINE)


def test_the_largest_part_is_listed_first_and_the_kit_last(tool: Tool) -> None:
    before_options = tool("--help").text.partition("\nGlobal options")[0]
    sections = re.findall(r"^\S.*:\n((?:  .*\n)+)", before_options, re.MULTILINE)

    sizes = [section.count("\n") for section in sections]

    assert sizes[:-1] == sorted(sizes[:-1], reverse=True)
    assert "  config " in sections[-1]


def test_color_governs_help_and_usage_errors(tool: Tool) -> None:
    heading = f"{_BOLD}Usage:\x1b[0m tool [OPTIONS]"

    assert heading in tool("--help", FORCE_COLOR="1").text
    assert heading in tool("--help", "--color", "always").text
    assert _BOLD in tool("--color", "always", "help", "config").text
    assert _BOLD in tool("help", "output", "--color", "always").text
    assert "\x1b" not in tool("--help").text
    assert "\x1b" not in tool("--help", "--color", "never", FORCE_COLOR="1").text
    for args in (["confg"], ["config", "get"], ["config", "nope"]):
        ran = tool(*args, "--format", "text", "--color", "always")
        assert ran.stderr.startswith(b"\x1b[31mError:"), args


# The names of files


_KEYWORDS = """
import sys, types
from dataclasses import dataclass

from sampletool.kit import command_folder
from sampletool.kit.contract.command_spec import CommandSpec
from sampletool.kit.start import main

@dataclass(frozen=True)
class Said:
    name: str
    def lines(self): return [self.name]

def command_called(name):
    def command() -> Said:
        "Say the name."
        return Said(name)
    return command

def module_called(name):
    module = types.ModuleType(name)
    module.spec, module.command = CommandSpec(effect="nothing"), command_called(name)
    sys.modules[name] = module

module_called("sampletool.kit.commands.import_")
module_called("sampletool.kit.commands.dry_run")
real_files = command_folder.os.listdir

def files_in(folder):
    more = ["import_.py", "dry_run.py"] if str(folder).endswith("kit/commands") else []
    return [*real_files(folder), *more]

command_folder.os.listdir = files_in
sys.argv = ["tool", *sys.argv[1:]]
sys.exit(main("sampletool"))
"""


@pytest.mark.parametrize(
    ("name", "module"),
    [("import", "sampletool.kit.commands.import_"), ("dry-run", "sampletool.kit.commands.dry_run")],
)
def test_a_command_can_have_a_name_that_is_no_name_in_python(
    tool: Tool, name: str, module: str
) -> None:
    ran = ended(tool.start(name, program=["-c", _KEYWORDS]))
    listed = ended(tool.start("--help", program=["-c", _KEYWORDS]))

    assert ran.data == {"name": module}
    assert f"  {name} " in listed.text


@pytest.mark.parametrize(
    ("module_name", "name"),
    [("import_", "import"), ("dry_run", "dry-run"), ("_options", "-options"), ("list_", "list-")],
)
def test_the_name_of_a_module_is_the_name_of_its_command(module_name: str, name: str) -> None:
    assert command_folder.command_name(module_name) == name


# Renamed and deprecated commands and options


def with_renamed_commands(tool: Tool, *args: str) -> Ran:
    """Run the tool with two more commands, one of which had other names before."""
    program = function_program("tests.kit.renamed_commands:main")
    return ended(tool.start(*args, program=program))


def warnings_of(ran: Ran) -> list[tuple[str, str]]:
    return [(warning["code"], warning["message"]) for warning in ran.response["warnings"]]


@pytest.mark.parametrize("former_name", ["brush", "dye"])
def test_a_former_name_of_a_command_works_with_a_warning(tool: Tool, former_name: str) -> None:
    ran = with_renamed_commands(tool, former_name, "wall", "--tone", "blue")

    assert ran.data == {"color": "blue"}
    assert ran.meta["command"] == "paint"
    message = f"`tool {former_name}` is now called `tool paint`."
    assert warnings_of(ran) == [("DEPRECATED", message)]


def test_the_present_name_of_a_command_has_no_warning(tool: Tool) -> None:
    ran = with_renamed_commands(tool, "paint", "wall", "--tone", "--colour")

    assert ran.data == {"color": "--colour"}


def test_a_deprecated_command_works_with_a_warning(tool: Tool) -> None:
    ran = with_renamed_commands(tool, "draw")

    assert ran.data == {"color": "black"}
    assert warnings_of(ran) == [("DEPRECATED", "`tool draw` is deprecated. Use `tool paint`.")]


@pytest.mark.parametrize("option", [["--colour", "blue"], ["--colour=blue"]])
def test_a_former_flag_sets_the_option_with_a_warning(tool: Tool, option: list[str]) -> None:
    ran = with_renamed_commands(tool, "paint", "wall", *option)

    assert ran.data == {"color": "blue"}
    assert warnings_of(ran) == [("DEPRECATED", "--colour is deprecated. Use --tone.")]


def test_the_present_flag_and_a_value_after_two_dashes_have_no_warning(tool: Tool) -> None:
    ran = with_renamed_commands(tool, "paint", "--tone", "blue", "--", "--colour")

    assert warnings_of(ran) == []


def test_a_deprecated_global_option_has_one_warning(monkeypatch: pytest.MonkeyPatch) -> None:
    deprecated = Annotated[str, DeprecatedFlag("--color", instead="Use your eyes.")]
    monkeypatch.setattr(parse_level, "GLOBAL_OPTIONS", {"color": deprecated})
    context = Context(Signals())
    args = ["--quiet", "config", "--quiet", "path", "--color", "never", "--bogus"]

    with pytest.raises(UsageMistakes):
        root_command().main(args=args, prog_name=PROGRAM, standalone_mode=False, obj=context)

    message = "--color is deprecated. Use your eyes."
    assert context.warnings == [{"code": "DEPRECATED", "message": message}]


def test_help_shows_what_is_deprecated(tool: Tool) -> None:
    paint = with_renamed_commands(tool, "paint", "--help").text
    draw = with_renamed_commands(tool, "draw", "--help").text
    all_commands = with_renamed_commands(tool, "--help").text

    assert "Formerly `tool brush` and `tool dye`. Old names still work" in paint
    assert re.search(r"--tone NAME +Use this tone. \[default: red; deprecated: --colour\]", paint)
    assert re.search(r"--thick +Deprecated. Lines have one width.", paint)
    assert "\n  Deprecated. Use `tool paint`.\n" in draw
    assert re.search(r"\n  draw +Draw a thing. \[deprecated\]\n", all_commands)
    assert "brush" not in all_commands


def test_the_manifest_marks_what_is_deprecated(tool: Tool) -> None:
    described = with_renamed_commands(tool, "manifest", "paint", "draw").data["commands"]
    commands = {entry["command"]: entry for entry in described}
    options = {option["name"]: option for option in commands["paint"]["options"]}

    assert commands["paint"]["former_names"] == ["brush", "dye"]
    assert commands["draw"]["deprecated"] == "Use `tool paint`."
    assert options["tone"]["deprecated_flags"] == {"--colour": "Use --tone."}
    assert options["thick"]["deprecated_flags"] == {"--thick": "Lines have one width."}
