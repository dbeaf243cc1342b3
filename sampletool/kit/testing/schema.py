"""Check responses against the schemas in the manifest, with the package `jsonschema`.

The check is stricter than JSON Schema: a member that the schema does not name is a problem. A
caller may ignore such a member. But if a command returns one, its manifest is not complete.
"""

from collections.abc import Collection, Iterator
from functools import cache
from typing import Any

from jsonschema import (  # type: ignore[import-untyped]
    Draft202012Validator,
    ValidationError,
    validators,
)
from jsonschema.exceptions import best_match  # type: ignore[import-untyped]

from ..app import root_command
from ..commands.manifest import describe, find_commands
from ..contract.manifest import envelope_schema


def problems_of(response: dict[str, Any]) -> list[str]:
    """Return where a response differs from the schema of its command.

    Each problem begins with the path of the wrong member, for example `$.data.key`. If the response
    belongs to no command, its data may be anything.
    """
    problems = _problems("$", response, _envelope_validator())
    data = response.get("data")
    # The data of every command may be null: then there is an error, or nothing to return.
    if data is not None:
        meta = response["meta"]
        validator = _data_validator(meta["command"], selects_fields="fields" in meta)
        problems += _problems("$.data", data, validator)
    return problems


@cache
def described() -> dict[str, dict[str, Any]]:
    """Return the manifest of every command, by its name with dots."""
    manifests = {}
    for name, command in find_commands(root_command()):
        manifests[name.replace(" ", ".")] = describe(name, command)
    return manifests


def _problems(path: str, value: Any, validator: Draft202012Validator) -> list[str]:
    """Return a description of each error in the value, which is at this path in the response."""
    problems = []
    for error in validator.iter_errors(value):
        # If a value fits none of several schemas, best_match() returns an error from the schema
        # that fits best. It is more specific than "is not valid under any of the given schemas".
        cause = best_match([error])
        inner_path = cause.json_path.removeprefix("$")
        problems.append(f"{path}{inner_path}: {cause.message}")
    return problems


# A test run checks thousands of responses, so each validator is built once.
@cache
def _envelope_validator() -> Draft202012Validator:
    return _StrictValidator(envelope_schema({}))


@cache
def _data_validator(command: str, *, selects_fields: bool) -> Draft202012Validator:
    """Return the validator for the data of a command. Without such a command, any data is valid.

    With `--fields`, any member of the data may be missing.
    """
    schema: dict[str, Any] = {}
    if command in described():
        schema = described()[command]["data"]
    if selects_fields:
        return _SelectionValidator(schema)
    return _StrictValidator(schema)


# The two functions below have the signature that jsonschema expects of a keyword.


def _check_properties(
    validator: Draft202012Validator,
    properties: dict[str, Any],
    instance: Any,
    schema: dict[str, Any],
) -> Iterator[ValidationError]:
    """Yield the errors in the members of an object, and an error for each unnamed member."""
    check_named = Draft202012Validator.VALIDATORS["properties"]
    yield from check_named(validator, properties, instance, schema)
    if "additionalProperties" in schema or not isinstance(instance, dict):
        return
    for name in instance:
        if name not in properties:
            yield ValidationError("is not in the schema", path=[name])


def _check_required(
    validator: Draft202012Validator,
    required: Collection[str],
    instance: Any,
    schema: dict[str, Any],
) -> Iterator[ValidationError]:
    """Yield an error for each missing member. Its path is that of the member, not of the object."""
    if not isinstance(instance, dict):
        return
    for name in required:
        if name not in instance:
            yield ValidationError("is missing", path=[name])


def _check_nothing(*_: object) -> Iterator[ValidationError]:
    return iter(())


# All drafts are equally fast with these schemas: about 0.1 ms for a response.
_StrictValidator = validators.extend(
    Draft202012Validator,
    {"properties": _check_properties, "required": _check_required},
)
_SelectionValidator = validators.extend(_StrictValidator, {"required": _check_nothing})
