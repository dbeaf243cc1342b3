"""Say what can go wrong with an inventory."""

from ..kit.contract.errors import ExitStatus, ToolError


class NotEnough(ToolError):
    """The inventory has fewer pieces than requested."""

    code, exit_status = "NOT_ENOUGH", ExitStatus.CONFLICT
    sentence = "Cannot take {wanted} pieces of {item}: there are only {there}."
    advice = "To see what is in stock, run `{PROGRAM} inventory list`."
