"""sampletool/kit/contract/expected.py: each expected exception becomes an error with a code."""

import errno

import pytest

from sampletool.kit.contract.errors import KeyNotFound, ToolError
from sampletool.kit.contract.expected import EXPECTED, to_tool_error
from sampletool.kit.safety.errors import Deadlock, SafetyError
from sampletool.kit.testing.failing import outcome_of


def reported(error: ToolError | SafetyError | OSError) -> ToolError:
    """Return the error that the tool reports. An expected exception must not end in a crash."""
    outcome = outcome_of(lambda: to_tool_error(error))

    assert isinstance(outcome, ToolError)
    return outcome


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (Deadlock("build"), "NESTED_CALL"),
        (FileNotFoundError(errno.ENOENT, "No such file or directory", "/w/x"), "FILE_NOT_FOUND"),
        (OSError("unknown"), "IO_ERROR"),
    ],
)
def test_an_exception_of_the_library_or_of_the_system_gets_a_code(
    error: SafetyError | OSError, code: str
) -> None:
    assert isinstance(error, EXPECTED)
    assert reported(error).code == code


def test_an_error_of_the_tool_is_reported_as_it_is() -> None:
    error: ToolError = KeyNotFound(key="a", where="the store")

    assert isinstance(error, EXPECTED)
    assert reported(error) is error


def test_a_bug_is_not_expected() -> None:
    assert not isinstance(ValueError("a bug"), EXPECTED)
