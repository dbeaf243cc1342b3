"""Send the bookings to a server."""

import json
import re
from dataclasses import asdict, dataclass
from http.client import HTTPException
from typing import Annotated
from urllib.error import HTTPError
from urllib.request import urlopen

import typer

from ...kit.context import Context
from ...kit.contract.command_spec import CommandSpec
from ...kit.contract.errors import InvalidValues, Mistake, NoWorkspace
from ...kit.contract.response import Effect
from ...kit.contract.text import redact
from ...kit.global_options import DryRunOption
from ...kit.safety.toml_file import read_toml
from ...kit.work.retries import RetriesExhausted, RetryPolicy
from ..bookings import bookings_in, books_of
from ..errors import SyncFailed

spec = CommandSpec(
    effect="server",
    errors=(NoWorkspace, SyncFailed),
    reads=("workspace",),
    examples=("sync https://books.example/bookings --dry-run",),
)

# No user name or password before an "@": urlopen would take the password for a port.
URL = re.compile(r"https?://[^/@\s]+(/[!-~]*)?", re.IGNORECASE)

RETRY_POLICY = RetryPolicy(max_attempts=3, first_pause_seconds=0.2)


class ServerBusy(Exception):
    """A failure that may be over in a moment."""


@dataclass(frozen=True)
class Synced:
    """The number of bookings that the server has."""

    effect: Effect
    bookings: int

    def lines(self) -> list[str]:
        """Return what a person sees."""
        return [f"{self.bookings} bookings"]


def check_url(url: str) -> None:
    """Raise InvalidValues if nothing can be sent to this URL."""
    if not URL.fullmatch(url):
        message = "The URL must be like https://books.example/bookings, without a password"
        raise InvalidValues(Mistake("URL", "INVALID_VALUE", message, redact(url)))


def post(url: str, body: bytes) -> None:
    """Send the bookings. The server knows each of them by its reference, so it can get them twice.

    Raise ServerBusy if another attempt may succeed, and HTTPError if the request is refused.
    """
    try:
        # A short timeout, because there are several attempts.
        with urlopen(url, body, timeout=10):  # noqa: S310 (the user chooses the server)
            pass
    except HTTPError as error:
        # Below 500, the server says that the request is wrong. It would be wrong again.
        if error.code < 500:
            raise
        raise ServerBusy(str(error)) from error
    except (OSError, HTTPException) as error:
        raise ServerBusy(str(error)) from error


def send(context: Context, url: str, body: bytes) -> None:
    """Send the bookings, in up to three attempts. Raise SyncFailed if the server does not get them.

    The error is retryable, unless the server refuses the request.
    """
    shown_url = redact(url)
    try:
        context.retrying(
            post,
            url,
            body,
            retry_on=(ServerBusy,),
            retry_policy=RETRY_POLICY,
            changes=f"the bookings at {shown_url}",
        )
    except HTTPError as error:
        refused = SyncFailed(url=shown_url, reason=redact(str(error)))
        raise refused.with_retry_after(None) from error
    except RetriesExhausted as error:
        raise SyncFailed(url=shown_url, reason=redact(str(error))) from error


def command(
    ctx: typer.Context,
    url: Annotated[str, typer.Argument(metavar="URL", help="Send the bookings to this address.")],
    dry_run: DryRunOption = False,
) -> Synced:
    """Send the bookings to a server, and try again if that fails."""
    context: Context = ctx.obj
    check_url(url)
    bookings = bookings_in(read_toml(books_of(context)))
    if not dry_run:
        rows = [asdict(booking) for booking in bookings.values()]
        send(context, url, json.dumps(rows).encode())
    return Synced("updated", len(bookings))
