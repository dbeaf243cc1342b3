"""sampletool/kit/contract/errors.py: every expected failure explains itself.

It also says whether a retry can succeed.
"""

import sys

import pytest

from sampletool.kit.contract.errors import (
    INTERRUPTED,
    CommandNotFound,
    ErrorKind,
    ExitStatus,
    InternalError,
    InvalidValues,
    Mistake,
    NoWorkspace,
    ToolError,
    UsageMistakes,
    VersionConflict,
    category,
    did_you_mean,
)
from sampletool.kit.contract.manifest import describe_errors
from sampletool.kit.contract.text import MAX_ECHOED_CHARACTERS, MAX_SENTENCE_CHARACTERS
from sampletool.kit.program import PACKAGE, PROGRAM
from sampletool.kit.testing.rules.test_errors import own_errors


class Lost(ToolError):
    """A thing is lost.

    This line is not part of the meaning.
    """

    code, exit_status = "LOST", ExitStatus.NOT_FOUND
    sentence = "{things} of {owner!r} are lost."
    advice = "`{PROGRAM} find` finds them."


class Busy(ToolError):
    """A thing is in use."""

    code, exit_status = "BUSY", ExitStatus.LOCK_HELD
    retry_after_ms: int | None = 250


def test_the_facts_are_in_the_message_and_in_the_context() -> None:
    lost = Lost(things=["a", "b"], owner="ann", since=None)

    assert lost.message == "a, b of 'ann' are lost."
    assert lost.suggestion == f"`{PROGRAM} find` finds them."
    assert str(lost) == lost.message
    assert lost.describe() == {
        "code": "LOST",
        "message": lost.message,
        "suggestion": lost.suggestion,
        "retryable": False,
        "exit_code": 5,
        "context": {"things": ["a", "b"], "owner": "ann"},
        "fix_command": f"{PROGRAM} find",
    }


def test_an_error_that_is_worth_a_retry_says_when() -> None:
    described = Busy("It is in use.").describe()

    assert described["retryable"] is True
    assert described["retry_after_ms"] == 250


def test_a_single_failure_can_have_another_time_before_a_retry_or_none() -> None:
    later = Busy("It is in use.").with_retry_after(5_000).describe()
    unknown = Busy("It may have happened.").with_retry_after(None).describe()

    assert (later["retryable"], later["retry_after_ms"]) == (True, 5_000)
    assert unknown["retryable"] is False
    assert "retry_after_ms" not in unknown


@pytest.mark.parametrize(
    "error_class",
    [error_class for error_class in own_errors() if hasattr(error_class, "code")],
)
def test_the_manifest_and_the_response_agree_whether_a_retry_can_succeed(
    error_class: type[ToolError],
) -> None:
    # The classes have constructors with different parameters. So use the one of the base class.
    error = error_class.__new__(error_class)
    ToolError.__init__(error, "It failed.", "Do something.")

    described = ToolError.describe(error)
    (in_manifest,) = describe_errors([error_class.kind()]).values()

    assert described["retryable"] == in_manifest["retryable"]
    assert ("retry_after_ms" in described) == in_manifest["retryable"]


def test_the_first_line_of_the_docstring_is_the_meaning_of_the_code() -> None:
    assert Lost.kind() == ErrorKind(
        code="LOST", exit_status=ExitStatus.NOT_FOUND, meaning="A thing is lost.", retryable=False
    )
    assert Busy.kind().retryable is True


def test_a_single_failure_can_have_its_own_message_and_hint() -> None:
    lost = Lost("All is lost.", "Look below.", things=["a"])

    assert (lost.message, lost.suggestion) == ("All is lost.", "Look below.")
    assert lost.context == {"things": ["a"]}


def test_an_empty_hint_stands_for_the_hint_of_the_class() -> None:
    lost = Lost(suggestion="", things=["a"], owner="ann")

    assert lost.suggestion == f"`{PROGRAM} find` finds them."


def test_the_hint_and_the_result_of_the_work_before_a_failure_can_be_added_later() -> None:
    lost = Lost(things=["a"], owner="ann")

    returned = lost.with_data("found b").with_hint("Look below.")

    assert returned is lost
    assert (lost.data, lost.suggestion) == ("found b", "Look below.")
    assert Lost(things=["a"], owner="ann", data="found c").data == "found c"


def test_braces_in_a_fact_are_not_replaced() -> None:
    lost = Lost(things=["{owner}"], owner="{things}")

    assert lost.message == "{owner} of '{things}' are lost."


def test_a_message_lists_ten_items_and_the_context_all() -> None:
    ten = Lost(things=[str(number) for number in range(10)], owner="ann")
    eleven = Lost(things=[str(number) for number in range(11)], owner="ann")

    assert ten.message == "0, 1, 2, 3, 4, 5, 6, 7, 8, 9 of 'ann' are lost."
    assert eleven.message == "0, 1, 2, 3, 4, 5, 6, 7, 8, 9, … of 'ann' are lost."
    assert len(eleven.context["things"]) == 11


def test_the_exit_codes_are_the_ones_that_scripts_know() -> None:
    assert {member.name: member.value for member in ExitStatus} == {
        "OK": 0,
        "INTERNAL": 1,
        "USAGE": 2,
        "PARTIAL": 3,
        "PRECONDITION": 4,
        "NOT_FOUND": 5,
        "CONFLICT": 6,
        "PERMISSION": 7,
        "AUTH": 8,
        "TIMEOUT": 10,
        "UNAVAILABLE": 12,
        "LOCK_HELD": 75,
    }
    assert INTERRUPTED == (129, 130, 131, 143)


@pytest.mark.parametrize(
    ("exit_code", "name"),
    [(0, "OK"), (5, "NOT_FOUND"), (75, "LOCK_HELD"), (129, "INTERRUPTED"), (143, "INTERRUPTED")],
)
def test_every_exit_code_has_a_name(exit_code: int, name: str) -> None:
    assert category(exit_code) == name


def test_a_number_that_is_no_exit_code_of_the_tool_has_no_name() -> None:
    with pytest.raises(ValueError, match="128"):
        category(128)


def test_the_mistakes_of_one_command_line_are_reported_together() -> None:
    error = InvalidValues(
        Mistake("a", "INVALID_VALUE", "a is wrong.", suggestion="Correct a."),
        Mistake("b", "INVALID_VALUE", "b is wrong", suggestion="Correct a."),
        Mistake("c", "INVALID_VALUE", "c is wrong", suggestion="Correct c."),
    )

    assert error.message == "a is wrong; b is wrong; c is wrong."
    assert error.suggestion == "Correct a. Correct c."
    assert error.describe()["errors"] == error.mistakes
    assert [mistake.param for mistake in error.mistakes] == ["a", "b", "c"]
    assert error.exit_status == 2


def test_mistakes_without_hints_leave_the_general_hint() -> None:
    mistake = Mistake("a", "INVALID_VALUE", "a is wrong")

    assert InvalidValues(mistake).suggestion == "Correct the values, then run the command again."
    assert InvalidValues(mistake, suggestion="Look it up.").suggestion == "Look it up."


def test_a_summary_can_replace_the_messages_of_the_mistakes() -> None:
    mistake = Mistake("a", "INVALID_VALUE", "a is wrong")

    error = InvalidValues(mistake, message="One problem.", path="/w")

    assert (error.message, error.context) == ("One problem.", {"path": "/w"})


def test_the_hint_about_a_wrong_command_line_names_the_usage_and_the_help_page() -> None:
    mistakes = [Mistake("KEY", "MISSING", "Missing argument KEY")]

    with_usage = UsageMistakes(mistakes, "tool get", "tool get KEY")
    without_usage = UsageMistakes(mistakes, "tool get")

    assert with_usage.suggestion == "Usage: `tool get KEY`. For help, run `tool get --help`."
    assert without_usage.suggestion == "For help, run `tool get --help`."
    assert with_usage.mistakes == mistakes
    assert (with_usage.code, with_usage.exit_status) == ("USAGE_ERROR", 2)


def test_a_missing_workspace_comes_with_the_command_that_creates_one() -> None:
    error = NoWorkspace(directory="/w")

    assert error.message == (
        "Not in a workspace: there is no tool.toml in /w or its parent directories."
    )
    assert error.suggestion == (
        "Change to a workspace, or pass --cwd DIR. "
        "To create a workspace here, run `touch tool.toml`."
    )


def test_a_version_conflict_names_both_versions() -> None:
    error = VersionConflict(key="plan", expected=1, actual=2)

    assert error.message == (
        "Version conflict: plan is at version 2, but you passed --if-version 1. "
        "Nothing was changed."
    )
    assert error.suggestion == (
        "Read the current value, apply your change to it, and pass the current version "
        "with --if-version."
    )
    assert error.context == {"expected": 1, "actual": 2, "key": "plan"}
    assert error.exit_status == 6


@pytest.mark.parametrize("actual", [0, ""])
def test_a_version_conflict_about_a_missing_value_says_that_it_does_not_exist(
    actual: int | str,
) -> None:
    error = VersionConflict(key="plan", expected=1, actual=actual)

    assert error.message == (
        "Version conflict: plan does not exist, but you passed --if-version 1. Nothing was changed."
    )


def test_an_internal_error_names_its_report_and_the_tracker(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(
        sys.modules[PACKAGE], "REPOSITORY", "https://example.org/repo", raising=False
    )
    with_file = InternalError("ValueError", "/s/crash.txt")
    without_file = InternalError("ValueError", None)

    assert with_file.message == (
        "Something went wrong unexpectedly (ValueError). The crash report is in /s/crash.txt."
    )
    assert with_file.context == {
        "kind": "ValueError",
        "report": "/s/crash.txt",
        "where": "in /s/crash.txt",
    }
    assert without_file.message == (
        "Something went wrong unexpectedly (ValueError). The crash report is on stderr."
    )
    assert "report" not in without_file.context
    assert with_file.suggestion == (
        "This is a bug. Please report it at https://example.org/repo/issues, "
        "and attach the crash report."
    )
    assert with_file.exit_status == 1


def test_an_internal_error_has_no_address_without_a_repository(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delattr(sys.modules[PACKAGE], "REPOSITORY", raising=False)

    error = InternalError("ValueError", None)

    assert error.suggestion == "This is a bug. Please report it, and attach the crash report."


# Long values


_LONG = "x" * 100_000


def test_a_long_fact_is_short_in_the_message_the_hint_and_the_context() -> None:
    error = CommandNotFound(command=_LONG)
    hint = error.with_hint(f"Did you mean {_LONG}?").suggestion

    assert len(error.message) < MAX_ECHOED_CHARACTERS + 50
    assert len(error.context["command"]) == MAX_ECHOED_CHARACTERS
    assert len(str(error)) < MAX_ECHOED_CHARACTERS + 50
    assert hint.startswith("Did you mean xxx")
    assert len(hint) < MAX_ECHOED_CHARACTERS + 50


def test_a_message_and_a_suggestion_that_replace_the_templates_are_short() -> None:
    error = ToolError(f"Cannot read {_LONG}.", f"Run `rm {_LONG}`.")

    assert error.message.startswith("Cannot read xxx")
    assert len(error.message) < MAX_ECHOED_CHARACTERS + 50
    assert len(error.suggestion) < MAX_ECHOED_CHARACTERS + 50


def test_a_path_in_the_context_and_in_a_command_to_copy_stays_whole() -> None:
    longest_path = "/" + "x" * 4094
    path = "/" + "x" * 900

    error = ToolError("It is missing.", f"Run `touch {path}`.", path=longest_path)

    assert error.context["path"] == longest_path
    assert error.suggestion == f"Run `touch {path}`."


def test_a_path_that_no_file_can_have_is_short() -> None:
    error = ToolError("x", "y", path="/" + "x" * 4095)

    assert len(error.context["path"]) == MAX_ECHOED_CHARACTERS


def test_the_texts_in_a_list_of_facts_are_short_and_other_facts_stay() -> None:
    error = ToolError("x", "y", names=["short", _LONG, 7], count=10**300, missing=None)

    short, long, number = error.context["names"]
    assert (short, number) == ("short", 7)
    assert len(long) == MAX_SENTENCE_CHARACTERS
    assert error.context["count"] == 10**300
    assert "missing" not in error.context


def test_everything_in_a_mistake_is_short() -> None:
    mistake = Mistake(
        param=f"--{_LONG}",
        code="UNKNOWN_OPTION",
        message=f"No such option: {_LONG}",
        value=_LONG,
        suggestion=f"Did you mean {_LONG}?",
    )

    error = InvalidValues(mistake)

    (shown,) = error.describe()["errors"]
    assert len(shown.param) == MAX_ECHOED_CHARACTERS
    assert len(shown.message) < MAX_ECHOED_CHARACTERS + 50
    assert len(shown.value) == MAX_ECHOED_CHARACTERS
    assert len(shown.suggestion) < MAX_ECHOED_CHARACTERS + 50
    assert len(error.message) < MAX_ECHOED_CHARACTERS + 50


def test_an_ordinary_mistake_is_not_changed() -> None:
    mistake = Mistake("KEY", "INVALID_VALUE", "a is given twice", "a", "Give it once.")
    bare_mistake = Mistake("KEY", "MISSING", "the key is missing")

    assert InvalidValues(mistake, bare_mistake).mistakes == [mistake, bare_mistake]


def test_100_mistakes_are_reported_and_the_others_are_counted() -> None:
    mistakes = [Mistake("KEY", "INVALID_VALUE", f"wrong {number}") for number in range(1000)]

    error = InvalidValues(*mistakes)

    assert error.mistakes == mistakes[:100]
    assert error.message.endswith("wrong 99; and 900 more mistakes.")


def test_fewer_mistakes_are_reported_if_they_are_long_and_at_least_one() -> None:
    mistakes = [
        Mistake("KEY", "INVALID_VALUE", f"{number} " + "\U0001f600 " * 400, str(number))
        for number in range(100)
    ]

    few = InvalidValues(*mistakes).mistakes

    assert 1 < len(few) < 10
    assert [mistake.value for mistake in few] == [mistake.value for mistake in mistakes[: len(few)]]
    assert len(InvalidValues(mistakes[0]).mistakes) == 1


def test_a_hint_can_name_the_program() -> None:
    error = CommandNotFound(command="x")

    assert (error.message, error.suggestion) == (
        'There is no command "x".',
        f"To list the commands, run `{PROGRAM} --help`.",
    )


def test_did_you_mean_proposes_only_similar_words() -> None:
    assert did_you_mean("sett", ["set", "get"]) == "Did you mean 'set'?"
    assert did_you_mean("zzz", ["set", "get"]) == ""


def test_did_you_mean_compares_options_without_their_dashes() -> None:
    assert did_you_mean("--revel", ["--reveal", "--raw"]) == "Did you mean '--reveal'?"
    assert did_you_mean("revel", ["--reveal"]) == "Did you mean '--reveal'?"
    assert did_you_mean("--x", ["--y", "--z"]) == ""


def test_did_you_mean_proposes_up_to_three_words_the_most_similar_first() -> None:
    known = ["abcdxy", "abcdex", "abcde", "abcdxz"]

    assert did_you_mean("abcde", known) == "Did you mean 'abcde' or 'abcdex' or 'abcdxz'?"


def test_did_you_mean_can_demand_more_similarity() -> None:
    assert did_you_mean("abcdex", ["abcdef"]) == "Did you mean 'abcdef'?"
    assert did_you_mean("abcdex", ["abcdef"], nearness=0.9) == ""


@pytest.mark.parametrize(
    ("hint", "ready"),
    [
        ("To list the keys, run `tool config list`.", {"fix_command": "tool config list"}),
        ("Run `tool lock release build`, and then `tool build`.", {}),
        ("To set it, run `tool config set KEY VALUE`.", {}),
        ("For help, run `tool config --help`.", {}),
        ("Run `touch tool.toml`.", {}),
        ("Did you mean 'jobs'?", {"corrected_input": "jobs"}),
        ("Did you mean 'jobs' or 'job'?", {}),
    ],
)
def test_a_program_can_use_a_hint_without_reading_it(hint: str, ready: dict[str, str]) -> None:
    described = CommandNotFound(command="x").with_hint(hint).describe()

    names = ("fix_command", "corrected_input")
    assert {name: described[name] for name in names if name in described} == ready


def test_a_mistake_has_the_word_that_was_probably_meant() -> None:
    one = Mistake("KEY", "X", "m", suggestion="Did you mean 'jobs'?")
    two = Mistake("KEY", "X", "m", suggestion="Did you mean 'jobs' or 'job'?")

    assert InvalidValues(one).mistakes[0].corrected_input == "jobs"
    assert InvalidValues(two).mistakes[0].corrected_input is None
