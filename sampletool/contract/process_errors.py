"""How reading inputs and publishing a result can fail."""

import signal
from typing import Any

from sampletool.contract.errors import Mistake, Mistakes, ToolError
from sampletool.contract.exit_status import ExitStatus


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


class InputChanged(ToolError):
    """An input was changed while it was read."""

    code, exit_status = "INPUT_CHANGED", ExitStatus.CONFLICT

    def __init__(self, path: str) -> None:
        super().__init__(
            f"{path} was changed while it was being read, so there is no result.",
            "Run it again when nobody writes to it, or on a copy.",
            path=path,
        )


class WorkerLost(ToolError):
    """A worker process died, so there is no result."""

    code, exit_status = "WORKER_LOST", ExitStatus.INTERNAL

    def __init__(self, pid: int, status: int) -> None:
        how = f"was killed by {signal.Signals(-status).name}" if status < 0 else f"ended with {status}"
        super().__init__(
            f"A worker process (pid {pid}) {how}, so there is no result.",
            "Run it again; if the machine is short of memory, with fewer --jobs.",
            pid=pid,
        )


class BadInputs(Mistakes):
    """Several inputs cannot be used. Code and status are those of the first; all are told."""

    def __init__(self, errors: list[ToolError]) -> None:
        told = [("--input", error.code, error.message, error.context.get("path"), error.suggestion) for error in errors]
        super().__init__([Mistake(*facts) for facts in told], errors[0].suggestion)
        self.code = errors[0].code  # type: ignore[misc]
        self.exit_status = errors[0].exit_status
