"""What a failed run tells its caller: which error it is, who is in the way, when to come back.

The output of a foreign tool is searched for JSON: all of it, or a line that is a JSON object.
"""

import json
import re
from collections.abc import Collection, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Annotated, Any

from ..kit.contract.response import UNTRUSTED
from ..kit.contract.text import printable_lines, redact

_MAX_RETRY_NUMBER = 1e9
_MAX_SHOWN_CHARACTERS = 400

# Names of members, in lower case and without what separates their words.
_CODE_NAMES = ("code", "errorcode")
_MESSAGE_NAMES = ("message", "detail")
_HOLDER_NAMES = (
    "holder",
    "holders",
    "heldby",
    "lockedby",
    "lockholder",
    "lockowner",
    "holderpid",
    "lockpid",
    "owner",
)
_RETRY_NAME = re.compile(
    r"(?:retryafter|retryin|retrydelay)(?P<unit>ms|millis|milliseconds|s|sec|secs|seconds)?"
)

_NAMED_PID = re.compile(r"\b(?:pid|process|by)\b[^0-9\n]{0,12}([0-9]{1,10})\b", re.IGNORECASE)

Member = tuple[str, Any]
"""The name of a member of an object, in lower case and only with letters, and its value."""


@dataclass(frozen=True)
class Failure:
    """Runs that failed in the same way. The output and the hint are those of the first one."""

    exit_status: int
    """The exit code. It is negative if a signal ended the run."""
    code: str | None
    retry_after_seconds: float | None
    names_holder: bool
    output: Annotated[str, UNTRUSTED]
    count: int = 1

    def summary(self) -> str:
        """Return the exit code and the output as one line."""
        return f"exit code {self.exit_status}: {' '.join(self.output.split())}"


def understand(
    exit_code: int,
    stdout: str,
    stderr: str,
    *,
    output: str,
    other_pids: Collection[int],
    depth: int = 4,
) -> Failure:
    """Return what the output of a failed run says.

    `output` is what to show of it. If the run names one of the `other_pids`, it has named the
    holder. Objects are searched to this `depth`: with 1, only a response and its `error` count.
    """
    members: list[Member] = []
    for text in (stdout, stderr):
        for found in _json_objects(text):
            members += _members(found, depth)

    code = _first_code(members)
    message = _first_message(members)
    if code is not None and message is not None:
        output = shown(f"{code}: {message}")
    return Failure(
        exit_status=exit_code,
        code=code,
        retry_after_seconds=_first_retry_seconds(members),
        names_holder=_has_holder(members) or _names_pid(stdout + stderr, other_pids),
        output=printable_lines(output),
    )


def grouped(failures: list[Failure]) -> list[Failure]:
    """Return the first failure of each kind, with the number of all of this kind."""
    first_of_kind: dict[Failure, Failure] = {}
    for failure in failures:
        # Failures differ in kind if one of them has a hint when to retry, whatever the time.
        has_hint = failure.retry_after_seconds is not None
        kind = replace(
            failure,
            output="",
            count=1,
            retry_after_seconds=1.0 if has_hint else None,
        )
        first = first_of_kind.get(kind)
        if first is None:
            first_of_kind[kind] = failure
        else:
            first_of_kind[kind] = replace(first, count=first.count + failure.count)
    return list(first_of_kind.values())


def shown(output: str) -> str:
    """Return the end of an output, without passwords."""
    text = redact(output.strip())
    if len(text) <= _MAX_SHOWN_CHARACTERS:
        return text
    return f"...{text[-_MAX_SHOWN_CHARACTERS:]}"


def _json_objects(text: str) -> Iterator[dict[str, Any]]:
    """Yield each object that is all of the text, or a line of it, with the members of its error."""
    for part in (text, *text.splitlines()):
        if not part.lstrip().startswith("{"):
            continue
        with suppress(ValueError, RecursionError):
            found = json.loads(part)
            error = found.get("error")
            if isinstance(error, dict):
                found = {**found, **error}
            yield found


def _members(value: Any, depth: int) -> Iterator[Member]:
    """Yield every member of a value, and of the objects in it."""
    if depth == 0:
        return
    if isinstance(value, dict):
        for name, member in value.items():
            yield re.sub(r"[^a-z]", "", name.lower()), member
            yield from _members(member, depth - 1)
    elif isinstance(value, list):
        for item in value:
            yield from _members(item, depth - 1)


def _first_code(members: list[Member]) -> str | None:
    for name, value in members:
        if name in _CODE_NAMES and _is_given(value):
            return str(value)
    return None


def _has_holder(members: list[Member]) -> bool:
    """Return whether a member says who holds the lock."""
    return any(name in _HOLDER_NAMES and _is_given(value) for name, value in members)


def _names_pid(text: str, pids: Collection[int]) -> bool:
    """Return whether a text names one of these processes."""
    named = {int(number) for number in _NAMED_PID.findall(text)}
    return not named.isdisjoint(pids)


def _first_message(members: list[Member]) -> str | None:
    """Return the sentence for people in a response."""
    for name, value in members:
        if name in _MESSAGE_NAMES and isinstance(value, str):
            return value
    return None


def _is_given(value: Any) -> bool:
    """Return whether a member has a value that says something."""
    return value not in (None, False, True, 0, "", [], {})


def _first_retry_seconds(members: list[Member]) -> float | None:
    for name, value in members:
        seconds = _retry_seconds(name, value)
        if seconds is not None:
            return seconds
    return None


def _retry_seconds(name: str, value: Any) -> float | None:
    """Return after how many seconds a member says to retry, or None if it says nothing about it."""
    match = _RETRY_NAME.fullmatch(name)
    if match is None or isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    if not 0 < value < _MAX_RETRY_NUMBER:
        return None
    # A name without a unit means seconds, as in HTTP.
    unit = match["unit"]
    is_milliseconds = unit is not None and unit.startswith("m")
    return value / 1000 if is_milliseconds else float(value)
