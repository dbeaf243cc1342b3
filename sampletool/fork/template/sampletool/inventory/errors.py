"""What can be wrong with an inventory."""

from sampletool.kit.contract.errors import ToolError
from sampletool.kit.contract.exit_status import ExitStatus
from sampletool.kit.contract.file_errors import OutputExists


class TooFew(ToolError):
    """There are fewer pieces than are to be removed."""

    code, exit_status = "TOO_FEW", ExitStatus.CONFLICT
    sentence = "There are {there} pieces of {item}; {wanted} were asked for."
    advice = "`{PROGRAM} inventory list` shows what there is."


class CheckStopped(ToolError):
    """The child of a check failed; the message has its last line."""

    code, exit_status = "CHECK_STOPPED", ExitStatus.PARTIAL
    sentence = "The check ended with status {status}: {said}."
    advice = "Correct what it names and run it again; there is no report."


class ReportExists(OutputExists):
    """The session has a report already."""

    sentence = "{path} is already there. It was not changed."
    advice = "Name another --session-id to have both."
