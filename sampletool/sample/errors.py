"""Say how building, checking and profiling can fail."""

from ..kit.contract.errors import ExitStatus, InvalidValues, Mistake, ToolError
from ..kit.contract.file_errors import PathError
from ..kit.contract.text import counted


class InvalidWorkspace(InvalidValues):
    """The workspace file declares something that cannot be built or checked."""

    def __init__(self, path: str, problems: list[Mistake]) -> None:
        """Report all problems together."""
        super().__init__(
            *problems,
            message=f"{path} has {counted(len(problems), 'problem')}. No command was run.",
            suggestion="Correct all of them, then run the command again.",
            path=path,
            problems=[problem.message for problem in problems],
        )


class BuildFailed(ToolError):
    """Some targets failed. `data` shows which ones, and why."""

    code, exit_status = "BUILD_FAILED", ExitStatus.PARTIAL
    sentence = "{count} of {total} targets failed: {failed}."
    advice = "The output shows why each of them failed. The other targets stay built."


class TargetNotFound(ToolError):
    """The workspace has no such target or check."""

    code, exit_status = "TARGET_NOT_FOUND", ExitStatus.NOT_FOUND
    sentence = "{WORKSPACE_FILE} has no {kind} {names}."


class NotBuilt(ToolError):
    """The checks need a target that was not built."""

    code, exit_status = "NOT_BUILT", ExitStatus.PRECONDITION
    sentence = "The checks need {targets}, which was not built."
    advice = "Run `{PROGRAM} build`, or pass --build."


class InvalidCsv(ToolError):
    """The input is not valid CSV. The message names the line."""

    code, exit_status = "INVALID_CSV", ExitStatus.USAGE
    sentence = "{path}, line {line}: {reason}."
    advice = (
        "Correct the file, or name its delimiter with --delimiter. "
        "To convert a file to UTF-8, run `iconv -f ENCODING -t UTF-8 FILE`."
    )


class InputChanged(PathError):
    """Another process changed the input while it was being read."""

    code, exit_status = "INPUT_CHANGED", ExitStatus.CONFLICT
    sentence = "{path} was changed while it was being read, so there is no result."
    advice = "Run the command again when nothing writes to the file, or on a copy of the file."
