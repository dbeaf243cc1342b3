"""How building and checking can fail."""

from typing import Any

from sampletool.contract.errors import ToolError, did_you_mean
from sampletool.contract.exit_status import ExitStatus
from sampletool.contract.printable import counted


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
