"""The parameters of a tool: those of the command, and those that all commands take.

A parameter has the name of its option: `--if-version` is `if_version`. An agent that knows the
command line may also write the option itself, or the name that the manifest has for it.
"""

import re
from dataclasses import dataclass, field
from typing import Any

from ..kit.contract.command_spec import CommandSpec

DEFAULT_TIMEOUT = "10m"
"""The time limit of a tool that gets no other one: the agent may never come back to stop it."""

_SENTENCE_END = re.compile(r"(?<=[.!?])\s+")

_SHORT_DESCRIPTIONS = {
    "cwd": "Run in this directory.",
    "session_id": "The same for all calls of one task.",
    "lock_timeout": "Wait this long for locks: 30s.",
    "timeout": "Stop after this long.",
    "dry_run": "Only show what would change.",
}
"""Parameters of many tools. Their texts are short, because the list of tools repeats them."""

_COMMON_TO_ALL_TOOLS = ("cwd", "session_id", "lock_timeout", "timeout")

_ONLY_FOR_CHANGES = ("session_id", "timeout")
"""A tool that only reads takes them too, but its schema does not name them, to save tokens."""

_IN_INSTRUCTIONS = ("store",)
"""Parameters that no schema names. The instructions of the server describe them."""

_ABOUT_OUTPUT = frozenset(
    {"json", "format", "fields", "quiet", "verbose", "color", "help", "raw", "allow_empty"}
)
"""Options that no tool has.

A tool always returns JSON. With `fields`, the response would not fit the schema of the tool, and
clients would refuse it. `allow_empty` is about stdin, which belongs to the protocol.
"""


@dataclass(frozen=True)
class Parameter:
    """A parameter of a tool."""

    name: str
    aliases: frozenset[str]
    """Other names that a caller may write."""
    flag: str | None
    """The option on the command line. It is None for an argument."""
    type: str
    """The type of one value, as JSON Schema calls it."""
    is_required: bool
    is_list: bool
    reads_stdin: bool
    """Whether `-` means stdin on the command line."""
    schema: dict[str, Any] = field(hash=False)
    is_shown: bool
    """Whether the schema of the tool names it."""


def parameters_of(
    own: list[dict[str, Any]],
    common: list[dict[str, Any]],
    spec: CommandSpec,
) -> list[Parameter]:
    """Return the parameters of the tool for a command.

    `own` are the parameters of the command itself, as the manifest describes them, and `common`
    those of all commands.
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
    """Return whether the schema of a tool names a parameter that all tools take."""
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
    """Return the parameter that the manifest describes so."""
    manifest_name = description["name"]
    flags = description.get("flags", [])
    long_names = [to_parameter_name(flag) for flag in flags if flag.startswith("--")]
    if long_names:
        # The manifest lists the long spelling of an option first.
        name = long_names[0]
        flag = flags[0]
    else:
        name = manifest_name
        flag = None
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
    """Return the name of a parameter that may be written like an option: `--if-version`."""
    return text.lstrip("-").replace("-", "_")


def _to_schema(description: dict[str, Any], value_type: str) -> dict[str, Any]:
    """Return the JSON Schema of a parameter that the manifest describes so."""
    name = description["name"]
    value_schema: dict[str, Any] = {"type": value_type}
    for keyword in ("minimum", "maximum", "default"):
        if keyword in description:
            value_schema[keyword] = description[keyword]
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
    """Return the text without the sentences about stdin, which a tool cannot read."""
    sentences = _SENTENCE_END.split(text)
    return " ".join(sentence for sentence in sentences if "stdin" not in sentence)
