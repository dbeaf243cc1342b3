"""What was called, and how it ended."""

import json
import os
import time
from collections.abc import Iterator
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import Annotated, NamedTuple

import typer

from ..call_log import NAMES, opened_log
from ..contract.answer import Effect
from ..contract.command_spec import CommandSpec
from ..contract.duration import parse_limit, say_duration
from ..contract.table import Line, heads
from ..global_options import checked_by
from ..pages import AfterOption, LimitOption, first_page, read_cursor, wrong_cursor
from ..places import state_directory
from ..safety.clock import utc

spec = CommandSpec(effect="nothing", reads=("files",), examples=("log", "log --since 1h --failed"))

_TYPES = {"exit_code": int, "duration_ms": int, "dry_run": bool, "about": list}
"""Of the members that are not text."""


class Call(NamedTuple):
    at: str
    command: str
    exit_code: int
    duration_ms: int
    request_id: str
    cwd: str | None = None
    session_id: str | None = None
    trace_id: str | None = None
    code: str | None = None
    """Of its error."""
    effect: Effect | None = None
    dry_run: bool | None = None
    about: tuple[str, ...] = ()
    """Keys, names and paths."""


class Calls(NamedTuple):
    calls: list[Call]
    next_cursor: str | None = None

    def lines(self) -> list[Line]:
        rows: list[Line] = [
            (call.at, call.command, call.code or "ok", say_duration(call.duration_ms / 1000), ", ".join(call.about))
            for call in self.calls
        ]
        return [heads("at", "command", "ended", "took", "about"), *rows] if rows else ["No such call is in the log."]


def read_calls(directory: Path) -> Iterator[Call]:
    """The newest first. What is no line of ours is passed over."""
    for path in (directory / name for name in NAMES):
        lines: list[bytes] = []
        with suppress(FileNotFoundError, NotADirectoryError), opened_log(path, os.O_RDONLY) as descriptor:
            lines = os.read(descriptor, os.fstat(descriptor).st_size).splitlines()
        for line in reversed(lines):
            with suppress(ValueError, TypeError, RecursionError):
                call = Call(**(logged := json.loads(line)))
                members = [*logged.items(), *(("subject", subject) for subject in call.about)]
                if all(type(value) is _TYPES.get(name, str) for name, value in members):
                    yield call


def command(
    ctx: typer.Context,
    since: Annotated[
        str, typer.Option(metavar="DURATION", callback=checked_by(parse_limit), help="How far back.")
    ] = "7d",
    failed: Annotated[bool, typer.Option("--failed", help="Only calls that failed.")] = False,
    only: Annotated[str, typer.Option("--command", metavar="NAME", help="Only this one, such as config.set.")] = "",
    limit: LimitOption = 100,
    after: AfterOption = None,
) -> Calls:
    """List calls of this tool, newest first.

    Each call leaves one line: what it was about (keys and paths, no values), how it ended, how long it took.
    """
    oldest, calls = utc(time.time() - parse_limit(since)), read_calls(state_directory())
    if (last := read_cursor(after)) and all(call.request_id != last for call in calls):
        raise wrong_cursor(after or "")
    recent = (call for call in calls if call.at >= oldest and only in ("", call.command))
    found = (call for call in recent if call.exit_code or not failed)
    page = first_page(list(islice(found, limit + 1)), limit, lambda call: call.request_id)
    return Calls(page.rows, page.next_cursor)
