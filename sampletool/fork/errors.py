"""How creating a project can fail."""

from ..kit.contract.errors import ExitStatus, ToolError
from ..kit.contract.file_errors import OutputExists


class GitFailed(ToolError):
    """Git could not list the files of the checkout, or could not store those of the new project."""

    code, exit_status = "GIT_FAILED", ExitStatus.PRECONDITION
    sentence = "git {command} failed in {directory}: {reason}. No project was created."
    advice = "Fix what git reports, then run the command again."


class Bz2Missing(ToolError):
    """Python has no module `bz2`, so it cannot read the template of a new project."""

    code, exit_status = "BZ2_MISSING", ExitStatus.PRECONDITION
    sentence = "This Python has no module bz2, so it cannot read {path}. No project was created."
    advice = "Install the tool with another Python, for example the one of your system."


class DirectoryNotFree(OutputExists):
    """There is already something else at the path where the project belongs."""

    advice = "Choose a new or an empty directory with --to DIR."
