"""sampletool/audit/errors.py"""

import pytest

from sampletool.audit.errors import FailsAlone, OutputLost, ProgramFailed, ProgramNotRunnable
from sampletool.kit.contract.errors import ToolError


@pytest.mark.parametrize(
    ("output", "message"),
    [
        ("", "Cannot audit `git x`: when run alone, it hangs."),
        (
            "no\n  database.\n",
            "Cannot audit `git x`: when run alone, it hangs. Its output: no database.",
        ),
    ],
)
def test_a_command_that_fails_alone_is_shown_with_its_output(output: str, message: str) -> None:
    error = FailsAlone("git x", "hangs", output)

    assert error.message == message
    assert error.context.get("output") == (output or None)


def test_a_password_of_the_command_is_not_shown() -> None:
    assert "hunter2" not in FailsAlone("git --password=hunter2", "hangs", "").message


@pytest.mark.parametrize(
    ("error", "code", "exit_code"),
    [
        (ProgramNotRunnable(command="git", reason="busy"), "COMMAND_NOT_FOUND", 5),
        (ProgramFailed(program="git", program_exit_code=42), "PROGRAM_FAILED", 42),
        (OutputLost(program="git"), "OUTPUT_LOST", 1),
        (FailsAlone("git", "hangs", ""), "FAILS_ALONE", 4),
    ],
)
def test_each_error_has_its_code_and_its_exit_code(
    error: ToolError,
    code: str,
    exit_code: int,
) -> None:
    assert (error.code, error.exit_status) == (code, exit_code)
