"""The command tree as data: what can be asked for, what each command changes, how it can end.

Built from the live commands, so it cannot disagree with them.
"""

import types
import typing
from dataclasses import fields, is_dataclass
from typing import Any

from .answer import META_MEMBERS, SCHEMA_VERSION
from .command_spec import CommandSpec
from .deprecation import find_deprecated_flags
from .errors import Mistake

_JSON_TYPES = {str: "string", int: "integer", float: "number", bool: "boolean", type(None): "null", dict: "object"}
_METAVAR_TYPES = {"DURATION": "duration", "FILE": "path", "DIR": "path"}


def describe_param(param: Any, hint: Any) -> dict[str, Any]:
    """What to write for a parameter, and what happens without it. The type of the parser is left out: it reads text."""
    kind, declared = _kind_of(hint), getattr(hint, "__metadata__", ())
    is_option = param.param_type_name == "option"
    # `-vv` is a flag that is counted.
    is_counted = getattr(param, "count", False)
    is_flag = is_option and (kind is bool or is_counted)
    choices = typing.get_args(kind)
    several = "..." if param.nargs == -1 else ""
    written = ("N" if kind in (int, float) else "TEXT") if is_option else f"{param.name.upper()}{several}"
    metavar = param.metavar or "|".join(choices) or written
    described = {
        "name": param.name,
        "flags": [*param.opts, *param.secondary_opts] if is_option else None,
        "type": _type_name(kind, metavar, is_flag=is_flag),
        "choices": list(choices) or None,
        "minimum": next((each.min for each in declared if hasattr(each, "min")), None),
        "maximum": next((each.max for each in declared if hasattr(each, "max")), None),
        "default": None if is_flag or param.default in (None, "") else param.default,
        "shown_default": _shown_default(param),
        "metavar": None if is_flag else metavar,
        "required": param.required,
        "repeatable": param.multiple or param.nargs == -1 or is_counted,
        "completion": True if any(getattr(each, "autocompletion", None) for each in declared) else None,
        "help": param.help,
        "deprecated_flags": _deprecated_flags(param, hint),
    }
    return {key: value for key, value in described.items() if value is not None}


def _type_name(kind: Any, metavar: str, *, is_flag: bool) -> str:
    """Return the type of the values, as the manifest calls it."""
    if is_flag:
        return "boolean"
    if typing.get_origin(kind) is typing.Literal:
        return "choice"
    if metavar in _METAVAR_TYPES:
        return _METAVAR_TYPES[metavar]
    return _JSON_TYPES.get(kind, "string")


def _shown_default(param: Any) -> str | None:
    """Return the words for a default that has no fixed value: `show_default` of typer.Option."""
    shown = getattr(param, "show_default", None)
    return shown if isinstance(shown, str) else None


def _deprecated_flags(param: Any, hint: Any) -> dict[str, str] | None:
    """Return the deprecated flags of an option, each with what to use instead, if it has some.

    Raise ValueError if a mark names a flag that the option does not have.
    """
    deprecated = find_deprecated_flags([hint])
    for flag in deprecated:
        if flag not in param.opts:
            raise ValueError(f"{flag} is marked as deprecated, but {param.opts} do not contain it")
    return deprecated or None


def _kind_of(hint: Any) -> Any:
    """`Annotated[list[str] | None, ...]` has values of `str`."""
    parts = [part for part in typing.get_args(hint) if part is not type(None)]
    return _kind_of(parts[0]) if parts and typing.get_origin(hint) is not typing.Literal else hint


def describe_errors(spec: CommandSpec) -> dict[str, Any]:
    """Every code that a command can end with; the first line of its docstring says what it means."""
    errors = {}
    for kind in reversed(spec.all_errors()):
        errors[kind.code] = {"exit_status": kind.exit_status, "retryable": kind.retryable, "meaning": kind.meaning}
    return dict(sorted(errors.items()))


def schema_of(kind: Any) -> dict[str, Any]:
    """The JSON schema of what a command returns, read from its members."""
    origin, parts = typing.get_origin(kind), typing.get_args(kind)
    if origin is typing.Annotated:
        return schema_of(parts[0]) | {name: fact for facts in parts[1:] for name, fact in facts.items()}
    if names := [each.name for each in fields(kind)] if is_dataclass(kind) else getattr(kind, "_fields", ()):
        hints = typing.get_type_hints(kind, include_extras=True)
        plain = typing.get_type_hints(kind)
        names = [name for name in names if name not in META_MEMBERS]
        needed = [name for name in names if type(None) not in typing.get_args(plain[name])]  # None is left out
        return _object({name: schema_of(hints[name]) for name in names}, needed)
    if origin in (list, tuple):
        return {"type": "array", "items": schema_of(parts[0])}
    if origin is dict:
        return {"type": "object", "additionalProperties": schema_of(parts[1])}
    if origin in (typing.Union, types.UnionType):
        some = [schema_of(part) for part in parts if part is not type(None)]
        return {"anyOf": some} if len(some) > 1 else some[0]
    if origin is typing.Literal:
        return {"enum": list(parts)}
    return {"type": _JSON_TYPES[kind]} if kind in _JSON_TYPES else {}


def _object(properties: dict[str, Any], required: list[str]) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": required}


def envelope_schema(data: dict[str, Any]) -> dict[str, Any]:
    """Of every answer whose data is this. What fails has an `error`, and as `data` what was done, or null."""
    members = {"ok": {"type": "boolean"}, "data": {"anyOf": [data, {"type": "null"}]}, "error": ERROR}
    warning = _object(_members(string="code message"), ["code", "message"])
    members |= {"warnings": {"type": "array", "items": warning}, "meta": META}
    return _object(members, ["ok", "data", "warnings", "meta"])


def _members(**names: str) -> dict[str, Any]:
    """Those of each type, by their names."""
    return {name: {"type": kind} for kind, some in names.items() for name in some.split()}


_CRASHED = _object(_members(integer="pid", string="command started_at"), ["pid"])
_META = _members(string="command request_id tool_version timestamp", integer="exit_code")
_META |= {"schema_version": {"enum": [SCHEMA_VERSION]}}
_META_TOO = _members(string="session_id cwd trace_id next_cursor fields", boolean="dry_run replayed")
_META_TOO |= _members(integer="waited_ms duration_ms") | {"recovered_from": _CRASHED}
META = _object(_META | _META_TOO, [*_META])
"""What does not apply is absent."""
_ERROR = _members(string="message suggestion", boolean="retryable", integer="exit_code", object="context")
_ERROR |= {"code": {"type": "string", "pattern": "^[A-Z][A-Z_]+$"}}
_ERROR_TOO = _members(integer="retry_after_ms") | {"errors": {"type": "array", "items": schema_of(Mistake)}}
ERROR = _object(_ERROR | _ERROR_TOO, [*_ERROR])
