"""The help topics say what the code does, because they are built from it."""

import re

import pytest

from sampletool.kit import command_help
from sampletool.kit.app import root_command
from sampletool.kit.contract.errors import INTERRUPTED, ExitStatus
from sampletool.kit.contract.response import FORMATS
from sampletool.kit.environment import ENVIRONMENT
from sampletool.kit.help_topics import EXIT_CODES, FORMAT_MEANINGS, TOPICS
from sampletool.kit.program import env_variable
from sampletool.kit.settings.known import all_settings
from sampletool.kit.testing.tool import Tool


def names_in(page: str) -> set[str]:
    """Return the names in the left columns of a page."""
    return set(re.findall(r"^  (\S+)  ", page, re.MULTILINE))


def test_the_topic_about_exit_codes_has_all_of_them(tool: Tool) -> None:
    page = tool("help", "exit-codes").text

    codes = {str(code.value) for code in ExitStatus} | {str(code) for code in INTERRUPTED}
    assert names_in(page) == codes
    assert EXIT_CODES.keys() == set(ExitStatus)
    for code in ExitStatus:
        assert re.search(rf"^  {code.value} +{code.name}: ", page, re.MULTILINE)


def test_the_topic_about_the_environment_has_all_variables(tool: Tool) -> None:
    page = tool("help", "environment").text

    settings = {env_variable(name) for name in all_settings()}
    assert names_in(page) == settings | ENVIRONMENT.keys()
    assert {"CLICOLOR", "CLICOLOR_FORCE", "NO_COLOR", "FORCE_COLOR"} <= names_in(page)


def test_the_topic_about_output_has_the_formats_and_the_members_of_a_response(tool: Tool) -> None:
    page = tool("help", "output").text

    members = tool("config", "list").response.keys() | {"error"}
    assert names_in(page) == set(FORMATS) | members
    assert FORMAT_MEANINGS.keys() == set(FORMATS)


@pytest.mark.parametrize("topic", TOPICS)
def test_a_topic_is_text_in_every_format_and_wherever_options_are(tool: Tool, topic: str) -> None:
    page = tool("help", topic).text

    assert page.startswith(TOPICS[topic]().about[:40])
    assert tool("help", topic, "--json").text == page
    assert tool("--json", "help", topic).text == page
    assert tool("help", "--json", topic).text == page


def test_the_topic_about_output_says_that_help_is_text(tool: Tool) -> None:
    page = tool("help", "output").text

    assert "Help and --version always print text, whatever the format is." in page


@pytest.mark.parametrize("words", ["help help", "help --json", "help help --json", "--json help"])
def test_help_about_nothing_is_the_page_of_the_tool(tool: Tool, words: str) -> None:
    assert tool(*words.split()).text == tool("help").text


def test_every_line_of_a_topic_fits_into_80_columns(tool: Tool) -> None:
    for topic in TOPICS:
        wide = [line for line in tool("help", topic).text.splitlines() if len(line) > 80]

        assert wide == [], topic


def test_the_page_of_the_tool_names_the_topics_in_one_line(tool: Tool) -> None:
    lines = tool("--help").text.splitlines()

    (line,) = [line for line in lines if line.startswith("Help topics")]
    assert line == "Help topics: exit-codes, environment, output."


def test_an_unknown_topic_is_an_error_that_names_a_similar_one(tool: Tool) -> None:
    similar = tool("help", "enviroment").error
    unknown = tool("help", "nonsense").error

    assert similar["message"] == "No such command or help topic: enviroment."
    assert similar["suggestion"] == "Did you mean 'environment'?"
    assert unknown["suggestion"].startswith("The commands are ")


def test_a_topic_is_not_a_command(tool: Tool) -> None:
    ran = tool("exit-codes")

    assert ran.code == "USAGE_ERROR"
    assert ran.error["suggestion"] == "Did you mean 'help exit-codes'?"


@pytest.mark.parametrize("address", ["", "https://docs.example/tool"])
def test_the_page_of_the_tool_names_the_address_of_the_documentation_if_there_is_one(
    monkeypatch: pytest.MonkeyPatch,
    address: str,
) -> None:
    monkeypatch.setattr(command_help, "DOCUMENTATION", address)

    page = command_help.tool_page("About.", root_command().described, [])

    footers = [footer for footer in page.footer if footer.startswith("Documentation")]
    assert footers == ([f"Documentation: {address}"] if address else [])
