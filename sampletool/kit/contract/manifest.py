"""Descriptions of commands for programs: parameters, errors, and the JSON schemas of responses.

They are built from the live commands, so they cannot contradict them.
"""

import types
import typing
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from typing import Any

from .deprecation import find_deprecated_flags
from .errors import ErrorKind, Mistake
from .records import member_names, optional_members
from .response import META_MEMBERS, SCHEMA_VERSION

Schema = dict[str, Any]
"""A JSON schema."""

_JSON_TYPES = {
    str: "string",
    int: "integer",
    float: "number",
    bool: "boolean",
    type(None): "null",
    dict: "object",
}
_TYPES_BY_METAVAR = {"DURATION": "duration", "FILE": "path", "DIR": "path"}
"""The types of parameters whose values are texts with a meaning."""


def describe_param(param: Any, hint: Any) -> dict[str, Any]:
    """Return what a caller has to know about a parameter of a command.

    `param` is the parameter that Typer has created, and `hint` its annotation.
    """
    # What Typer's own `param.type` says is of no use: every value on a command line is a text.
    value_type = _value_type_of(hint)
    declarations = getattr(hint, "__metadata__", ())
    # `-vv` is a flag that is counted.
    is_counted = getattr(param, "count", False)
    is_flag = is_counted or _is_bool_option(param, value_type)
    choices = list(typing.get_args(value_type))
    metavar = _metavar_of(param, value_type, choices)

    described: dict[str, Any] = {"name": param.name}
    if _is_option(param):
        described["flags"] = [*param.opts, *param.secondary_opts]
    described["type"] = _type_name(value_type, metavar, is_flag=is_flag)
    if choices:
        described["choices"] = choices
    described.update(_limits_in(declarations))
    if not is_flag:
        described.update(_defaults_of(param))
        described["metavar"] = metavar
    described["required"] = param.required
    described["repeatable"] = param.multiple or param.nargs == -1 or is_counted
    if _has_completion(declarations):
        described["completion"] = True
    if param.help is not None:
        described["help"] = param.help
    deprecated_flags = _deprecated_flags(param, hint)
    if deprecated_flags:
        described["deprecated_flags"] = deprecated_flags
    return described


def _deprecated_flags(param: Any, hint: Any) -> dict[str, str]:
    """Return the deprecated flags of an option, each with what to use instead.

    Raise ValueError if a mark names a flag that the option does not have.
    """
    deprecated = find_deprecated_flags([hint])
    for flag in deprecated:
        if flag not in param.opts:
            raise ValueError(f"{flag} is marked as deprecated, but {param.opts} do not contain it")
    return deprecated


def _value_type_of(hint: Any) -> Any:
    """Return the type of one value: `Annotated[list[str] | None, ...]` has values of type `str`."""
    if typing.get_origin(hint) is typing.Literal:
        # In brackets, it has the values themselves, and no type.
        return hint
    # The type in the first place counts: the others are declarations, or None. A type without
    # brackets, such as `str`, has none, and is the type of one value.
    for inner in typing.get_args(hint):
        if inner is not type(None):
            return _value_type_of(inner)
    return hint


def _type_name(value_type: Any, metavar: str, *, is_flag: bool) -> str:
    """Return the type of the values, as the manifest calls it."""
    if is_flag:
        return "boolean"
    if typing.get_origin(value_type) is typing.Literal:
        return "choice"
    if metavar in _TYPES_BY_METAVAR:
        return _TYPES_BY_METAVAR[metavar]
    return _JSON_TYPES.get(value_type, "string")


def _metavar_of(param: Any, value_type: Any, choices: list[str]) -> str:
    """Return the placeholder of the value in a usage line, such as `FILE` or `text|json`."""
    if param.metavar:
        return str(param.metavar)
    if choices:
        return "|".join(choices)
    return _default_metavar(param, value_type)


def _default_metavar(param: Any, value_type: Any) -> str:
    """Return the placeholder of a value for which nothing else is declared, such as `NAME...`."""
    if _is_option(param):
        return "N" if value_type in (int, float) else "TEXT"
    name: str = param.name.upper()
    if param.nargs == -1:
        return f"{name}..."
    return name


def _is_option(param: Any) -> bool:
    """Return whether the parameter is an option. Otherwise, it is an argument."""
    return bool(param.param_type_name == "option")


def _is_bool_option(param: Any, value_type: Any) -> bool:
    """Return whether the parameter is an option without a value, such as `--all`."""
    return _is_option(param) and value_type is bool


def _defaults_of(param: Any) -> dict[str, Any]:
    """Return the default of a parameter, and the words for one that has no fixed value."""
    defaults = {}
    if param.default not in (None, ""):
        defaults["default"] = param.default
    shown_default = getattr(param, "show_default", None)
    if isinstance(shown_default, str):
        defaults["shown_default"] = shown_default
    return defaults


def _has_completion(declarations: Iterable[Any]) -> bool:
    """Return whether a shell can complete the values."""
    return any(getattr(each, "autocompletion", None) for each in declarations)


def _limits_in(declarations: Iterable[Any]) -> dict[str, Any]:
    """Return the smallest and the largest value that Typer accepts, where they are declared."""
    limits = {}
    for declaration in declarations:
        for name, attribute in (("minimum", "min"), ("maximum", "max")):
            limit = getattr(declaration, attribute, None)
            if limit is not None:
                limits[name] = limit
    return limits


def describe_errors(kinds: Iterable[ErrorKind]) -> dict[str, dict[str, Any]]:
    """Return the exit code and the meaning of each error, sorted by its code."""
    described: dict[str, dict[str, Any]] = {}
    for kind in kinds:
        # Of two errors with the same code, the first one is described.
        error = described.setdefault(
            kind.code,
            {
                "exit_status": kind.exit_status,
                "retryable": False,
                "meaning": kind.meaning,
            },
        )
        # But a retry can succeed if it can after one of them.
        if kind.retryable:
            error["retryable"] = True
    return dict(sorted(described.items()))


def schema_of(hint: Any) -> Schema:
    """Return the schema of a value with this annotation. Records become objects."""
    origin = typing.get_origin(hint)
    arguments = typing.get_args(hint)
    if origin is typing.Annotated:
        schema = schema_of(arguments[0])
        for facts in arguments[1:]:
            schema.update(facts)
        return schema
    if origin in (list, tuple):
        return {"type": "array", "items": schema_of(arguments[0])}
    if origin is dict:
        return {"type": "object", "additionalProperties": schema_of(arguments[1])}
    if origin in (typing.Union, types.UnionType):
        return _schema_of_union(arguments)
    if origin is typing.Literal:
        return {"enum": list(arguments)}
    if hint in _JSON_TYPES:
        return {"type": _JSON_TYPES[hint]}
    return _schema_of_record(hint)


# Looking at the types of a result takes up to 0.2 ms.
@cache
def untrusted_members(record: Any) -> list[str]:
    """Return the paths of the members with text that others wrote, such as `tasks.body`."""
    return list(_find_untrusted(schema_of(record), ""))


def _find_untrusted(schema: Schema, path: str) -> Iterator[str]:
    """Yield the paths of the untrusted members in a schema, which itself is at this path."""
    if "x-untrusted" in schema:
        yield path
        return
    for name, member in schema.get("properties", {}).items():
        yield from _find_untrusted(member, f"{path}.{name}" if path else name)
    inner_schemas = list(schema.get("anyOf", ()))
    for keyword in ("items", "additionalProperties"):
        if keyword in schema:
            inner_schemas.append(schema[keyword])
    for inner_schema in inner_schemas:
        yield from _find_untrusted(inner_schema, path)


def _schema_of_union(types_in_union: tuple[Any, ...]) -> Schema:
    """Return the schema of `A | B`. A member that is None is absent, so None needs no schema."""
    schemas = [schema_of(each) for each in types_in_union if each is not type(None)]
    if len(schemas) == 1:
        return schemas[0]
    return {"anyOf": schemas}


def _schema_of_record(record: Any) -> Schema:
    """Return the schema of a dataclass or NamedTuple. Anything else can be any JSON."""
    all_names = member_names(record)
    if not all_names:
        return {}
    names = [name for name in all_names if name not in META_MEMBERS]
    hints = typing.get_type_hints(record, include_extras=True)
    properties = {name: schema_of(hints[name]) for name in names}
    optional = optional_members(record)
    required = [name for name in names if name not in optional]
    return _object(properties, required)


def _object(properties: Mapping[str, Schema], required: Iterable[str]) -> Schema:
    return {"type": "object", "properties": dict(properties), "required": list(required)}


def envelope_schema(data: Schema) -> Schema:
    """Return the schema of a whole response with this `data`.

    The response to a command that failed has an `error`. Its `data` is what was done, or null.
    """
    warning = _object({"code": _TEXT, "message": _TEXT}, ["code", "message"])
    properties: dict[str, Schema] = {
        "ok": _BOOLEAN,
        "data": {"anyOf": [data, {"type": "null"}]},
        "error": ERROR,
        "warnings": {"type": "array", "items": warning},
        "meta": META,
    }
    return _object(properties, ["ok", "data", "warnings", "meta"])


_TEXT: Schema = {"type": "string"}
_INTEGER: Schema = {"type": "integer"}
_BOOLEAN: Schema = {"type": "boolean"}

_META_OF_EVERY_COMMAND: dict[str, Schema] = {
    "command": _TEXT,
    "request_id": _TEXT,
    "tool_version": _TEXT,
    "timestamp": _TEXT,
    "duration_ms": _INTEGER,
    "exit_code": _INTEGER,
    "schema_version": {"enum": [SCHEMA_VERSION]},
}
_META_OF_SOME_COMMANDS: dict[str, Schema] = {
    "session_id": _TEXT,
    "cwd": _TEXT,
    "trace_id": _TEXT,
    "next_cursor": _TEXT,
    "has_more": _BOOLEAN,
    "total": _INTEGER,
    "fields": _TEXT,
    "dry_run": _BOOLEAN,
    "replayed": _BOOLEAN,
    "waited_ms": _INTEGER,
    "truncated": _BOOLEAN,
    "untrusted": {"type": "array", "items": _TEXT},
    "recovered_from": _object({"pid": _INTEGER, "command": _TEXT, "started_at": _TEXT}, ["pid"]),
}
META = _object(_META_OF_EVERY_COMMAND | _META_OF_SOME_COMMANDS, _META_OF_EVERY_COMMAND)
"""The schema of `meta`. A member that does not apply is absent."""

_MEMBERS_OF_EVERY_ERROR: dict[str, Schema] = {
    "message": _TEXT,
    "suggestion": _TEXT,
    "retryable": _BOOLEAN,
    "exit_code": _INTEGER,
    "context": {"type": "object"},
    "code": {"type": "string", "pattern": "^[A-Z][A-Z_]+$"},
}
_MEMBERS_OF_SOME_ERRORS: dict[str, Schema] = {
    "retry_after_ms": _INTEGER,
    "fix_command": _TEXT,
    "corrected_input": _TEXT,
    "errors": {"type": "array", "items": schema_of(Mistake)},
}
ERROR = _object(_MEMBERS_OF_EVERY_ERROR | _MEMBERS_OF_SOME_ERRORS, _MEMBERS_OF_EVERY_ERROR)
"""The schema of `error`."""
