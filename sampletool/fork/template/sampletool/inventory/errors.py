"""What can be wrong with an inventory."""

from ..kit.contract.errors import ExitStatus, ToolError


class NotEnough(ToolError):
    """There are fewer pieces than are to be removed."""

    code, exit_status = "NOT_ENOUGH", ExitStatus.CONFLICT
    sentence = "There are {there} pieces of {item}; {wanted} were asked for."
    advice = "`{PROGRAM} inventory list` shows what there is."
