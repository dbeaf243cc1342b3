"""The parameters of a tool, which are created from the parameters of its command in the manifest.

Each parameter is named after its option: `--if-version` becomes `if_version`. Agents that know the
command line may also use the option itself as the name, or the name in the manifest.
"""

import re
from dataclasses import dataclass, field
from typing import Any

from ..kit.contract.command_spec import CommandSpec

DEFAULT_TIMEOUT = "10m"
"""The default time limit. Without a limit, a tool could run permanently after its agent is gone."""

_SENTENCE_END = re.compile(r"(?<=[.!?])\s+")

_SHORT_DESCRIPTIONS = {
    "cwd": "Run in this directory.",
    "session_id": "The same for all calls of one task.",
    "lock_timeout": "Wait this long for locks: 30s.",
    "timeout": "Stop after this long.",
    "dry_run": "Only show what would change.",
}
"""Descriptions that replace the help of the option.

Many tools have these parameters, so their descriptions are often repeated in the list of tools.
They are short to save tokens.
"""

_COMMON_TO_ALL_TOOLS = ("cwd", "session_id", "lock_timeout", "timeout")
"""The global options that every tool takes as parameters."""

_ONLY_FOR_CHANGES = ("session_id", "timeout")
"""Read-only tools take these parameters, too, but their schemas leave them out to save tokens."""

_IN_INSTRUCTIONS = ("store",)
"""Parameters that all schemas leave out, because the instructions of the server describe them."""

_ABOUT_OUTPUT = frozenset(
    {"json", "format", "fields", "quiet", "verbose", "color", "help", "raw", "allow_empty"}
)
"""Options that are not offered as parameters, because the response of a tool is always full JSON.

With `fields`, a response would lack members that the schema of the tool describes, and clients
would reject it. `allow_empty` is about stdin, which a tool cannot use.
"""


@dataclass(frozen=True)
class Parameter:
    """A parameter of a tool, and how it is passed on the command line."""

    name: str
    aliases: frozenset[str]
    """Other names that a client may use for the parameter."""
    flag: str | None
    """The option on the command line, or None if it is a positional argument."""
    type: str
    """The type of one value in JSON Schema, such as "string"."""
    is_required: bool
    is_list: bool
    """Whether the parameter takes a list of values."""
    reads_stdin: bool
    """Whether the value `-` makes the command read stdin."""
    schema: dict[str, Any] = field(hash=False)
    is_shown: bool
    """Whether the schema of the tool contains the parameter. If not, clients may still use it."""


def parameters_of(
    own: list[dict[str, Any]],
    common: list[dict[str, Any]],
    spec: CommandSpec,
) -> list[Parameter]:
    """Return the parameters of the tool for a command.

    `own` and `common` are descriptions from the manifest: `own` of the parameters of this command,
    and `common` of the options of all commands.
    """
    parameters = []
    for description in own:
        name = description["name"]
        if name in _ABOUT_OUTPUT:
            continue
        parameter = _to_parameter(
            description,
            reads_stdin=name in spec.stdin_arguments,
            is_shown=name not in _IN_INSTRUCTIONS,
        )
        parameters.append(parameter)
    for description in common:
        name = description["name"]
        if name not in _COMMON_TO_ALL_TOOLS:
            continue
        parameter = _to_parameter(
            description,
            reads_stdin=False,
            is_shown=_is_common_parameter_shown(name, spec),
        )
        parameters.append(parameter)
    return parameters


def _is_common_parameter_shown(name: str, spec: CommandSpec) -> bool:
    """Return whether the schema of a tool contains this parameter, which all tools take.

    To save tokens, a schema leaves out a parameter that is rarely useful for the tool. The tool
    takes the parameter nevertheless, as the instructions of the server say.
    """
    if name in _ONLY_FOR_CHANGES:
        return spec.effect != "nothing"
    if name == "lock_timeout":
        return bool(spec.locks)
    return True


def _to_parameter(
    description: dict[str, Any],
    *,
    reads_stdin: bool,
    is_shown: bool,
) -> Parameter:
    """Create a parameter from its description in the manifest."""
    manifest_name = description["name"]
    flags = description.get("flags", [])
    long_names = [to_parameter_name(flag) for flag in flags if flag.startswith("--")]
    if long_names:
        # `flags` begins with the long name of the option, such as --timeout. Short names and
        # further long names follow.
        name = long_names[0]
        flag = flags[0]
    else:
        name = manifest_name
        flag = None
    # The manifest has further types, such as "path". JSON Schema does not know them.
    value_type = description["type"]
    if value_type not in ("integer", "number", "boolean"):
        value_type = "string"
    return Parameter(
        name=name,
        aliases=frozenset({manifest_name, *long_names} - {name}),
        flag=flag,
        type=value_type,
        is_required=description["required"],
        is_list=description["repeatable"],
        reads_stdin=reads_stdin,
        schema=_to_schema(description, value_type),
        is_shown=is_shown,
    )


def to_parameter_name(text: str) -> str:
    """Return `if_version` for `--if-version`. The name of a parameter stays the same."""
    return text.lstrip("-").replace("-", "_")


def _to_schema(description: dict[str, Any], value_type: str) -> dict[str, Any]:
    """Return the JSON Schema of a parameter.

    `description` is the description of the parameter in the manifest, and `value_type` the type of
    one value in JSON Schema.
    """
    name = description["name"]
    value_schema: dict[str, Any] = {"type": value_type}
    for keyword in ("minimum", "maximum", "default"):
        if keyword in description:
            value_schema[keyword] = description[keyword]
    # On the command line, there is no time limit by default.
    if name == "timeout":
        value_schema["default"] = DEFAULT_TIMEOUT
    if "choices" in description:
        value_schema["enum"] = description["choices"]
    text = _SHORT_DESCRIPTIONS.get(name)
    if text is None:
        text = _without_stdin(description.get("help", ""))
    if description["repeatable"]:
        return {"type": "array", "items": value_schema, "description": text}
    return {**value_schema, "description": text}


def _without_stdin(text: str) -> str:
    """Return a help text without its sentences about stdin, because a tool cannot read stdin."""
    sentences = _SENTENCE_END.split(text)
    return " ".join(sentence for sentence in sentences if "stdin" not in sentence)
