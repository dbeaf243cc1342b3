"""sampletool/mcp/arguments.py: arguments become a command line that means just that."""

from typing import Any

import pytest

from sampletool.mcp.arguments import to_command_line
from sampletool.mcp.parameters import Parameter


def parameter(name: str = "value", **changes: Any) -> Parameter:
    facts: dict[str, Any] = {
        "name": name,
        "aliases": frozenset(),
        "flag": None,
        "type": "string",
        "is_required": False,
        "is_list": False,
        "reads_stdin": False,
        "schema": {},
        **changes,
    }
    return Parameter(**facts)


IN_USER_FILE = parameter(
    "global", aliases=frozenset({"in_user_file"}), flag="--global", type="boolean"
)
IF_VERSION = parameter("if_version", flag="--if-version", type="integer")


@pytest.mark.parametrize("name", ["global", "--global", "in_user_file", "in-user-file"])
def test_a_parameter_may_be_written_like_its_option_or_as_the_manifest_names_it(name: str) -> None:
    assert to_command_line([IN_USER_FILE], {name: True}) == (["--global", "--"], [])


def test_an_argument_that_is_given_twice_is_a_mistake() -> None:
    _words, mistakes = to_command_line([IF_VERSION], {"if_version": 1, "if-version": 2})

    assert [mistake.param for mistake in mistakes] == ["if_version"]
    assert "twice" in mistakes[0].message


@pytest.mark.parametrize("is_list", [False, True])
def test_a_dash_is_refused_where_it_would_mean_stdin(is_list: bool) -> None:
    """The stdin of a server belongs to the protocol. An empty value was stored."""
    value: Any = ["key", "-"] if is_list else "-"

    _words, mistakes = to_command_line(
        [parameter(is_list=is_list, reads_stdin=True)], {"value": value}
    )
    assert ["stdin" in mistake.message for mistake in mistakes] == [True]

    words, mistakes = to_command_line([parameter(is_list=is_list)], {"value": value})
    assert mistakes == []
    assert words[-1] == "-"


@pytest.mark.parametrize("value", [[None], [{}], [["x"]]])
def test_an_item_of_a_list_must_be_a_string(value: list[Any]) -> None:
    _words, mistakes = to_command_line([parameter(is_list=True)], {"value": value})

    assert [mistake.message for mistake in mistakes] == ["value must be a string"]


def test_a_missing_argument_is_reported() -> None:
    _words, mistakes = to_command_line([parameter(is_required=True)], {})

    assert [(mistake.param, mistake.code) for mistake in mistakes] == [("value", "MISSING")]


def test_an_unknown_argument_is_reported_with_the_known_ones() -> None:
    _words, mistakes = to_command_line([IF_VERSION], {"xyz": 1})

    assert mistakes[0].code == "UNKNOWN_OPTION"
    assert mistakes[0].suggestion == "The arguments are if_version."


@pytest.mark.parametrize(
    ("size", "is_taken"), [(128 * 1024 - 256, True), (128 * 1024 - 255, False)]
)
def test_an_argument_may_be_as_long_as_a_process_can_get(
    size: int,
    is_taken: bool,
) -> None:
    _words, mistakes = to_command_line([parameter()], {"value": "x" * size})

    assert (mistakes == []) is is_taken


def test_half_of_a_surrogate_pair_is_a_text_like_any_other() -> None:
    words, mistakes = to_command_line([parameter()], {"value": "\ud800"})

    assert (words, mistakes) == (["--", "\ud800"], [])
