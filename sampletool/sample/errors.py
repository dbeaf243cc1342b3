"""How the sample's commands can fail: building, checking, profiling."""

from typing import Any

from sampletool.kit.contract.errors import Mistake, Mistakes, ToolError, did_you_mean
from sampletool.kit.contract.exit_status import ExitStatus
from sampletool.kit.contract.text import counted


class BuildFailed(ToolError):
    """Some targets failed; the data tells which. What was built stays built."""

    code, exit_status = "BUILD_FAILED", ExitStatus.PARTIAL

    def __init__(self, failed: list[str], data: Any) -> None:
        super().__init__(
            f"{len(failed)} of {counted(len(data.targets), 'target')} failed: {', '.join(failed)}.",
            "The data has the end of each output, and where all of it is. What was built stays built.",
            data=data,
            failed=failed,
        )


class TargetNotFound(ToolError):
    """tool.toml has no such target or check."""

    code, exit_status = "TARGET_NOT_FOUND", ExitStatus.NOT_FOUND

    def __init__(self, kind: str, names: list[str], known: list[str]) -> None:
        hints = " ".join(filter(None, (did_you_mean(name, known) for name in names)))
        super().__init__(
            f"tool.toml has no {kind} {', '.join(map(repr, names))}.",
            hints or f"It has {', '.join(known) or 'none'}.",
            names=names,
        )


class NotBuilt(ToolError):
    """The checks need a target that is not built."""

    code, exit_status = "NOT_BUILT", ExitStatus.PRECONDITION

    def __init__(self, names: list[str]) -> None:
        super().__init__(
            f"The checks need {', '.join(names)}, which is not built.",
            "Run `tool build`, or pass --build.",
            targets=names,
        )


class InvalidCsv(ToolError):
    """An input cannot be read as CSV; the message names the line."""

    code, exit_status = "INVALID_CSV", ExitStatus.USAGE

    def __init__(self, path: str, line: int, reason: str, suggestion: str) -> None:
        super().__init__(f"{path}, line {line}: {reason}.", suggestion, path=path, line=line, reason=reason)


class ProcessPartial(ToolError):
    """The result is there, but it is not about every row."""

    code, exit_status = "PROCESS_PARTIAL", ExitStatus.PARTIAL

    def __init__(self, skipped: int, data: Any) -> None:
        super().__init__(
            f"{skipped} bad {'row was' if skipped == 1 else 'rows were'} left out; the result is about all the others.",
            "The data tells which rows and why; correct them, or go on with the result as it is.",
            data=data,
            skipped=skipped,
        )


class BadInputs(Mistakes):
    """Several inputs cannot be used. Code and status are those of the first; all are told."""

    def __init__(self, errors: list[ToolError]) -> None:
        told = [("--input", error.code, error.message, error.context.get("path"), error.suggestion) for error in errors]
        super().__init__([Mistake(*facts) for facts in told], errors[0].suggestion)
        self.code = errors[0].code  # type: ignore[misc]
        self.exit_status = errors[0].exit_status
