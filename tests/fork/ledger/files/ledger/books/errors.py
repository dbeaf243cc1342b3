"""Say what can go wrong with books."""

from ..kit.contract.errors import ExitStatus, ToolError


class DuplicateBooking(ToolError):
    """The books already have another booking with this reference."""

    code, exit_status = "DUPLICATE_BOOKING", ExitStatus.CONFLICT
    sentence = "There is already another booking with the reference {reference}. Nothing was added."
    advice = "Use another reference. To see all bookings, run `{PROGRAM} list`."


class InvalidLine(ToolError):
    """A CSV file has a line that is not a booking."""

    code, exit_status = "INVALID_LINE", ExitStatus.USAGE
    sentence = "{path}, line {line}: {reason}."
    advice = "Correct it, for example to `tea-1,2026-01-31,cash,-350,Tea`. Nothing was imported."


class SyncFailed(ToolError):
    """The bookings could not be sent to a server, although the command has tried several times."""

    code, exit_status = "SYNC_FAILED", ExitStatus.UNAVAILABLE
    retry_after_ms = 5_000
    sentence = "Cannot send the bookings to {url}: {reason}."
    advice = "Check the URL. Once the server is reachable again, run the command again."
