"""What was called, and how it ended."""

import time
from collections.abc import Iterator
from itertools import dropwhile, islice
from typing import Annotated, NamedTuple

import typer

from ..contract.command_spec import CommandSpec
from ..contract.duration import parse_limit, say_duration
from ..contract.table import Line, heads
from ..pages import AfterOption, LimitOption, page, read_cursor
from ..safety.call_log import Call, read_calls
from ..safety.places import state_directory

spec = CommandSpec(
    effect="nothing", reads=("files",), examples=("log", "log --since 1h --failed", "log --command config.set")
)


def parse_since(text: str) -> float:
    try:
        return parse_limit(text)
    except ValueError as error:
        raise typer.BadParameter(str(error)) from error


class Calls(NamedTuple):
    calls: list[Call]

    def lines(self) -> list[Line]:
        rows: list[Line] = [
            (call.at, call.command, call.code or "ok", say_duration(call.duration_ms / 1000), ", ".join(call.about))
            for call in self.calls
        ]
        return [heads("at", "command", "ended", "took", "about"), *rows] if rows else ["No such call is in the log."]


def command(
    ctx: typer.Context,
    since: Annotated[float, typer.Option(metavar="DURATION", parser=parse_since, help="How far back.")] = "7d",  # type: ignore[assignment]
    failed: Annotated[bool, typer.Option("--failed", help="Only calls that failed.")] = False,
    only: Annotated[str, typer.Option("--command", metavar="NAME", help="Only this one, such as config.set.")] = "",
    limit: LimitOption = 100,
    after: AfterOption = None,
) -> Calls:
    """List calls of this tool, newest first.

    Each call leaves one line: what it was about (keys and paths, no values), how it ended, how long it took.
    """
    oldest = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() - since))
    found: Iterator[Call] = (
        call
        for call in read_calls(state_directory())
        if call.at >= oldest and not (failed and call.exit_code == 0) and only in ("", call.command)
    )
    if last := read_cursor(after):
        found = islice(dropwhile(lambda call: call.request_id != last, found), 1, None)
    return Calls(page(ctx.obj, list(islice(found, limit + 1)), limit, lambda call: call.request_id))
