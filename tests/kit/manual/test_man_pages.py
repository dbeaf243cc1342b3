"""sampletool/kit/manual/man_pages.py: each command has a page that says what the manifest says.

The format of the pages is checked where the wheel is built: tests/project/test_package.py.
"""

import re
from pathlib import Path
from typing import Any

import pytest

from sampletool.kit.contract.errors import ExitStatus
from sampletool.kit.global_options import described_options
from sampletool.kit.manual.man_pages import DocumentedCommand, build_man_pages, command_page
from sampletool.kit.manual.roff import (
    bold,
    escape,
    italic,
    with_bold_code,
    with_italic_placeholders,
)
from sampletool.kit.program import PACKAGE, PROGRAM, env_variable
from sampletool.kit.testing.forked import run_python
from sampletool.kit.testing.schema import described

_SECTIONS = [
    "NAME",
    "SYNOPSIS",
    "DESCRIPTION",
    "OPTIONS",
    "EXIT STATUS",
    "ENVIRONMENT",
    "FILES",
    "EXAMPLES",
    "SEE ALSO",
]

_EXAMPLE = "acme add 'a b' --count 3"
_OPTIONAL = {"required": False, "repeatable": False}


@pytest.fixture
def pages(home: object) -> dict[str, str]:
    """Return the source of each page, by the name of its file."""
    return build_man_pages()


def _file_name(command: str) -> str:
    """Return the name of a command's file. The command is named with dots."""
    return f"{PROGRAM}-{command.replace('.', '-')}.1"


def _text(page: str) -> str:
    """Return the page in one line. Its source has lines of up to 80 characters."""
    return " ".join(page.split())


def test_each_command_has_a_page_and_so_has_the_tool(pages: dict[str, str]) -> None:
    files_of_commands = {_file_name(command) for command in described()}

    assert pages.keys() == files_of_commands | {f"{PROGRAM}.1"}


def test_each_page_has_the_usual_sections_in_their_usual_order(pages: dict[str, str]) -> None:
    for name, page in pages.items():
        sections = re.findall(r"^\.SH (.+)$", page, re.MULTILINE)
        usual_sections = [section for section in sections if section in _SECTIONS]
        assert usual_sections == _SECTIONS, name


def test_each_option_and_argument_is_described_with_its_metavar(pages: dict[str, str]) -> None:
    for command, manifest in described().items():
        page = pages[_file_name(command)]
        for option in manifest["options"]:
            for flag in option["flags"]:
                assert bold(flag) in page, f"{command} {flag}"
            if "metavar" in option:
                longest_flag = max(option["flags"], key=len)
                metavar = with_italic_placeholders(option["metavar"])
                assert f"{bold(longest_flag)} {metavar}\n" in page
        for argument in manifest["arguments"]:
            assert f".TP\n{with_italic_placeholders(argument['metavar'])}\n" in page


def test_the_description_is_the_whole_help_of_a_command(pages: dict[str, str]) -> None:
    for command, manifest in described().items():
        text = _text(pages[_file_name(command)]).replace(" .PP ", " ")
        assert with_bold_code(f"{manifest['summary']} {manifest['help']}".strip()) in text


def test_a_page_shows_the_default_and_the_variable_of_an_option(pages: dict[str, str]) -> None:
    checked = 0
    for command, manifest in described().items():
        text = _text(pages[_file_name(command)])
        for option in manifest["options"]:
            if "default" in option:
                assert f"The default is {bold(str(option['default']))}." in text
                checked += 1
            if "variable" in option:
                assert f"The variable {bold(option['variable'])} sets it too." in text
                assert f".TP {bold(option['variable'])} The value of" in text

    assert checked > 0


def _example() -> dict[str, Any]:
    """Return the manifest of a command that has one of everything."""
    return {
        "usage": "acme add [OPTIONS] ITEM...",
        "destroys": "The oldest item.",
        "locks": [{"lock": "stock", "waits": "10s"}, {"lock": "output", "waits": "0ms"}],
        "arguments": [
            {"metavar": "ITEM", "required": True},
            {"metavar": "[MORE]...", "required": False},
        ],
        "options": [
            {"flags": ["--count", "-c"], "minimum": 1, "maximum": 9, **_OPTIONAL},
            {"flags": ["--least"], "minimum": 0, "default": 3, **_OPTIONAL},
            {"flags": ["--most"], "maximum": 7, **_OPTIONAL},
            {"flags": ["--must"], "metavar": "NAME", "required": True, "repeatable": False},
            {"flags": ["--tag"], "help": "Add a tag.", "required": False, "repeatable": True},
        ],
        "errors": {
            "NOT_HERE": {"exit_status": 5, "meaning": "Not here."},
            "STOPPED": {"exit_status": 130, "meaning": "A signal."},
            "GONE": {"exit_status": 5, "meaning": "Gone."},
        },
        "examples": [_EXAMPLE],
    }


@pytest.fixture
def example_page() -> str:
    """Return the page of the example, without line breaks."""
    command = DocumentedCommand(
        name="add",
        paragraphs=["Add items.", "First detail.", "Second `detail`."],
        manifest=_example(),
    )
    return _text(command_page(command, [command]).render())


@pytest.mark.parametrize(
    "expected",
    [
        f".SH DESCRIPTION Add items. .PP First detail. .PP Second {bold('detail')}. .PP",
        "Data that is lost: The oldest item.",
        "Locks: stock (waits up to 10s), output (does not wait).",
        rf".TP {italic('ITEM')} This argument is required.",
        rf".TP [{italic('MORE')}]... This argument is optional.",
        rf".TP {bold('-c')}, {bold('--count')} The value must be between 1 and 9.",
        rf".TP {bold('--least')} The default is {bold('3')}. The value must be at least 0.",
        rf".TP {bold('--most')} The value must be at most 7.",
        rf".TP {bold('--must')} {italic('NAME')} This option is required.",
        rf".TP {bold('--tag')} Add a tag. You can repeat this option.",
        rf".TP 5 {bold('NOT_HERE')}: Not here. .br {bold('GONE')}: Gone. .TP",
        rf".TP 129, 130, 131, 143 {bold('STOPPED')}: A signal.",
        f".EX {escape(_EXAMPLE)} .EE",
    ],
)
def test_a_page_says_everything_that_the_manifest_says(example_page: str, expected: str) -> None:
    assert expected in example_page


def test_the_synopsis_is_only_the_usage(pages: dict[str, str]) -> None:
    page = pages[_file_name("config.get")]

    (synopsis,) = re.findall(r"^\.SH SYNOPSIS\n(.*?)^\.SH", page, re.MULTILINE | re.DOTALL)

    assert synopsis.count("\n") == 1
    assert synopsis.startswith(bold(f"{PROGRAM} config get"))


def test_the_exit_status_of_a_command_names_its_errors(pages: dict[str, str]) -> None:
    page = pages[_file_name("config.get")]

    expected = f"\n.TP\n{ExitStatus.NOT_FOUND.value}\n"
    _, _, after = page.partition(expected)
    assert after.partition(".TP")[0].count(bold("KEY_NOT_FOUND")) == 1


def test_the_page_of_the_tool_describes_what_commands_have_in_common(
    pages: dict[str, str],
) -> None:
    page = pages[f"{PROGRAM}.1"]

    for command in described():
        assert bold(f"{PROGRAM}-{command.replace('.', '-')}") in page
    for option in described_options():
        for flag in option["flags"]:
            assert bold(flag) in page
    for exit_code in ExitStatus:
        assert f"\n.TP\n{exit_code.value}\n" in page
    for name in (env_variable("CONFIG_DIR"), env_variable("LOCK_TIMEOUT"), "NO_COLOR"):
        assert f"\n.TP\n{bold(name)}\n" in page
    assert escape("config.toml") in page


def test_related_commands_refer_to_each_other(pages: dict[str, str]) -> None:
    page = pages[_file_name("config.get")]

    _, _, references = page.partition(".SH SEE ALSO")

    assert f"{bold(f'{PROGRAM}-config-set')}(1)" in references
    assert bold(f"{PROGRAM}-config-get") not in references


def test_a_build_that_must_be_reproducible_sets_the_date(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1000000000")

    pages = build_man_pages()

    assert ' 1 2001-09-09 "' in pages[f"{PROGRAM}.1"]


def test_the_pages_are_written_into_a_directory(pages: dict[str, str], tmp_path: Path) -> None:
    directory = tmp_path / "new" / "man1"

    run_python("-m", f"{PACKAGE}.kit.manual", directory)

    written = {path.name: path.read_text() for path in directory.iterdir()}
    assert written.keys() == pages.keys()
    assert written[f"{PROGRAM}.1"].startswith(f".TH {PROGRAM.upper()} 1 ")


def test_without_a_directory_the_usage_is_printed() -> None:
    ran = run_python("-m", f"{PACKAGE}.kit.manual", check=False)

    assert ran.returncode == ExitStatus.USAGE
    assert ran.stderr == f"Usage: python -m {PACKAGE}.kit.manual DIRECTORY\n"


def _section(page: str, title: str) -> str:
    """Return the text of a section, without line breaks."""
    _, _, after = page.partition(f".SH {title}\n")
    return _text(after.partition(".SH ")[0])


def test_the_page_of_the_tool_says_what_it_is_and_how_it_is_run(pages: dict[str, str]) -> None:
    page = pages[f"{PROGRAM}.1"]

    name, separator, summary = _section(page, "NAME").partition(r" \- ")
    assert (name, separator) == (PROGRAM, r" \- ")
    assert summary != ""
    assert not summary.endswith(".")
    synopsis = f"{bold(PROGRAM)} [{italic('OPTIONS')}] {italic('COMMAND')} [{italic('ARGS')}]..."
    assert _section(page, "SYNOPSIS") == synopsis
    description = _section(page, "DESCRIPTION")
    assert description.startswith(f"{summary}. .PP ")
    help_line = f"{bold(f'{PROGRAM} help')} {italic('COMMAND')} prints a shorter description."
    assert description.endswith(f" .PP Each command has a page of its own. {help_line}")


def test_the_page_of_the_tool_lists_each_command_with_its_summary(pages: dict[str, str]) -> None:
    expected = []
    for command, manifest in described().items():
        page_name = f"{PROGRAM}-{command.replace('.', '-')}"
        expected.append(f".TP {bold(page_name)}(1) {with_bold_code(manifest['summary'])}")

    assert _section(pages[f"{PROGRAM}.1"], "COMMANDS") == " ".join(expected)


def test_the_page_of_the_tool_tells_both_sorts_of_its_options_apart(
    pages: dict[str, str],
) -> None:
    options = _section(pages[f"{PROGRAM}.1"], "OPTIONS")

    every, separator, without = options.partition(
        ".PP These options are for the tool without a command: "
    )
    assert every.startswith("Every command takes these options, before or after its name: .TP ")
    assert separator != ""
    assert bold("--quiet") in every
    assert bold("--version") not in every
    assert bold("--version") in without
    assert bold("--quiet") not in without
    assert f"{bold('-C')}, {bold('--cwd')} {italic('DIR')} " in every


def test_the_page_of_the_tool_ends_with_examples_and_the_first_commands(
    pages: dict[str, str],
) -> None:
    page = pages[f"{PROGRAM}.1"]

    examples = [f"{PROGRAM} {words}" for words in ("help config set", "config list")]
    assert _section(page, "EXAMPLES").startswith(f".EX {' '.join(examples)} ")
    references = []
    for name in ("config-explain", "doctor", "manifest"):
        references.append(f"{bold(f'{PROGRAM}-{name}')}(1)")
    assert _section(page, "SEE ALSO") == ", ".join(references)


def test_the_page_of_the_tool_explains_its_files_variables_and_exit_codes(
    pages: dict[str, str],
) -> None:
    page = pages[f"{PROGRAM}.1"]

    files = _section(page, "FILES")
    for file in ("tool.toml", ".tool/", f"/tmp/{PROGRAM}"):
        assert escape(file) in files
    assert files.count(".TP ") == 5
    variables = _section(page, "ENVIRONMENT")
    assert f".TP {bold('TOOL_CALL_LOG')} " in variables
    assert f"which {bold('log')} shows: on or off. The default is {bold('on')}. .TP" in variables
    names = re.findall(r"\.TP \\fB([^\\]+)\\fR", variables)
    assert names == sorted(names)
    exit_codes = _section(page, "EXIT STATUS")
    assert exit_codes.startswith(".TP 0 The command succeeded. .TP 1 ")
    assert exit_codes.endswith(
        ".TP 129, 130, 131, 143 A signal ended the command. The exit code is 128 plus its number."
    )


def test_a_command_without_arguments_has_no_section_for_them() -> None:
    manifest = {**_example(), "arguments": [], "destroys": "", "locks": []}
    command = DocumentedCommand(name="add", paragraphs=["Add items."], manifest=manifest)

    page = command_page(command, [command]).render()

    assert ".SH ARGUMENTS" not in page
    assert _section(page, "DESCRIPTION") == "Add items."


def test_the_page_of_a_command_names_its_settings_files_and_where_to_read_on() -> None:
    add = DocumentedCommand(name="stock add", paragraphs=["Add items."], manifest=_example())
    other = DocumentedCommand(name="stock list", paragraphs=["List."], manifest=_example())
    unrelated = DocumentedCommand(name="order", paragraphs=["Order."], manifest=_example())

    page = command_page(add, [add, other, unrelated]).render()

    assert _section(page, "NAME") == rf"{PROGRAM}\-stock\-add \- Add items"
    files = _section(page, "FILES")
    assert files.count(".TP ") == 2
    assert files.endswith(f".PP {bold(PROGRAM)}(1) describes all files of the tool.")
    references = f"{bold(PROGRAM)}(1), {bold(f'{PROGRAM}-stock-list')}(1)"
    assert _section(page, "SEE ALSO") == references


def test_each_list_on_the_page_of_a_command_says_where_the_rest_is() -> None:
    command = DocumentedCommand(name="add", paragraphs=["Add items."], manifest=_example())

    page = command_page(command, [command]).render()

    tool_page = f"{bold(PROGRAM)}(1)"
    endings = {
        "OPTIONS": "describes the options that every command takes.",
        "EXIT STATUS": "lists all exit codes.",
        "ENVIRONMENT": "describes the variables that every command reads.",
        "FILES": "describes all files of the tool.",
    }
    for title, ending in endings.items():
        assert _section(page, title).endswith(f"{tool_page} {ending}"), title
