"""A command as a tool of the protocol: its name, its schemas, and its arguments as a command line.

Everything is made from what the manifest says of the command, so neither door can offer what the other has not.
"""

import json
import os
from functools import partial
from typing import Any, NamedTuple

from ..kit.app import root_command
from ..kit.commands.manifest import describe, find_commands
from ..kit.contract.errors import Mistake, UsageMistakes, did_you_mean
from ..kit.global_options import described_options
from ..kit.program import PROGRAM, env_variable

LONGEST = "10m"
"""A call ends after this long, unless it is given another time: nobody may be there to end it."""
_NOT_OFFERED = ("json", "format", "quiet", "verbose", "color", "help", "raw")
"""They are about text for people; here every answer is the JSON one."""
_LONGEST_BYTES = 128 * 1024 - 256
"""Of one argument of a process on Linux, with room for the name of an option."""


class Tool(NamedTuple):
    name: str
    described: dict[str, Any]
    """By the manifest."""
    parameters: dict[str, dict[str, Any]]
    """Arguments, options, and options that every command takes; by name."""

    @property
    def reads_only(self) -> bool:
        """What looks at the machine starts processes of its own."""
        return self.described["effect"] == "nothing" and "machine" not in self.described["reads"]

    def input_schema(self) -> dict[str, Any]:
        return {
            "type": "object",
            "properties": {name: _schema(param) for name, param in self.parameters.items()},
            "required": [name for name, param in self.parameters.items() if param["required"]],
            "additionalProperties": False,
        }

    def command_line(self, arguments: dict[str, Any]) -> list[str]:
        """Nothing in a value can be taken for an option: options are joined to theirs, the others follow `--`."""
        asked = {name: value for name, value in arguments.items() if (name, value) != ("timeout", None)}
        given = {"timeout": os.environ.get(env_variable("TIMEOUT")) or LONGEST} | asked
        mistakes = [_unknown(name, [*self.parameters]) for name in given if name not in self.parameters]
        options, operands = [], []
        for name, param in self.parameters.items():
            texts = _texts(param, given.get(name))
            if isinstance(texts, Mistake):
                mistakes.append(texts)
            elif "flags" not in param:
                operands += texts
            elif param["type"] == "boolean":
                options += param["flags"][:1] * (texts == ["true"])
            else:
                options += [f"{param['flags'][0]}={text}" for text in texts]
        command = self.described["command"]
        if mistakes:
            raise UsageMistakes(mistakes, f"{PROGRAM} {command}")
        return [*command.split(), "--format=jsonl", *options, "--", *operands]


def load_tools() -> dict[str, Tool]:
    """Every command whose stdout is its answer, and that needs no terminal, by its name.

    Imports them all, which takes half a second.
    """
    everywhere = {option["name"]: option for option in described_options()}
    everywhere["timeout"] = {**everywhere["timeout"], "default": LONGEST}
    tools = {}
    for command, found in find_commands(root_command()):
        parameters = {param["name"]: param for param in found.described} | everywhere
        offered = {name: param for name, param in parameters.items() if name not in _NOT_OFFERED}
        name = command.replace(" ", "_").replace("-", "_")
        if not found.spec.takes_stdout and not found.spec.needs_terminal:
            tools[name] = Tool(name, describe(command, found), offered)
    return tools


def _schema(param: dict[str, Any]) -> dict[str, Any]:
    kind = {"type": param["type"] if param["type"] in ("integer", "number", "boolean") else "string"}
    kind |= {name: param[name] for name in ("minimum", "maximum", "default") if name in param}
    if "choices" in param:
        kind["enum"] = param["choices"]
    description = ": ".join(filter(None, (param.get("metavar"), param.get("help"))))
    return {**({"type": "array", "items": kind} if param["repeatable"] else kind), "description": description}


def _texts(param: dict[str, Any], value: Any) -> list[str] | Mistake:
    """The value as words of a command line, or what is wrong with it, without the value: it may be a secret."""
    name, is_list = param["name"], isinstance(value, list)
    if value is None:
        return Mistake(name, "MISSING", f"{name} is missing") if param["required"] else []
    wrong = partial(Mistake, name, "INVALID_VALUE")
    if is_list != param["repeatable"]:
        problem, right = ("a list, not one value", '"..."') if is_list else ("not a list", '["..."]')
        return wrong(f"{name} is {problem}", suggestion=f"Write {right}.")
    values = value if is_list else [value]
    texts = [one if isinstance(one, str) else json.dumps(one) for one in values]
    if param["type"] == "boolean" and not isinstance(value, bool):
        return wrong(f"{name} is neither true nor false", suggestion="Write true or false.")
    if any(one is None or isinstance(one, (dict, list)) for one in values):
        return wrong(f"{name} is not a text", suggestion="Write it as a text, with JSON inside where JSON is meant.")
    if any("\0" in text or len(text.encode()) > _LONGEST_BYTES for text in texts):
        return wrong(f"{name} is longer than {_LONGEST_BYTES} bytes, or contains a NUL character")
    return texts


def _unknown(name: str, known: list[str]) -> Mistake:
    hint = did_you_mean(name, known) or f"There are {', '.join(known)}."
    return Mistake(name, "UNKNOWN_OPTION", f"There is no argument {name!r}", suggestion=hint)
