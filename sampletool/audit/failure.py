"""What a failed run tells its caller: in structure or in prose, by which code, who is in the way, when to come back.

Read from whatever it printed, on stdout or stderr: the whole of it as JSON, or any line that is a JSON object.
"""

import json
import re
from collections.abc import Collection, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Annotated, Any

from ..kit.contract.response import UNTRUSTED
from ..kit.contract.text import printable_lines, redact

_LONGEST_HINT = 1e9
_SHOWN_CHARACTERS = 400
_CODE = ("code", "errorcode")
_RETRY = re.compile(r"(retryafter|retryin|retrydelay)(ms|millis|milliseconds|s|sec|secs|seconds)?")
_PID = re.compile(r"\b(?:pid|process|by)\b[^0-9\n]{0,12}([0-9]{1,10})\b", re.IGNORECASE)
_HOLDER = ("holder", "holders", "heldby", "lockedby", "lockholder", "lockowner", "holderpid", "lockpid", "owner")


@dataclass(frozen=True)
class Failure:
    """Runs that ended with a status other than 0 and said so in the same way; output and hint are the first one's."""

    exit_status: int
    """Negative: the signal it died by."""
    code: str | None
    retry_after_seconds: float | None
    names_holder: bool
    output: Annotated[str, UNTRUSTED]
    count: int = 1

    def say(self) -> str:
        """On one line."""
        return f"status {self.exit_status}: {' '.join(self.output.split())}"


def understand(status: int, stdout: str, stderr: str, output: str, others: Collection[int], depth: int = 4) -> Failure:
    """`others` are the pids of runs that it may have met: one of them in its text is a holder that it names.

    A depth of 1 is only what an answer says of itself, and in its `error`.
    """
    members = [member for text in (stdout, stderr) for found in _objects(text) for member in _members(found, depth)]
    codes = [str(value) for name, value in members if name in _CODE and _says_something(value)]
    pids = {int(number) for number in _PID.findall(stdout + stderr)}
    return Failure(
        status,
        code=codes[0] if codes else None,
        retry_after_seconds=next((hint for name, value in members if (hint := _retry_seconds(name, value))), None),
        names_holder=any(name in _HOLDER and _says_something(value) for name, value in members)
        or not pids.isdisjoint(others),
        output=printable_lines(_sentence(codes, members) or output),
    )


def grouped(failures: list[Failure]) -> list[Failure]:
    """The first of each kind, with the number of all."""
    kinds: dict[Failure, Failure] = {}
    for failure in failures:
        kind = replace(failure, output="", count=1, retry_after_seconds=failure.retry_after_seconds and 1.0)
        first = kinds.get(kind)
        kinds[kind] = replace(first, count=first.count + failure.count) if first else failure
    return list(kinds.values())


def shown(output: str) -> str:
    """The end of what was printed, without passwords."""
    text = redact(output.strip())
    return text if len(text) <= _SHOWN_CHARACTERS else f"...{text[-_SHOWN_CHARACTERS:]}"


def _objects(text: str) -> Iterator[dict[str, Any]]:
    for part in (text, *text.splitlines()):
        if part.lstrip().startswith("{"):
            with suppress(ValueError, RecursionError):
                found = json.loads(part)
                yield found | (error if isinstance(error := found.get("error"), dict) else {})


def _members(value: Any, depth: int) -> Iterator[tuple[str, Any]]:
    """Every name and value, also of the objects inside; names in lower case, without what separates their words."""
    if isinstance(value, dict) and depth:
        for name, member in value.items():
            yield re.sub(r"[^a-z]", "", name.lower()), member
            yield from _members(member, depth - 1)
    elif isinstance(value, list) and depth:
        for member in value:
            yield from _members(member, depth - 1)


def _sentence(codes: list[str], members: list[tuple[str, Any]]) -> str | None:
    """Of an answer in structure, what it says to people."""
    said = [value for name, value in members if name in ("message", "detail") and isinstance(value, str)]
    return shown(f"{codes[0]}: {said[0]}") if codes and said else None


def _says_something(value: Any) -> bool:
    return value not in (None, False, True, 0, "", [], {})


def _retry_seconds(name: str, value: Any) -> float | None:
    """A name without a unit means seconds, as in HTTP."""
    form = _RETRY.fullmatch(name)
    if form is None or isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 < value < _LONGEST_HINT:
        return None
    return value / 1000 if form[2] and form[2].startswith("m") else float(value)
