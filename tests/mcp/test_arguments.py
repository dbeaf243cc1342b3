"""sampletool/mcp/arguments.py: arguments become a command line that means just that."""

from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from sampletool.kit.contract.errors import Mistake
from sampletool.kit.testing.failing import outcome_of
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
        "is_shown": True,
        **changes,
    }
    return Parameter(**facts)


def converted(
    parameters: Sequence[Parameter],
    arguments: Mapping[str, object],
) -> tuple[list[str], list[Mistake]]:
    """Return a command line and the mistakes. No arguments of a caller raise an error."""
    found: Any = outcome_of(lambda: to_command_line(parameters, arguments))
    assert isinstance(found, tuple), repr(found)
    words, mistakes = found
    return words, mistakes


_AS_STRING = "Write it as a string. If JSON is meant, write the JSON into the string."
IN_USER_FILE = parameter(
    "global", aliases=frozenset({"in_user_file"}), flag="--global", type="boolean"
)
IF_VERSION = parameter("if_version", flag="--if-version", type="integer")


@pytest.mark.parametrize("name", ["global", "--global", "in_user_file", "in-user-file"])
def test_a_parameter_may_be_written_like_its_option_or_as_the_manifest_names_it(name: str) -> None:
    assert converted([IN_USER_FILE], {name: True}) == (["--global", "--"], [])


def test_an_argument_that_is_given_twice_is_a_mistake() -> None:
    words, mistakes = converted([IF_VERSION], {"if_version": 1, "if-version": 2})

    message = "if_version is given twice, the second time as 'if-version'"
    assert words == ["--if-version=1", "--"]
    assert mistakes == [Mistake("if_version", "INVALID_VALUE", message)]


def test_a_name_wins_over_an_alias_of_another_parameter() -> None:
    key = parameter("key")
    other = parameter("other", flag="--other", aliases=frozenset({"key"}))

    for parameters in ([key, other], [other, key]):
        assert converted(parameters, {"key": "a"}) == (["--", "a"], [])


@pytest.mark.parametrize(
    ("changes", "value", "words"),
    [
        ({}, "-x", ["--", "-x"]),
        ({}, 1.5, ["--", "1.5"]),
        ({}, None, ["--"]),
        ({"is_list": True}, ["a", "-b", 3], ["--", "a", "-b", "3"]),
        ({"flag": "--value"}, "a b", ["--value=a b", "--"]),
        ({"flag": "--value", "is_list": True}, ["a", "b"], ["--value=a", "--value=b", "--"]),
        ({"flag": "--value", "type": "boolean"}, True, ["--value", "--"]),
        ({"flag": "--value", "type": "boolean"}, False, ["--"]),
        ({"type": "boolean"}, True, ["--", "true"]),
    ],
)
def test_the_value_of_an_option_is_joined_to_it_and_arguments_come_last(
    changes: dict[str, Any],
    value: object,
    words: list[str],
) -> None:
    assert converted([parameter(**changes)], {"value": value}) == (words, [])


@pytest.mark.parametrize(
    ("changes", "value", "message", "hint"),
    [
        ({}, ["a"], "value must be one value, not a list", 'Write "...".'),
        ({"is_list": True}, "a", "value must be a list", 'Write ["..."].'),
        ({"type": "boolean"}, "yes", "value must be true or false", "Write true or false."),
        ({}, {"a": 1}, "value must be a string", _AS_STRING),
        ({"is_list": True}, [None], "value must be a list of strings", _AS_STRING),
        (
            {"reads_stdin": True},
            "-",
            "value must not be `-`, which means stdin",
            "Write the value itself. A tool cannot read stdin.",
        ),
        ({}, "a\0", "value contains a NUL character", None),
        ({}, "x" * 130_817, "value is longer than 130816 bytes", None),
        ({}, "\N{EURO SIGN}" * 43_606, "value is longer than 130816 bytes", None),
    ],
)
def test_a_value_of_another_kind_is_a_mistake_with_a_hint_and_without_the_value(
    changes: dict[str, Any],
    value: object,
    message: str,
    hint: str | None,
) -> None:
    words, mistakes = converted([parameter(**changes)], {"value": value})

    assert words == ["--"]
    assert mistakes == [Mistake("value", "INVALID_VALUE", message, suggestion=hint)]


@pytest.mark.parametrize("is_list", [False, True])
def test_a_dash_is_refused_where_it_would_mean_stdin(is_list: bool) -> None:
    """The stdin of a server belongs to the protocol. An empty value was stored."""
    value: Any = ["key", "-"] if is_list else "-"

    _words, mistakes = converted([parameter(is_list=is_list, reads_stdin=True)], {"value": value})
    assert ["stdin" in mistake.message for mistake in mistakes] == [True]

    words, mistakes = converted([parameter(is_list=is_list)], {"value": value})
    assert mistakes == []
    assert words[-1] == "-"


@pytest.mark.parametrize("value", [[None], [{}], [["x"]]])
def test_an_item_of_a_list_must_be_a_string(value: list[Any]) -> None:
    _words, mistakes = converted([parameter(is_list=True)], {"value": value})

    assert [mistake.message for mistake in mistakes] == ["value must be a list of strings"]


def test_a_whole_number_may_be_written_with_a_fraction_of_zero() -> None:
    """JSON does not distinguish 1.0 from 1."""
    words, mistakes = to_command_line([IF_VERSION], {"if_version": 1.0})

    assert (words, mistakes) == (["--if-version=1", "--"], [])
    assert to_command_line([IF_VERSION], {"if_version": 1.5})[0] == ["--if-version=1.5", "--"]


@pytest.mark.parametrize(("count", "is_taken"), [(10, True), (11, False)])
def test_arguments_that_are_too_long_together_are_refused(count: int, is_taken: bool) -> None:
    """Starting the process would fail with "argument list too long"."""
    values = ["x" * 100_000] * count

    _words, mistakes = to_command_line([parameter(is_list=True)], {"value": values})

    assert (mistakes == []) == is_taken
    for mistake in mistakes:
        assert "bytes together" in mistake.message
        assert mistake.suggestion is not None


def test_a_missing_argument_is_reported() -> None:
    for arguments in ({}, {"value": None}):
        assert converted([parameter(is_required=True)], arguments) == (
            ["--"],
            [Mistake("value", "MISSING", "value is missing")],
        )


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("xyz", "The arguments are if_version, global."),
        ("if_versoin", "Did you mean 'if_version'?"),
    ],
)
def test_an_unknown_argument_is_reported_with_a_similar_one_or_all(name: str, hint: str) -> None:
    words, mistakes = converted([IF_VERSION, IN_USER_FILE], {name: 1})

    message = f"there is no argument '{name}'"
    assert words == ["--"]
    assert mistakes == [Mistake(name, "UNKNOWN_OPTION", message, suggestion=hint)]


@pytest.mark.parametrize(
    ("size", "is_taken"), [(128 * 1024 - 256, True), (128 * 1024 - 255, False)]
)
def test_an_argument_may_be_as_long_as_a_process_can_get(
    size: int,
    is_taken: bool,
) -> None:
    _words, mistakes = converted([parameter()], {"value": "x" * size})

    assert (mistakes == []) is is_taken


def test_half_of_a_surrogate_pair_is_a_text_like_any_other() -> None:
    words, mistakes = converted([parameter()], {"value": "\ud800"})

    assert (words, mistakes) == (["--", "\ud800"], [])
