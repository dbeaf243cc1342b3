"""sampletool/sample/errors.py"""

import pytest

from sampletool.kit.contract.errors import Mistake, ToolError
from sampletool.sample.errors import (
    BuildFailed,
    InputChanged,
    InvalidCsv,
    InvalidWorkspace,
    NotBuilt,
    TargetNotFound,
)


@pytest.mark.parametrize(
    ("error", "code", "exit_code", "message"),
    [
        (
            BuildFailed(count=1, total=3, failed=["a"]),
            *("BUILD_FAILED", 3, "1 of 3 targets failed: a."),
        ),
        (
            TargetNotFound(kind="target", names=["b"]),
            *("TARGET_NOT_FOUND", 5, "tool.toml has no target b."),
        ),
        (
            NotBuilt(targets=["a"]),
            *("NOT_BUILT", 4, "The checks need a, which was not built."),
        ),
        (
            InvalidCsv(path="in.csv", line=2, reason="it has 3 cells"),
            *("INVALID_CSV", 2, "in.csv, line 2: it has 3 cells."),
        ),
        (
            InputChanged("in.csv"),
            "INPUT_CHANGED",
            6,
            "in.csv was changed while it was being read, so there is no result.",
        ),
    ],
)
def test_each_error_has_a_code_an_exit_code_and_a_sentence(
    error: ToolError,
    code: str,
    exit_code: int,
    message: str,
) -> None:
    assert (error.code, error.exit_status, error.message) == (code, exit_code, message)


def test_the_problems_of_a_workspace_are_counted_and_all_reported() -> None:
    problems = [Mistake("a", "INVALID_VALUE", "line 1: x"), Mistake("b", "INVALID_VALUE", "y")]

    error = InvalidWorkspace("tool.toml", problems)

    assert error.message == "tool.toml has 2 problems. No command was run."
    assert error.suggestion == "Correct all of them, then run the command again."
    assert list(error.mistakes) == problems
    assert error.context == {"path": "tool.toml", "problems": ["line 1: x", "y"]}
