"""What callers hand to a store, checked once for all backends, and how it is written down."""

import json
import secrets
from typing import Any

from ..kit.contract.errors import InvalidValues, Mistake
from ..kit.contract.file_errors import IoFailure
from .protocol import LARGEST, NewTask, Once

LARGEST_VALUE_BYTES = 8 * 1024 * 1024
_ENCODER = json.JSONEncoder(separators=(",", ":"), allow_nan=False)
_LONGEST_NAME = 200
_LAST_MS = 253_402_300_799_999
"""The end of the year 9999: what ends later is shown as ending then."""
_LONGEST_KEY = 1000
"""An index of PostgreSQL takes no longer ones than 2,700 bytes."""


def encode(value: Any) -> str:
    """JSON in ASCII: NUL, lone surrogates and emoji survive in every backend."""
    text = _ENCODER.encode(value)
    if len(text) > LARGEST_VALUE_BYTES:
        raise InvalidValues(Mistake("VALUE", "INVALID_VALUE", "the value is larger than 8 MiB of JSON"))
    return text


def decode(text: Any) -> Any:
    """What `encode` made of a value, as a store answers it."""
    try:
        return json.loads(text)
    except (ValueError, TypeError) as error:
        raise IoFailure("A value in the store", f"it is damaged: {error}") from error


def say_time(at_ms: int | str) -> str:
    """`2026-11-18T09:30:00.250Z`"""
    from datetime import UTC, datetime

    seconds = min(int(at_ms), _LAST_MS) / 1000
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def check(**given: Any) -> None:
    """Names end up in answers and terminals, numbers have to fit every backend. Only an amount may be negative."""
    mistakes = []
    for kind, value in given.items():
        is_name = isinstance(value, str) and kind != "value" and (value != "" or kind not in ("cursor", "prefix"))
        if is_name and not (1 <= len(value) <= _LONGEST_NAME and value.isprintable()):
            problem = f"{value!r} is not 1 to {_LONGEST_NAME} printable characters"
        elif isinstance(value, int) and not (-LARGEST if kind == "amount" else 0) <= value <= LARGEST:
            problem = f"{value} is out of range"
        else:
            continue
        mistakes.append(Mistake(kind.upper(), "INVALID_VALUE", problem, str(value)))
    if mistakes:
        raise InvalidValues(*mistakes)


def once_key(once: Once, verb: str, name: str) -> str | None:
    """What is remembered about a write that must not happen twice."""
    if once.key is not None:
        check(idempotency_key=once.key)
    if once.fence is not None:
        check(task=once.fence.task, generation=once.fence.generation)
        parts = (once.fence.task, verb, name, once.key)
        text = json.dumps(parts)
        return f"task:{text if len(text) <= _LONGEST_KEY else digest(*parts)}"
    return None if once.key is None else f"key:{once.key}"


def digest(*parts: Any) -> str:
    """What a repeated write has to agree with."""
    from hashlib import sha256

    return sha256(json.dumps(parts).encode()).hexdigest()


def with_ids(tasks: list[NewTask]) -> list[tuple[str, str]]:
    """Ids and bodies as they are stored. One id twice in a batch is a mistake, not a repetition."""
    given = [task.id for task in tasks if task.id is not None]
    for task in given:
        check(id=task)
    if len(set(given)) < len(given):
        twice = next(task for task in given if given.count(task) > 1)
        raise InvalidValues(Mistake("ID", "INVALID_VALUE", f"the id {twice!r} is given twice", twice))
    return [(secrets.token_hex(8) if task.id is None else task.id, encode(task.body)) for task in tasks]
