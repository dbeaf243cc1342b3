"""What a failed run tells its caller: which error it is, who holds the lock, when to retry.

The output of a foreign tool is searched for JSON: all of it, or a line that is a JSON object.
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
_MILLISECONDS = ("ms", "millis", "milliseconds")

# As in "locked by process 4121".
_NAMED_PID = re.compile(r"\b(?:pid|process|by)\b[^0-9\n]{0,12}([0-9]{1,10})\b", re.IGNORECASE)

# False and True are equal to 0 and 1.
_MEANINGLESS_VALUES: tuple[object, ...] = (None, False, True, "", [], {})
"""Values that name nothing. A code of 1 only repeats that the run has failed."""


class Member(NamedTuple):
    """A member of a JSON object."""

    name: str
    """The name in lower case, only with its letters: `retryafterms` for `retry_after_ms`."""
    value: Any


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


@dataclass(frozen=True)
class _FailureKind:
    """The facts that failures of one kind share. Their texts and their hints may differ."""

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
    """Return what the output of a failed run says.

    `shown_output` is what to show of it. If the output contains one of the `other_pids`, the run
    has named the holder. Objects are searched to this depth: with 1, only a response and its
    `error` count.
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
    """Return the first failure of each kind, with the number of all failures of this kind."""
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
    """Return the end of an output, without passwords."""
    text = redact(output.strip())
    if len(text) <= _MAX_SHOWN_CHARACTERS:
        return text
    return f"...{text[-_MAX_SHOWN_CHARACTERS:]}"


def _json_objects(text: str) -> Iterator[dict[str, Any]]:
    """Yield each JSON object that is all of the text, or one line of it.

    The members of its `error` are also yielded as members of the object itself.
    """
    for part in (text, *text.splitlines()):
        if not part.lstrip().startswith("{"):
            continue
        # RecursionError: the text has thousands of opening brackets.
        with suppress(ValueError, RecursionError):
            json_object = json.loads(part)
            error = json_object.get("error")
            if isinstance(error, dict):
                json_object = {**json_object, **error}
            yield json_object


def _members(value: Any, max_depth: int) -> Iterator[Member]:
    """Yield every member of a value, and of the objects in it."""
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
    """Return the code of the error, or None if no member is one."""
    for member in members:
        if member.name in _CODE_NAMES and member.value not in _MEANINGLESS_VALUES:
            return str(member.value)
    return None


def _find_message(members: list[Member]) -> str | None:
    """Return the sentence for people, or None if no member is one."""
    for member in members:
        if member.name in _MESSAGE_NAMES and isinstance(member.value, str):
            return member.value
    return None


def _has_holder(members: list[Member]) -> bool:
    """Return whether a member says who holds the lock."""
    for member in members:
        if member.name in _HOLDER_NAMES and member.value not in _MEANINGLESS_VALUES:
            return True
    return False


def _names_pid(text: str, pids: Collection[int]) -> bool:
    """Return whether a text names one of these processes."""
    named_pids = {int(number) for number in _NAMED_PID.findall(text)}
    return not named_pids.isdisjoint(pids)


def _find_retry_seconds(members: list[Member]) -> float | None:
    """Return after how many seconds to retry, or None if no member says so."""
    for member in members:
        seconds = _parse_retry_seconds(member)
        if seconds is not None:
            return seconds
    return None


def _parse_retry_seconds(member: Member) -> float | None:
    """Return after how many seconds to retry, such as 0.5 for `retry_after_ms: 500`.

    Return None if the member has another name, or if its value is no positive number.
    """
    match = _RETRY_NAME.fullmatch(member.name)
    if match is None:
        return None
    number = member.value
    # In Python, a bool is an int, too.
    if isinstance(number, bool) or not isinstance(number, (int, float)):
        return None
    if not 0 < number < _MAX_RETRY_NUMBER:
        return None
    if match["unit"] in _MILLISECONDS:
        return number / 1000
    # A name without a unit means seconds, as in HTTP.
    return float(number)
