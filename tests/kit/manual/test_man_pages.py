"""sampletool/kit/manual/man_pages.py: each command has a page that says what the manifest says.

The format of the pages is checked where the wheel is built: tests/project/test_package.py.
"""

import re

import pytest

from sampletool.kit.contract.errors import ExitStatus
from sampletool.kit.global_options import described_options
from sampletool.kit.manual.man_pages import build_man_pages
from sampletool.kit.manual.roff import bold, escape, with_italic_placeholders
from sampletool.kit.program import PROGRAM, variable
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


@pytest.fixture
def pages(home: object) -> dict[str, str]:
    """Return the source of each page, by the name of its file."""
    return build_man_pages()


def _file_name(command: str) -> str:
    """Return the name of a command's file. The command is named with dots."""
    return f"{PROGRAM}-{command.replace('.', '-')}.1"


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


def test_a_page_shows_the_default_and_the_variable_of_an_option(pages: dict[str, str]) -> None:
    checked = 0
    for command, manifest in described().items():
        # The source of a page has lines of up to 80 characters.
        text = " ".join(pages[_file_name(command)].split())
        for option in manifest["options"]:
            if "default" in option:
                assert f"The default is {bold(str(option['default']))}." in text
                checked += 1
            if "variable" in option:
                assert f"The variable {bold(option['variable'])} sets it too." in text
                assert f".TP {bold(option['variable'])} The value of" in text

    assert checked > 0


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
    for name in (variable("CONFIG_DIR"), variable("LOCK_TIMEOUT"), "NO_COLOR"):
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
