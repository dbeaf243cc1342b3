"""Finds facts in the output of a failed run: the error, the holder of the lock, when to retry.

Every tool reports errors in a form of its own. So the output is searched for JSON objects: the
whole output may be one, or any of its lines. In these objects, members with usual names count, such
as `code` or `retry_after_ms`.
"""

import json
import re
from collections.abc import Collection, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Annotated, Any, NamedTuple

from ..kit.contract.response import UNTRUSTED
from ..kit.contract.text import printable_lines, redact

_MAX_RETRY_NUMBER = 1e9
"""A larger number is a time of day, in seconds since 1970, rather than a duration."""

_MAX_SHOWN_CHARACTERS = 400

# Names of members, in the form of `Member.name`: only letters, in lower case.
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
_MILLISECONDS = ("ms", "millis", "milliseconds")

# For example, "locked by process 4121".
_NAMED_PID = re.compile(r"\b(?:pid|process|by)\b[^0-9\n]{0,12}([0-9]{1,10})\b", re.IGNORECASE)

# For Python, 0 is equal to False, and 1 to True. So this tuple also contains the codes 0 and 1.
_MEANINGLESS_VALUES: tuple[object, ...] = (None, False, True, "", [], {})
"""Values that identify no error and no holder. A code of 1 only repeats that the run failed."""


class Member(NamedTuple):
    """A name in a JSON object, and its value."""

    name: str
    """The name, reduced to its letters in lower case: `retryafterms` for `retry_after_ms`."""
    value: Any


@dataclass(frozen=True)
class Failure:
    """One failed run, or several runs that failed in the same way.

    If there are several, `retry_after_seconds` and `output` are those of the first run.
    """

    exit_status: int
    """The exit code, or the negative number of the signal that killed the run."""
    code: str | None
    """The error code in the output, such as LOCK_HELD."""
    retry_after_seconds: float | None
    names_holder: bool
    """Whether the output says which process or user holds the lock."""
    output: Annotated[str, UNTRUSTED]
    """The error message of the tool, or the end of its output if there is no such message."""
    count: int = 1
    """How many runs failed in this way."""

    def summary(self) -> str:
        """Return the exit code and the output as one line."""
        return f"exit code {self.exit_status}: {' '.join(self.output.split())}"


@dataclass(frozen=True)
class _FailureKind:
    """The facts that must be equal for failures to be counted as one kind.

    The text of the failures and the time until a retry may differ.
    """

    exit_status: int
    code: str | None
    says_when_to_retry: bool
    names_holder: bool


def parse_failure(
    exit_code: int,
    stdout: str,
    stderr: str,
    *,
    shown_output: str,
    other_pids: Collection[int],
    max_depth: int = 4,
) -> Failure:
    """Return the facts that the output of a failed run contains.

    `shown_output` is the text to show to people if the output contains no JSON error.

    `other_pids` are the processes that may hold the lock. If the output mentions one of them, it
    names the holder of the lock.

    `max_depth` is how many levels of nested objects are searched. With 1, only the outermost
    object and its member `error` are searched.
    """
    members: list[Member] = []
    for text in (stdout, stderr):
        for json_object in _json_objects(text):
            members += _members(json_object, max_depth)

    code = _find_code(members)
    message = _find_message(members)
    if code is not None and message is not None:
        shown_output = excerpt(f"{code}: {message}")
    return Failure(
        exit_status=exit_code,
        code=code,
        retry_after_seconds=_find_retry_seconds(members),
        names_holder=_has_holder(members) or _names_pid(stdout + stderr, other_pids),
        output=printable_lines(shown_output),
    )


def group_failures(failures: Iterable[Failure]) -> list[Failure]:
    """Combine failures of the same kind.

    Return the first failure of each kind, with the total count of this kind.
    """
    groups: dict[_FailureKind, Failure] = {}
    for failure in failures:
        kind = _FailureKind(
            exit_status=failure.exit_status,
            code=failure.code,
            says_when_to_retry=failure.retry_after_seconds is not None,
            names_holder=failure.names_holder,
        )
        first = groups.get(kind)
        if first is None:
            groups[kind] = failure
        else:
            groups[kind] = replace(first, count=first.count + failure.count)
    return list(groups.values())


def excerpt(output: str) -> str:
    """Return the end of an output, short enough to show, and without passwords."""
    # Remove passwords before the text is cut: part of a password might not be recognized.
    text = redact(output.strip())
    if len(text) <= _MAX_SHOWN_CHARACTERS:
        return text
    return f"...{text[-_MAX_SHOWN_CHARACTERS:]}"


def _json_objects(text: str) -> Iterator[dict[str, Any]]:
    """Yield the JSON objects in a text. The whole text may be one object, or any of its lines.

    Many tools nest the facts about an error in a member `error`. The members of this inner object
    are added to the object that is yielded.
    """
    for part in (text, *text.splitlines()):
        if not part.lstrip().startswith("{"):
            continue
        # A text with thousands of opening brackets raises RecursionError.
        with suppress(ValueError, RecursionError):
            json_object = json.loads(part)
            error = json_object.get("error")
            if isinstance(error, dict):
                json_object = {**json_object, **error}
            yield json_object


def _members(value: Any, max_depth: int) -> Iterator[Member]:
    """Yield the members of a JSON value and of the objects in it, down to this depth."""
    if max_depth == 0:
        return
    if isinstance(value, dict):
        for name, inner_value in value.items():
            yield Member(re.sub(r"[^a-z]", "", name.lower()), inner_value)
            yield from _members(inner_value, max_depth - 1)
    elif isinstance(value, list):
        for item in value:
            yield from _members(item, max_depth - 1)


def _find_code(members: list[Member]) -> str | None:
    """Return the error code, or None if there is no member with an error code."""
    for member in members:
        if member.name in _CODE_NAMES and member.value not in _MEANINGLESS_VALUES:
            return str(member.value)
    return None


def _find_message(members: list[Member]) -> str | None:
    """Return the error message for people, or None if there is no member with a message."""
    for member in members:
        if member.name in _MESSAGE_NAMES and isinstance(member.value, str):
            return member.value
    return None


def _has_holder(members: list[Member]) -> bool:
    """Return whether there is a member that says who holds the lock."""
    for member in members:
        if member.name in _HOLDER_NAMES and member.value not in _MEANINGLESS_VALUES:
            return True
    return False


def _names_pid(text: str, pids: Collection[int]) -> bool:
    """Return whether a text mentions one of these processes, as in "locked by process 4121"."""
    named_pids = {int(number) for number in _NAMED_PID.findall(text)}
    return not named_pids.isdisjoint(pids)


def _find_retry_seconds(members: list[Member]) -> float | None:
    """Return how many seconds to wait before a retry, or None if no member says so."""
    for member in members:
        seconds = _parse_retry_seconds(member)
        if seconds is not None:
            return seconds
    return None


def _parse_retry_seconds(member: Member) -> float | None:
    """Return how many seconds to wait before a retry: 0.5 for `retry_after_ms: 500`.

    Return None if the name of the member is not about a retry, or if its value is not a duration.
    """
    match = _RETRY_NAME.fullmatch(member.name)
    if match is None:
        return None
    number = member.value
    # True and False are no durations, but isinstance() takes them for integers.
    if isinstance(number, bool) or not isinstance(number, (int, float)):
        return None
    if not 0 < number < _MAX_RETRY_NUMBER:
        return None
    if match["unit"] in _MILLISECONDS:
        return number / 1000
    # A name without a unit means seconds, as in the HTTP header Retry-After.
    return float(number)
