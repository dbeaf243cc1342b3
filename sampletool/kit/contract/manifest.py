"""The command tree as data: what can be asked for, what each command changes, how it can end.

Built from the live commands, so it cannot disagree with them.
"""

import re
import types
import typing
from collections.abc import Container
from dataclasses import fields, is_dataclass
from typing import Any

from ..program import PROGRAM
from .command_spec import CommandSpec
from .errors import ToolError

_JSON_TYPES = {str: "string", int: "integer", float: "number", bool: "boolean", type(None): "null", dict: "object"}
_PARAM_TYPES = {"int": "integer", "float": "number", "boolean": "boolean", "path": "path"}
_METAVAR_TYPES = {"DURATION": "duration", "FILE": "path", "DIR": "path"}
_CHOICES = re.compile(r"[a-z]+(\|[a-z]+)+")


def describe_command(name: str, command: Any, usage: str) -> dict[str, Any]:
    spec: CommandSpec = command.spec
    params = [(param.param_type_name, describe_param(param)) for param in command.params]
    return {
        "command": name,
        "usage": usage,
        "summary": (command.help or "").partition("\n")[0],
        "effect": spec.effect,
        "locks": list(spec.locks),
        "exit_statuses": {str(int(status)): status.category for status in spec.exit_statuses},
        "arguments": [described for kind, described in params if kind == "argument"],
        "options": [described for kind, described in params if kind == "option"],
        "data": schema_of(typing.get_type_hints(command.callback).get("return")),
        "examples": [f"{PROGRAM} {example}" for example in spec.examples],
    }


def describe_param(param: Any) -> dict[str, Any]:
    """What to write and what happens without it. How the value is parsed is not told: callers write text."""
    is_flag = getattr(param, "is_flag", False)
    written = param.metavar.split("|") if _CHOICES.fullmatch(param.metavar or "") else None
    choices = getattr(param.type, "choices", written)
    kind = _METAVAR_TYPES.get(param.metavar) or _PARAM_TYPES.get(param.type.name.removesuffix(" range"), "string")
    described = {
        "name": param.name,
        "flags": [*param.opts, *param.secondary_opts] if param.param_type_name == "option" else None,
        "type": "choice" if choices else kind,
        "choices": choices,
        "minimum": getattr(param.type, "min", None),
        "maximum": getattr(param.type, "max", None),
        "default": None if is_flag or param.default in (None, "") else param.default,
        "metavar": None if is_flag else param.metavar,
        "required": param.required,
        "repeatable": param.multiple or param.nargs == -1,
        "help": param.help,
    }
    return {key: value for key, value in described.items() if value is not None}


def describe_errors(statuses: Container[int], above: type[ToolError] = ToolError) -> dict[str, Any]:
    """The codes that go with these exit statuses: every error that has been imported is a class below this one."""
    found: dict[str, Any] = {}
    for kind in above.__subclasses__():
        status = int(getattr(kind, "exit_status", 128))
        if hasattr(kind, "code") and (status in statuses or status == 128):
            meaning = (kind.__doc__ or "").partition("\n")[0]
            found[kind.code] = {"exit_status": status, "retryable": kind.retryable, "meaning": meaning}
        found |= describe_errors(statuses, kind)
    return dict(sorted(found.items()))


def schema_of(kind: Any) -> dict[str, Any]:
    """The JSON schema of what a command returns, read from its dataclass."""
    if is_dataclass(kind):
        hints = typing.get_type_hints(kind)
        return {
            "type": "object",
            "properties": {field.name: schema_of(hints[field.name]) for field in fields(kind)},
            "required": [field.name for field in fields(kind) if not _may_be_absent(hints[field.name])],
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


def _may_be_absent(kind: Any) -> bool:
    return type(None) in typing.get_args(kind)
