"""Check and encode the arguments of verbs, once for all backends."""

import json
import secrets
from collections.abc import Mapping
from typing import Any

from ..kit.contract.errors import InvalidValues, Mistake
from ..kit.contract.file_errors import IoFailure
from .protocol import MAX_INTEGER, NewTask, Once

MAX_VALUE_BYTES = 8 * 1024 * 1024
"""The size of a value or the body of a task, as JSON."""

_MAX_NAME_CHARACTERS = 200

_MAX_KEY_CHARACTERS = 1000
"""The length of a key that a fence implies. Longer ones are hashed.

A row of an index of PostgreSQL has at most 2,700 bytes.
"""

_LAST_MOMENT_MS = 253_402_300_799_999
"""The end of the year 9999, in milliseconds since 1970. Python cannot represent later times."""

_MAY_BE_EMPTY = ("cursor", "prefix", "request")
"""The texts that may be empty. An empty cursor or prefix selects everything."""

# ASCII, so that NUL, lone surrogates and emoji survive in every backend.
_ENCODER = json.JSONEncoder(separators=(",", ":"), allow_nan=False, ensure_ascii=True)


def encode(value: Any) -> str:
    """Return the value as JSON. Raise InvalidValues if that is too large."""
    text = _ENCODER.encode(value)
    if len(text) > MAX_VALUE_BYTES:
        problem = "the value is larger than 8 MiB of JSON"
        raise InvalidValues(Mistake("VALUE", "INVALID_VALUE", problem))
    return text


def decode(text: Any) -> Any:
    """Return the value that was encoded to this text. Raise IoFailure if the text is damaged."""
    try:
        return json.loads(text)
    except (ValueError, TypeError) as error:
        raise IoFailure("A value in the store", f"it is damaged: {error}") from error


def format_time(at_ms: int | str) -> str:
    """Return a time in UTC, such as `2026-11-18T09:30:00.250Z`."""
    # Most commands show no time. This import takes 2 ms.
    from datetime import UTC, datetime

    seconds = min(int(at_ms), _LAST_MOMENT_MS) / 1000
    moment = datetime.fromtimestamp(seconds, UTC)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def check_arguments(arguments: Mapping[str, Any]) -> None:
    """Raise InvalidValues if a name or a number of a verb is not acceptable.

    Names appear in responses and on terminals, so they must be printable. Numbers must fit into
    every backend.
    """
    mistakes = []
    for name, argument in arguments.items():
        problem = None
        if isinstance(argument, str):
            problem = _problem_of_text(name, argument)
        elif isinstance(argument, int):
            problem = _problem_of_number(name, argument)
        if problem is not None:
            mistakes.append(Mistake(name.upper(), "INVALID_VALUE", problem, str(argument)))
    if mistakes:
        raise InvalidValues(*mistakes)


def _problem_of_text(name: str, text: str) -> str | None:
    is_encoded_value = name in ("value", "place")
    is_allowed_to_be_empty = text == "" and name in _MAY_BE_EMPTY
    if is_encoded_value or is_allowed_to_be_empty:
        return None
    if 1 <= len(text) <= _MAX_NAME_CHARACTERS and text.isprintable():
        return None
    return f"{text!r} is not 1 to {_MAX_NAME_CHARACTERS} printable characters"


def _problem_of_number(name: str, number: int) -> str | None:
    # Only the amount that is added to a counter may be negative.
    smallest = -MAX_INTEGER if name == "amount" else 0
    if smallest <= number <= MAX_INTEGER:
        return None
    return f"{number} is out of range"


def remembered_key(once: Once, verb: str, name: str) -> str | None:
    """Return the key under which the store remembers the result of a write.

    Return None if it does not remember the write, which then happens each time it is sent.
    """
    if once.key is not None:
        check_arguments({"idempotency_key": once.key})
    if once.fence is None:
        return None if once.key is None else f"key:{once.key}"
    check_arguments({"task": once.fence.task, "generation": once.fence.generation})
    # Without the generation: a second execution of the task has another one.
    parts = (once.fence.task, verb, name, once.key)
    text = json.dumps(parts)
    if len(text) > _MAX_KEY_CHARACTERS:
        text = fingerprint(*parts)
    return f"task:{text}"


def fingerprint(*parts: Any) -> str:
    """Return a hash of the arguments of a write. A repetition must have the same."""
    # Most commands need no hash. This import takes 1 ms.
    from hashlib import sha256

    return sha256(json.dumps(parts).encode()).hexdigest()


def ids_and_bodies(tasks: list[NewTask]) -> list[tuple[str, str]]:
    """Return the id and the encoded body of each task. A task without an id gets a random one.

    Raise InvalidValues if two tasks have the same id. That is a mistake, and not a repetition.
    """
    encoded = []
    given_ids = set()
    for task in tasks:
        task_id = task.id
        if task_id is None:
            task_id = secrets.token_hex(8)
        else:
            check_arguments({"id": task_id})
            if task_id in given_ids:
                problem = f"the id {task_id!r} is given twice"
                raise InvalidValues(Mistake("ID", "INVALID_VALUE", problem, task_id))
            given_ids.add(task_id)
        encoded.append((task_id, encode(task.body)))
    return encoded
