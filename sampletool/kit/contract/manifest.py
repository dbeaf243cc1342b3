"""The command tree as data: what can be asked for, what each command changes, how it can end.

Built from the live commands, so it cannot disagree with them.
"""

import re
import types
import typing
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from ..program import PROGRAM
from .command_spec import CommandSpec
from .exit_status import category

_JSON_TYPES = {str: "string", int: "integer", float: "number", bool: "boolean", type(None): "null", dict: "object"}
_VALUE_TYPES = {int: "integer", float: "number", bool: "boolean", Path: "path"}
_METAVAR_TYPES = {"DURATION": "duration", "FILE": "path", "DIR": "path"}
_CHOICES = re.compile(r"[a-z]+(\|[a-z]+)+")


def describe_command(name: str, command: Any, usage: str) -> dict[str, Any]:
    spec: CommandSpec = command.spec
    return {
        "command": name,
        "usage": usage,
        "summary": (command.help or "").partition("\n")[0],
        "effect": spec.effect,
        "locks": list(spec.locks),
        "exit_statuses": {str(status): category(status) for status in spec.exit_statuses()},
        "error_codes": sorted({error.code for error in spec.own_errors()}),
        "arguments": [described for described in command.described if "flags" not in described],
        "options": [described for described in command.described if "flags" in described],
        "data": schema_of(typing.get_type_hints(command.callback).get("return")),
        "examples": [f"{PROGRAM} {example}" for example in spec.examples],
    }


def describe_params(params: list[Any], hints: Mapping[str, Any]) -> list[dict[str, Any]]:
    """What to write for each parameter, and what happens without it."""
    return [_describe_param(param, hints[param.name]) for param in params]


def _describe_param(param: Any, hint: Any) -> dict[str, Any]:
    """The type of the parser is left out: callers write text."""
    value, *declared = typing.get_args(hint) if typing.get_origin(hint) is typing.Annotated else (hint,)
    kind = _without_none_and_list(value)
    is_option = param.param_type_name == "option"
    is_flag = is_option and kind is bool
    metavar = param.metavar or ""
    choices = typing.get_args(kind) or (metavar.split("|") if _CHOICES.fullmatch(metavar) else ())
    several = "..." if param.nargs == -1 else ""
    written = ("N" if kind in (int, float) else "TEXT") if is_option else f"{param.name.upper()}{several}"
    is_parsed = any(getattr(each, "parser", None) for each in declared)
    value_type = "string" if is_parsed else _VALUE_TYPES.get(kind, "string")
    described = {
        "name": param.name,
        "flags": [*param.opts, *param.secondary_opts] if is_option else None,
        "type": "choice" if choices else _METAVAR_TYPES.get(metavar) or value_type,
        "choices": list(choices) or None,
        "minimum": next((each.min for each in declared if hasattr(each, "min")), None),
        "maximum": next((each.max for each in declared if hasattr(each, "max")), None),
        "default": None if is_flag or param.default in (None, "") else param.default,
        "metavar": None if is_flag else metavar or "|".join(choices) or written,
        "required": param.required,
        "repeatable": param.multiple or param.nargs == -1,
        "help": param.help,
    }
    return {key: value for key, value in described.items() if value is not None}


def _without_none_and_list(hint: Any) -> Any:
    """`list[str] | None` has values of `str`."""
    parts = [part for part in typing.get_args(hint) if part is not type(None)]
    if typing.get_origin(hint) in (typing.Union, types.UnionType):
        return _without_none_and_list(parts[0])
    return parts[0] if typing.get_origin(hint) is list else hint


def describe_errors(specs: Iterable[CommandSpec]) -> dict[str, Any]:
    """Every code that these commands can end with; the first line of its docstring says what it means."""
    errors = {error.code: error for spec in specs for error in reversed(spec.all_errors())}
    return {
        code: {
            "exit_status": error.exit_status,
            "retryable": error.retryable,
            "meaning": (error.__doc__ or "").partition("\n")[0],
        }
        for code, error in sorted(errors.items())
    }


def schema_of(kind: Any) -> dict[str, Any]:
    """The JSON schema of what a command returns, read from its members."""
    if names := getattr(kind, "_fields", None) or getattr(kind, "__dataclass_fields__", None):
        hints = typing.get_type_hints(kind)
        return {
            "type": "object",
            "properties": {name: schema_of(hints[name]) for name in names},
            "required": [name for name in names if type(None) not in typing.get_args(hints[name])],
        }
    origin, parts = typing.get_origin(kind), typing.get_args(kind)
    if origin in (list, tuple):
        return {"type": "array", "items": schema_of(parts[0])}
    if origin in (typing.Union, types.UnionType):
        some = [schema_of(part) for part in parts if part is not type(None)]
        return {"anyOf": some} if len(some) > 1 else some[0]
    if origin is typing.Literal:
        return {"enum": list(parts)}
    kind = origin or kind
    return {"type": _JSON_TYPES[kind]} if kind in _JSON_TYPES else {}
