"""sampletool/kit/contract/manifest.py: parameters, errors and responses, described for programs."""

from dataclasses import dataclass
from typing import Annotated, Any, Literal, NamedTuple, get_type_hints

import pytest
import typer
from typer.core import TyperCommand

from sampletool.kit.contract.errors import ErrorKind, Mistake
from sampletool.kit.contract.manifest import (
    describe_errors,
    describe_param,
    envelope_schema,
    schema_of,
)
from sampletool.kit.typer_parameters import command_of

_TEXT = {"type": "string"}


@dataclass(frozen=True)
class Person:
    name: str
    age: int | None = None


@dataclass(frozen=True)
class Counts:
    counts: dict[str, int]


class Pair(NamedTuple):
    first: Person
    others: list[Annotated[str, {"x-untrusted": True}]]


@pytest.mark.parametrize(
    ("hint", "schema"),
    [
        (str, {"type": "string"}),
        (bool, {"type": "boolean"}),
        (float, {"type": "number"}),
        (dict, {"type": "object"}),
        (Any, {}),
        (int | None, {"type": "integer"}),
        (int | str, {"anyOf": [{"type": "integer"}, {"type": "string"}]}),
        (list[int], {"type": "array", "items": {"type": "integer"}}),
        (tuple[str, ...], {"type": "array", "items": {"type": "string"}}),
        (dict[str, int], {"type": "object", "additionalProperties": {"type": "integer"}}),
        (Literal["a", "b"], {"enum": ["a", "b"]}),
        (Annotated[str, {"x-untrusted": True}], {"type": "string", "x-untrusted": True}),
    ],
)
def test_each_type_has_its_schema(hint: Any, schema: dict[str, Any]) -> None:
    assert schema_of(hint) == schema


def test_a_member_that_can_be_none_is_not_required() -> None:
    schema = schema_of(Person)

    assert schema["properties"] == {"name": {"type": "string"}, "age": {"type": "integer"}}
    assert schema["required"] == ["name"]


def test_records_can_be_members_of_records_and_of_either_kind() -> None:
    schema = schema_of(Pair)

    assert schema["properties"]["first"] == schema_of(Person)
    assert schema["properties"]["others"]["items"] == {**_TEXT, "x-untrusted": True}
    assert schema["required"] == ["first", "others"]


def test_a_result_of_one_of_two_types_has_either_schema() -> None:
    assert schema_of(Person | Counts) == {"anyOf": [schema_of(Person), schema_of(Counts)]}


def test_a_response_has_the_data_of_its_command_or_null() -> None:
    data = schema_of(Person)

    schema = envelope_schema(data)

    assert schema["properties"]["data"] == {"anyOf": [data, {"type": "null"}]}
    assert schema["required"] == ["ok", "data", "warnings", "meta"]
    assert schema["properties"]["error"]["properties"]["errors"]["items"] == schema_of(Mistake)


def test_errors_are_sorted_by_code_and_the_first_of_a_code_is_described() -> None:
    kinds = [
        ErrorKind(code="B", exit_status=5, meaning="First."),
        ErrorKind(code="A", exit_status=75, meaning="Other.", retryable=True),
        ErrorKind(code="B", exit_status=5, meaning="Second."),
    ]

    described = describe_errors(kinds)

    assert list(described) == ["A", "B"]
    assert described["A"] == {"exit_status": 75, "retryable": True, "meaning": "Other."}
    assert described["B"]["meaning"] == "First."


def test_a_code_is_retryable_if_one_of_its_errors_is() -> None:
    kinds = [
        ErrorKind(code="A", exit_status=75, meaning="Held.", retryable=True),
        ErrorKind(code="A", exit_status=75, meaning="Gone."),
        ErrorKind(code="B", exit_status=12, meaning="Unknown."),
        ErrorKind(code="B", exit_status=12, meaning="Away.", retryable=True),
    ]

    described = describe_errors(kinds)

    assert described["A"] == {"exit_status": 75, "retryable": True, "meaning": "Held."}
    assert described["B"] == {"exit_status": 12, "retryable": True, "meaning": "Unknown."}


# The members that every response has


def test_a_warning_has_a_code_and_a_message() -> None:
    warnings = envelope_schema({})["properties"]["warnings"]

    assert warnings == {
        "type": "array",
        "items": {
            "type": "object",
            "properties": {"code": _TEXT, "message": _TEXT},
            "required": ["code", "message"],
        },
    }


def test_the_schema_of_meta_has_the_type_of_every_member() -> None:
    meta = envelope_schema({})["properties"]["meta"]

    assert sorted(meta["required"]) == [
        "command",
        "duration_ms",
        "exit_code",
        "request_id",
        "schema_version",
        "timestamp",
        "tool_version",
    ]
    types = {name: schema.get("type") for name, schema in meta["properties"].items()}
    assert types == {
        "command": "string",
        "request_id": "string",
        "tool_version": "string",
        "timestamp": "string",
        "duration_ms": "integer",
        "exit_code": "integer",
        "schema_version": None,
        "session_id": "string",
        "cwd": "string",
        "trace_id": "string",
        "next_cursor": "string",
        "has_more": "boolean",
        "total": "integer",
        "fields": "string",
        "dry_run": "boolean",
        "replayed": "boolean",
        "waited_ms": "integer",
        "truncated": "boolean",
        "untrusted": "array",
        "recovered_from": "object",
    }
    assert meta["properties"]["schema_version"] == {"enum": ["2.1.0"]}


def test_the_crashed_holder_in_meta_has_at_least_a_pid() -> None:
    meta = envelope_schema({})["properties"]["meta"]

    assert meta["properties"]["recovered_from"] == {
        "type": "object",
        "properties": {"pid": {"type": "integer"}, "command": _TEXT, "started_at": _TEXT},
        "required": ["pid"],
    }


def test_the_schema_of_an_error_has_the_type_of_every_member() -> None:
    error = envelope_schema({})["properties"]["error"]

    required = ["code", "context", "exit_code", "message", "retryable", "suggestion"]
    assert sorted(error["required"]) == required
    assert error["properties"] == {
        "message": _TEXT,
        "suggestion": _TEXT,
        "retryable": {"type": "boolean"},
        "exit_code": {"type": "integer"},
        "context": {"type": "object"},
        "code": {"type": "string", "pattern": "^[A-Z][A-Z_]+$"},
        "retry_after_ms": {"type": "integer"},
        "fix_command": {"type": "string"},
        "corrected_input": {"type": "string"},
        "errors": {"type": "array", "items": schema_of(Mistake)},
    }


# Parameters


def _no_names(incomplete: str) -> list[str]:
    return []


def _probe(
    keys: Annotated[list[str], typer.Argument(help="Keys to show.")],
    target: Annotated[str, typer.Argument()] = "",
    count: Annotated[int, typer.Argument(metavar="[N]")] = 3,
    limit: Annotated[int, typer.Option("--limit", "-n", min=1, max=8)] = 5,
    ratio: Annotated[float | None, typer.Option("--ratio", min=0)] = None,
    name: Annotated[
        str | None,
        typer.Option("--name", show_default="a random one", autocompletion=_no_names),
    ] = None,
    kinds: Annotated[list[str] | None, typer.Option("--kind")] = None,
    directory: Annotated[str | None, typer.Option("--dir", metavar="DIR")] = None,
    wait: Annotated[str, typer.Option("--wait", metavar="DURATION")] = "5s",
    form: Annotated[Literal["json", "text"], typer.Option("--form")] = "json",
    loud: Annotated[bool, typer.Option("--loud/--silent")] = False,
    verbose: Annotated[int, typer.Option("--verbose", "-v", count=True)] = 0,
    key: Annotated[str, typer.Option("--key")] = ...,
) -> None:
    """Have one parameter of each sort."""


_ORDINARY = {"required": False, "repeatable": False}
_TEXT_OPTION = {"type": "string", "metavar": "TEXT", **_ORDINARY}


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        (
            "keys",
            {
                "type": "string",
                "metavar": "KEYS...",
                "required": True,
                "repeatable": True,
                "help": "Keys to show.",
            },
        ),
        ("target", {"type": "string", "metavar": "TARGET", **_ORDINARY}),
        ("count", {"type": "integer", "default": 3, "metavar": "[N]", **_ORDINARY}),
        (
            "limit",
            {
                "flags": ["--limit", "-n"],
                "type": "integer",
                "minimum": 1,
                "maximum": 8,
                "default": 5,
                "metavar": "N",
                **_ORDINARY,
            },
        ),
        (
            "ratio",
            {"flags": ["--ratio"], "type": "number", "minimum": 0, "metavar": "N", **_ORDINARY},
        ),
        (
            "name",
            {
                "flags": ["--name"],
                **_TEXT_OPTION,
                "shown_default": "a random one",
                "completion": True,
            },
        ),
        ("kinds", {"flags": ["--kind"], **_TEXT_OPTION, "repeatable": True}),
        ("directory", {"flags": ["--dir"], "type": "path", "metavar": "DIR", **_ORDINARY}),
        (
            "wait",
            {
                "flags": ["--wait"],
                "type": "duration",
                "default": "5s",
                "metavar": "DURATION",
                **_ORDINARY,
            },
        ),
        (
            "form",
            {
                "flags": ["--form"],
                "type": "choice",
                "choices": ["json", "text"],
                "default": "json",
                "metavar": "json|text",
                **_ORDINARY,
            },
        ),
        ("loud", {"flags": ["--loud", "--silent"], "type": "boolean", **_ORDINARY}),
        (
            "verbose",
            {
                "flags": ["--verbose", "-v"],
                "type": "boolean",
                "required": False,
                "repeatable": True,
            },
        ),
        ("key", {"flags": ["--key"], **_TEXT_OPTION, "required": True}),
    ],
)
def test_each_sort_of_parameter_has_its_description(name: str, expected: dict[str, Any]) -> None:
    hints = get_type_hints(_probe, include_extras=True)
    command = command_of(_probe, TyperCommand)
    parameters = {parameter.name: parameter for parameter in command.params}

    assert describe_param(parameters[name], hints[name]) == {"name": name, **expected}
