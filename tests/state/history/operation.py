"""One call of a store, as the client saw it, and the log to which the client writes its calls.

A client writes two lines for each call: one before the call, and one after the response. Each line
is a single `write` to a file, so it survives kill -9 of the client. A call with no second line has
no response: the client was killed, or lost its connection. Such a call *may have happened*.

The times come from CLOCK_MONOTONIC. All processes of one machine share this clock, and it never
steps, so times of different clients can be compared.
"""

import json
import os
import time
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self, TypeAlias

Json: TypeAlias = "bool | int | float | str | list[Json] | dict[str, Json] | None"


@dataclass(frozen=True, kw_only=True)
class Operation:
    """One call, and its response if there was one."""

    client: str
    """The process: `c2.1` is the second process of client c2, after kill -9 of `c2.0`."""
    verb: str
    target: str
    """The value, counter, queue or task that the call is about."""
    arguments: dict[str, Json]
    invoked_ns: int
    """The time just before the call."""
    responded_ns: int | None
    """The time just after the response. None if there was no response."""
    response: dict[str, Json]
    """What the store returned, or the facts of its refusal."""
    refusal: str | None
    """The error code, such as VERSION_CONFLICT, if the store refused the call."""

    @property
    def may_have_happened(self) -> bool:
        """Whether nobody knows if this call took effect."""
        return self.responded_ns is None

    @property
    def succeeded(self) -> bool:
        """Whether this call took effect for certain."""
        return self.responded_ns is not None and self.refusal is None

    def is_before(self, other: "Operation") -> bool:
        """Return whether this call ended before the other one began."""
        return self.responded_ns is not None and self.responded_ns < other.invoked_ns


class Log:
    """The file to which one client process writes its calls."""

    def __init__(self, path: Path) -> None:
        """Create the file. One process must not continue the log of another."""
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND | os.O_CLOEXEC
        self._descriptor = os.open(path, flags, 0o600)
        self._calls = 0

    def invoke(self, verb: str, target: str, arguments: dict[str, Json]) -> int:
        """Write that a call begins now. Return its number."""
        self._calls += 1
        line: dict[str, Json] = {
            "call": self._calls,
            "verb": verb,
            "target": target,
            "arguments": arguments,
            # Read before the line is written, and the call begins after that. So the recorded
            # interval always contains the moment at which the call took effect.
            "invoked_ns": time.monotonic_ns(),
        }
        self._write(line)
        return self._calls

    def respond(self, call: int, response: dict[str, Json], refusal: str | None) -> None:
        """Write that the response to this call is here now."""
        line: dict[str, Json] = {
            "call": call,
            "response": response,
            "refusal": refusal,
            "responded_ns": time.monotonic_ns(),
        }
        self._write(line)

    def __enter__(self) -> Self:
        """Return this log, which is open."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close the file."""
        os.close(self._descriptor)

    def _write(self, line: dict[str, Json]) -> None:
        os.write(self._descriptor, json.dumps(line).encode() + b"\n")


def read_history(directory: Path) -> list[Operation]:
    """Return all calls in the logs of a directory, in the order in which they began."""
    operations = []
    for path in sorted(directory.glob("*.log")):
        operations += read_log(path)
    operations.sort(key=lambda operation: operation.invoked_ns)
    return operations


def read_log(path: Path) -> list[Operation]:
    """Return the calls in one log."""
    invocations = []
    responses = {}
    for text in path.read_text().split("\n"):
        try:
            line = json.loads(text)
        except ValueError:
            # The last line is empty, or incomplete because its writer was killed.
            continue
        if "invoked_ns" in line:
            invocations.append(line)
        else:
            responses[line["call"]] = line
    no_response: dict[str, Any] = {"responded_ns": None, "response": {}, "refusal": None}
    operations = []
    for invocation in invocations:
        response = responses.get(invocation["call"], no_response)
        operation = Operation(
            client=path.stem,
            verb=invocation["verb"],
            target=invocation["target"],
            arguments=invocation["arguments"],
            invoked_ns=invocation["invoked_ns"],
            responded_ns=response["responded_ns"],
            response=response["response"],
            refusal=response["refusal"],
        )
        operations.append(operation)
    return operations


def describe(operations: Iterable[Operation], start_ns: int) -> str:
    """Return one line for each call, in the order in which they began.

    The times are milliseconds since `start_ns`.
    """
    lines = []
    for operation in sorted(operations, key=lambda operation: operation.invoked_ns):
        began = (operation.invoked_ns - start_ns) / 1e6
        if operation.responded_ns is None:
            period = f"{began:9.2f} ...           ms"
        else:
            ended = (operation.responded_ns - start_ns) / 1e6
            period = f"{began:9.2f} to {ended:9.2f} ms"
        lines.append(f"  {period}  {operation.client:7} {describe_call(operation)}")
    return "\n".join(lines)


def describe_call(operation: Operation) -> str:
    """Return the call and its response in one line: `get color -> value "red", version 4`."""
    call = f"{operation.verb} {operation.target}"
    arguments = _describe_facts(operation.arguments)
    if arguments:
        call += f" ({arguments})"
    response = _describe_facts(operation.response)
    if operation.may_have_happened:
        response = "no response: may have happened"
    elif operation.refusal is not None and response:
        response = f"refused: {operation.refusal} ({response})"
    elif operation.refusal is not None:
        response = f"refused: {operation.refusal}"
    return f"{call} -> {response or 'ok'}"


def whole(number: Json) -> int:
    """Return a number from a log that must be a whole number."""
    assert isinstance(number, int)
    return number


def _describe_facts(facts: dict[str, Json]) -> str:
    shown = [f"{name} {json.dumps(fact)}" for name, fact in facts.items() if fact is not None]
    return ", ".join(shown)
