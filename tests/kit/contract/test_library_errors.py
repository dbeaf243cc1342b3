"""sampletool/kit/contract/library_errors.py: an unknown outcome is reported as unknown."""

import signal

import pytest

from sampletool.kit.contract.library_errors import interrupted_when_done, to_tool_error
from sampletool.kit.safety.errors import DeadlineExceeded, Interrupted, SafetyError

_ORDER = "the order at https://supplier.example"


@pytest.mark.parametrize(
    "error",
    [
        Interrupted(signal.SIGINT, uncertain_change=_ORDER),
        DeadlineExceeded(1.0, uncertain_change=_ORDER),
    ],
    ids=["signal", "deadline"],
)
def test_a_change_that_may_have_been_made_has_an_unknown_outcome(error: SafetyError) -> None:
    reported = to_tool_error(error)

    assert reported.context["outcome"] == "unknown"
    assert reported.context["change"] == _ORDER
    assert reported.message.endswith(f"It is not known whether this change was made: {_ORDER}.")
    assert reported.suggestion.startswith("Check whether the change was made")


@pytest.mark.parametrize(
    "error",
    [Interrupted(signal.SIGINT), DeadlineExceeded(1.0)],
    ids=["signal", "deadline"],
)
def test_without_such_a_change_the_outcome_is_not_mentioned(error: SafetyError) -> None:
    reported = to_tool_error(error)

    assert "outcome" not in reported.context
    assert "not known" not in reported.message


def test_the_name_of_the_change_has_no_password() -> None:
    change = "the order at https://ann:hunter2@supplier.example"

    reported = to_tool_error(Interrupted(signal.SIGINT, uncertain_change=change))

    assert "hunter2" not in str(reported.describe())


def test_a_command_that_had_done_its_work_is_not_to_be_repeated() -> None:
    reported = interrupted_when_done(signal.SIGTERM)

    assert reported.code == "INTERRUPTED"
    assert reported.exit_status == 128 + signal.SIGTERM
    assert reported.context == {"signal": "SIGTERM"}
    assert not reported.suggestion.startswith("Run the command again")
