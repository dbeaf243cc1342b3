"""How making a project can fail."""

from ..kit.contract.errors import ExitStatus, ToolError


class GitFailed(ToolError):
    """git could not list what a project is made from, or make its first commit; nothing was made."""

    code, exit_status = "GIT_FAILED", ExitStatus.PRECONDITION
    sentence = "git {command} failed in {directory}: {reason}."
    advice = "A project is made from a git checkout or from an installed wheel; git says what is missing."
