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
    is_shown: bool = True
    """Whether the schema of the tool names it."""


def parameters_of(
    described: list[dict[str, Any]],
    common: list[dict[str, Any]],
    spec: CommandSpec,
) -> list[Parameter]:
    """Return the parameters of a tool.

    `described` is what the manifest says about the parameters of the command itself, `common` what
    it says about those of all commands.
    """
    parameters = []
    for description in described:
        name = description["name"]
        if name not in _ABOUT_OUTPUT:
            reads_stdin = name in spec.stdin_arguments
            is_shown = name not in _IN_INSTRUCTIONS
            parameters.append(
                _to_parameter(description, reads_stdin=reads_stdin, is_shown=is_shown)
            )
    for description in common:
        if description["name"] in _COMMON_TO_ALL_TOOLS:
            is_shown = _is_common_one_shown(description["name"], spec)
            parameters.append(_to_parameter(description, reads_stdin=False, is_shown=is_shown))
    return parameters


def _is_common_one_shown(name: str, spec: CommandSpec) -> bool:
    """Return whether the schema names a parameter that all tools take."""
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
    flags = [to_name(flag) for flag in description.get("flags", ()) if flag.startswith("--")]
    name = flags[0] if flags else description["name"]
    aliases = {description["name"], *flags} - {name}
    value_type = description["type"]
    if value_type not in ("integer", "number", "boolean"):
        value_type = "string"
    return Parameter(
        name=name,
        aliases=frozenset(aliases),
        flag=description["flags"][0] if flags else None,
        type=value_type,
        is_required=description["required"],
        is_list=description["repeatable"],
        reads_stdin=reads_stdin,
        schema=_schema(description, value_type),
        is_shown=is_shown,
    )


def to_name(flag: str) -> str:
    """Return the name of a parameter that a caller writes like an option: `--if-version`."""
    return flag.lstrip("-").replace("-", "_")


def _schema(description: dict[str, Any], value_type: str) -> dict[str, Any]:
    value: dict[str, Any] = {"type": value_type}
    for name in ("minimum", "maximum", "default"):
        if name in description:
            value[name] = description[name]
    if description["name"] == "timeout":
        value["default"] = DEFAULT_TIMEOUT
    if "choices" in description:
        value["enum"] = description["choices"]
    text = _without_stdin(description.get("help", ""))
    text = _SHORT_DESCRIPTIONS.get(description["name"], text)
    if description["repeatable"]:
        return {"type": "array", "items": value, "description": text}
    return {**value, "description": text}


def _without_stdin(text: str) -> str:
    """Return the text without sentences about stdin, which a tool cannot read."""
    sentences = _SENTENCE_END.split(text)
    return " ".join(sentence for sentence in sentences if "stdin" not in sentence)
