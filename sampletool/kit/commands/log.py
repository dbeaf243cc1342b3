"""List which commands were run, and how they ended.

Each command leaves one line in the log (see call_log.py). The log has keys, names and paths, but no
values.
"""

import json
import os
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, fields, replace
from itertools import islice
from pathlib import Path
from typing import Annotated, Any

import typer

from ..call_log import NAMES, opened_log
from ..contract.command_spec import CommandSpec
from ..contract.duration import parse_limit, say_duration
from ..contract.response import Effect
from ..contract.table import Line, header_row
from ..global_options import checked_by
from ..pages import AfterOption, LimitOption, first_page, wrong_cursor
from ..places import state_directory
from ..safety.clock import utc

spec = CommandSpec(
    effect="nothing",
    reads=("files",),
    examples=("log", "log --since 1h --failed", "log --command config.set"),
)

_MAX_CHARACTERS = 200
_MAX_SUBJECTS = 10
"""How many subjects of one command are listed."""

_TYPES = {"exit_code": int, "duration_ms": int, "dry_run": bool, "about": list}
"""The types of the members of a line that are not texts."""


@dataclass(frozen=True)
class Call:
    """One run of a command."""

    at: str
    command: str
    exit_code: int
    duration_ms: int
    request_id: str
    cwd: str | None = None
    session_id: str | None = None
    trace_id: str | None = None
    code: str | None = None
    """The code of the error, if the command failed."""
    effect: Effect | None = None
    dry_run: bool | None = None
    about: tuple[str, ...] = ()
    """The first keys, names and paths that the command was about."""

    def row(self) -> Line:
        """Return the cells that show this run in a table."""
        result = self.code if self.code is not None else "ok"
        duration = say_duration(self.duration_ms / 1000)
        return (self.at, self.command, result, duration, ", ".join(self.about))


@dataclass(frozen=True)
class Calls:
    """One page of the log."""

    calls: list[Call]
    next_cursor: str | None

    def lines(self) -> list[Line]:
        """Return a table with a row for each run."""
        if not self.calls:
            return ["The log has no matching command."]
        lines = [header_row("at", "command", "result", "took", "about")]
        for call in self.calls:
            lines.append(call.row())
        return lines


def read_calls(directory: Path) -> Iterator[Call]:
    """Yield the runs in the log, newest first. Skip lines that this tool has not written."""
    for name in NAMES:
        for line in reversed(_read_lines(directory / name)):
            call = _parse(line)
            if call is not None:
                yield call


def _read_lines(path: Path) -> list[bytes]:
    """Return the lines of a file of the log. It has none if the file does not exist."""
    try:
        with opened_log(path, os.O_RDONLY) as descriptor:
            size = os.fstat(descriptor).st_size
            return os.read(descriptor, size).splitlines()
    except (FileNotFoundError, NotADirectoryError):
        return []


def _parse(line: bytes) -> Call | None:
    """Return the run that a line describes, or None if it is no line of this tool."""
    try:
        members = json.loads(line)
        call = Call(**members)
    except (ValueError, TypeError, RecursionError):
        return None
    for name, value in members.items():
        if type(value) is not _TYPES.get(name, str):
            return None
    if not all(isinstance(subject, str) for subject in call.about):
        return None
    return call


def _shortened(call: Call) -> Call:
    """Return the run with at most 200 characters of each text, and ten subjects."""
    texts: dict[str, Any] = {}
    for field in fields(call):
        value = getattr(call, field.name)
        if isinstance(value, str):
            texts[field.name] = value[:_MAX_CHARACTERS]
    subjects = [subject[:_MAX_CHARACTERS] for subject in call.about[:_MAX_SUBJECTS]]
    return replace(call, about=tuple(subjects), **texts)


def _matching(calls: Iterable[Call], oldest: str, name: str, *, failed: bool) -> Iterator[Call]:
    for call in calls:
        if call.at < oldest:
            continue
        if name and call.command != name:
            continue
        if failed and call.exit_code == 0:
            continue
        yield call


def _after(calls: Iterator[Call], last_request_id: str | None) -> Iterator[Call]:
    """Return the calls after the one with this ID. Raise InvalidValues if there is no such call."""
    if last_request_id is None:
        return calls
    for call in calls:
        if call.request_id == last_request_id:
            # The loop has consumed the iterator up to this call. The next ones are left in it.
            return calls
    raise wrong_cursor(last_request_id)


def command(
    ctx: typer.Context,
    since: Annotated[
        str,
        typer.Option(
            metavar="DURATION",
            callback=checked_by(parse_limit),
            help="Look back this far, for example 1h or 30d.",
        ),
    ] = "7d",
    failed: Annotated[
        bool,
        typer.Option("--failed", help="Show only commands that failed."),
    ] = False,
    only: Annotated[
        str,
        typer.Option(
            "--command",
            metavar="NAME",
            help="Show only this command, for example config.set.",
        ),
    ] = "",
    limit: LimitOption = 100,
    after: AfterOption = None,
) -> Calls:
    """List recent commands, newest first.

    For each command, the list shows when it ran, whether it succeeded, how long it took, and which
    keys and files were involved. The log never contains the values of settings. When it reaches
    8 MiB, the older half is deleted.
    """
    oldest = utc(time.time() - parse_limit(since))
    name = only.replace(" ", ".")
    calls = _after(read_calls(state_directory()), after)
    matching = _matching(calls, oldest, name, failed=failed)
    # One more than the limit shows whether there is another page.
    found = [_shortened(call) for call in islice(matching, limit + 1)]
    page = first_page(found, limit, lambda call: call.request_id)
    return Calls(calls=page.rows, next_cursor=page.next_cursor)
