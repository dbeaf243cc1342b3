"""Histories that a person writes, to test the checkers.

Times are milliseconds. A call without an end has no response.
"""

from tests.state.history.operation import Json, Operation

MS = 1_000_000


def call(
    begin: float,
    end: float | None,
    verb: str,
    target: str,
    arguments: dict[str, Json] | None = None,
    response: dict[str, Json] | None = None,
    *,
    refusal: str | None = None,
    client: str = "ann",
) -> Operation:
    """Return a call from `begin` to `end`."""
    responded_ns = None
    if end is not None:
        responded_ns = round(end * MS)
    return Operation(
        client=client,
        verb=verb,
        target=target,
        arguments=arguments or {},
        invoked_ns=round(begin * MS),
        responded_ns=responded_ns,
        response=response or {},
        refusal=refusal,
    )


def get(begin: float, end: float | None, value: Json, version: int) -> Operation:
    """Return a read that found this value."""
    return call(begin, end, "get", "color", {}, {"value": value, "version": version})


def get_nothing(begin: float, end: float) -> Operation:
    """Return a read that found no value."""
    return call(begin, end, "get", "color", refusal="KEY_NOT_FOUND")


def put(
    begin: float,
    end: float | None,
    value: Json,
    version: int | None = None,
    *,
    if_version: int | None = None,
) -> Operation:
    """Return a `set` that wrote this version. Without `end` it may have happened."""
    arguments = {"value": value, "if_version": if_version}
    return call(begin, end, "set", "color", arguments, {"version": version})


def conflict(begin: float, end: float, *, if_version: int, actual: int) -> Operation:
    """Return a `set` that was refused because the value had another version."""
    arguments: dict[str, Json] = {"value": "refused", "if_version": if_version}
    facts: dict[str, Json] = {"actual": actual}
    return call(begin, end, "set", "color", arguments, facts, refusal="VERSION_CONFLICT")


def unset(begin: float, end: float | None, version: int = 0) -> Operation:
    """Return an `unset` that removed this version, or nothing if the version is 0."""
    return call(begin, end, "unset", "color", {"if_version": None}, {"version": version})


def add(
    begin: float, end: float | None, value: int = 0, *, amount: int = 1, key: str | None = None
) -> Operation:
    """Return an addition that returned this value."""
    return call(begin, end, "add", "hits", {"amount": amount, "key": key}, {"value": value})


def count(begin: float, end: float, value: int) -> Operation:
    """Return a read of the counter."""
    return call(begin, end, "count", "hits", {}, {"value": value})
