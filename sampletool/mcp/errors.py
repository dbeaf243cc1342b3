"""The errors that keep a server from starting."""

from ..kit.contract.errors import ExitStatus, ToolError


class AddressUnavailable(ToolError):
    """The server cannot listen on its address."""

    code, exit_status = "ADDRESS_UNAVAILABLE", ExitStatus.PRECONDITION
    sentence = "Cannot listen on {address}: {reason}."
    advice = "Stop the program that uses this address, or choose another port with --http."


class TokenRequired(ToolError):
    """The server would be open to other machines without a token."""

    code, exit_status = "TOKEN_REQUIRED", ExitStatus.PRECONDITION
    sentence = "Other machines can reach {address}, so the server needs a token: {problem}."
    advice = (
        "Set {variable} to a random text of at least {length} characters, "
        "for example with `openssl rand -hex 32`. Clients send it as a bearer token."
    )  # fmt: skip
