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
