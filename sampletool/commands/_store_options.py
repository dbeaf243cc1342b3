"""What the commands of the store share: their options, and values and times as they are typed and shown."""

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from sampletool.contract.duration import parse_duration
from sampletool.contract.errors import InvalidValues, Mistake
from sampletool.contract.exit_status import ExitStatus
from sampletool.safety.atomic_file import read_regular
from sampletool.safety.signals import Signals
from sampletool.safety.stdin import read_stdin
from sampletool.state.opening import refuse_password
from sampletool.state.promises import Fence

READING = (
    ExitStatus.PRECONDITION,
    ExitStatus.NOT_FOUND,
    ExitStatus.PERMISSION,
    ExitStatus.AUTH,
    ExitStatus.UNAVAILABLE,
    ExitStatus.LOCK_HELD,
)
"""How any command that asks the store can end; one that changes it can meet a CONFLICT too."""
CHANGING = (*READING, ExitStatus.CONFLICT)

_STDIN_LIMIT_BYTES = 16 * 1024 * 1024
_DEEPEST = 100
_LAST_MS = 253_402_300_799_999
"""The end of the year 9999: what ends later is shown as ending then."""


def _use_store(ctx: typer.Context, url: str | None) -> str | None:
    if url is not None and not ctx.resilient_parsing:
        refuse_password(url)
        ctx.obj.options["store"] = url
    return url


def _rehearse(ctx: typer.Context, is_asked: bool) -> bool:
    if is_asked and not ctx.resilient_parsing:
        ctx.obj.meta["dry_run"] = True
    return is_asked


def parse_fence(text: str) -> Fence:
    task, separator, generation = text.rpartition(":")
    if not separator or not task or not generation.isdecimal():
        raise typer.BadParameter(f"{text!r} is not TASK:GENERATION")
    return Fence(task, int(generation))


def parse_ms(text: str) -> int:
    try:
        return round(parse_duration(text) * 1000)
    except ValueError as error:
        raise typer.BadParameter(str(error)) from error


StoreOption = Annotated[
    str | None, typer.Option(metavar="URL", callback=_use_store, help="Where the state lies; without a password.")
]
KeyOption = Annotated[
    str | None,
    typer.Option("--idempotency-key", metavar="KEY", help="The same key again changes nothing: the first answer."),
]
FenceOption = Annotated[
    Fence | None,
    typer.Option(
        metavar="TASK:GENERATION", parser=parse_fence, help="Only while that claim is current, and once for the task."
    ),
]
DryRunOption = Annotated[
    bool, typer.Option("--dry-run", callback=_rehearse, help="Say what would change; change nothing.")
]
CursorOption = Annotated[
    str, typer.Option("--cursor", metavar="CURSOR", help="Go on behind a page: its meta.next_cursor.")
]
LimitOption = Annotated[int, typer.Option(min=1, max=10_000, metavar="N", help="How many at most.")]
LeaseOption = Annotated[int, typer.Option(metavar="DURATION", parser=parse_ms, help="How long the claim lasts.")]


def parse_value(text: str, *, as_text: bool = False) -> Any:
    """JSON where it parses and would print back as typed; else the text itself."""
    try:
        value = json.loads(text, parse_constant=lambda _: text)
    except (ValueError, RecursionError):
        return text
    if not as_text and _depth(value) > _DEEPEST:
        raise InvalidValues(Mistake("VALUE", "INVALID_VALUE", f"the value is nested more than {_DEEPEST} deep"))
    if as_text or (isinstance(value, (int, float)) and json.dumps(value) != text):
        return text
    return value


def _depth(value: Any) -> int:
    """How deep it is nested, as far as it matters."""
    level, depth = [value], 0
    while level and depth <= _DEEPEST:
        level = [
            member
            for item in level
            if isinstance(item, (dict, list))
            for member in (item.values() if isinstance(item, dict) else item)
        ]
        depth += 1
    return depth


def read_input(name: str, signals: Signals) -> str:
    """All of stdin (`-`) or of a file, as text, up to a limit."""
    if name == "-":
        return read_stdin(signals, _STDIN_LIMIT_BYTES)
    content = read_regular(Path(name).absolute(), _STDIN_LIMIT_BYTES)
    try:
        return content.decode()
    except UnicodeDecodeError:
        raise InvalidValues(Mistake("VALUE", "INVALID_VALUE", f"{name} is not UTF-8 text", name)) from None


def say_time(at_ms: int) -> str:
    """`2026-11-18T09:30:00.250Z`"""
    from datetime import UTC, datetime

    at_ms = min(at_ms, _LAST_MS)
    return datetime.fromtimestamp(at_ms / 1000, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
