"""The tools of a server. Each tool runs one command.

The name, the description and the schemas of a tool are created from the manifest of its command. So
they always agree with the command.
"""

import json
import os
from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

from ..kit.app import root_command
from ..kit.commands.manifest import describe, find_commands
from ..kit.contract.command_spec import CommandSpec
from ..kit.contract.errors import UsageMistakes
from ..kit.contract.response import json_line
from ..kit.global_options import described_options
from ..kit.program import PROGRAM, env_variable
from .arguments import to_command_line
from .hints import translate_error
from .parameters import DEFAULT_TIMEOUT, Parameter, parameters_of
from .response_schema import response_schema
from .selection import select_commands

_MAX_DESCRIPTION_CHARACTERS = 330
"""A longer description is replaced by its first paragraph, because descriptions cost tokens.

The manifest contains the full text.
"""


@dataclass(frozen=True)
class Tool:
    """A tool, which runs one command."""

    name: str
    """The name of the tool, such as config_set for the command `config set`."""
    manifest: dict[str, Any]
    """The description of the command in the manifest."""
    parameters: list[Parameter]

    @property
    def command(self) -> str:
        """The name of the command, such as `config set`."""
        command: str = self.manifest["command"]
        return command

    @property
    def reads_only(self) -> bool:
        """Whether the command changes nothing, and may run in the process of the server.

        A command that examines the machine must not run there, because it starts processes.
        """
        return self.manifest["effect"] == "nothing" and "machine" not in self.manifest["reads"]

    @property
    def description(self) -> str:
        """The description of the tool, which tells an agent when to use it."""
        text = f"{self.manifest['summary']} {self.manifest['help']}".strip()
        if len(text) > _MAX_DESCRIPTION_CHARACTERS:
            text = self.manifest["summary"]
        if self.manifest["destroys"]:
            text += f" Destroys: {self.manifest['destroys']}"
        return text

    @property
    def annotations(self) -> dict[str, bool]:
        """The hints about the effects of a tool that MCP defines, by their names in the SDK.

        Hints that would only repeat the default of MCP are left out. MCP ignores `destructive_hint`
        and `idempotent_hint` for a tool that only reads.
        """
        # A program that the caller chooses can destroy anything, and reach any server.
        runs_any_program = self.manifest["runs_what_it_is_given"]
        hints = {"open_world_hint": runs_any_program}
        if self.manifest["effect"] == "nothing" and not runs_any_program:
            hints["read_only_hint"] = True
            return hints
        hints["destructive_hint"] = bool(self.manifest["destroys"]) or runs_any_program
        if self.manifest["idempotent"]:
            hints["idempotent_hint"] = True
        return hints

    def input_schema(self) -> dict[str, Any]:
        """Return the JSON Schema of the arguments."""
        return {
            "type": "object",
            "properties": {each.name: each.schema for each in self.parameters if each.is_shown},
            "required": [each.name for each in self.parameters if each.is_required],
        }

    def output_schema(self) -> dict[str, Any]:
        """Return the JSON Schema of the response."""
        return response_schema(self.manifest["data"])

    def command_line(self, arguments: dict[str, Any]) -> list[str]:
        """Return the command line for a call of the tool with these arguments.

        Raise UsageMistakes, which lists all mistakes in the arguments, if there are any.
        """
        timeout = os.environ.get(env_variable("TIMEOUT")) or DEFAULT_TIMEOUT
        given = {name: value for name, value in arguments.items() if value is not None}
        given.setdefault("timeout", timeout)
        words, mistakes = to_command_line(self.parameters, given)
        if mistakes:
            raise UsageMistakes(mistakes, f"{PROGRAM} {self.command}")
        return [*self.command.split(), *words]

    def translate_response(self, line: bytes) -> bytes:
        """Return a response in which the error names arguments of the tool, rather than options.

        Other responses stay as they are.
        """
        response = json.loads(line)
        if response["ok"]:
            return line
        response["error"] = translate_error(response["error"], self.parameters)
        return json_line(response)


def load_tools(*, only: Collection[str] = (), offer_all: bool = False) -> dict[str, Tool]:
    """Return the tools that a server offers, by their names.

    `only` and `offer_all` have the same meaning as in `select_commands`. This function takes half a
    second, because it imports all commands.
    """
    possible_commands = {}
    for name, command in find_commands(root_command()):
        if _can_be_tool(command.spec):
            possible_commands[name] = command
    tools = {}
    for name, command in select_commands(possible_commands, only, offer_all=offer_all).items():
        tool_name = name.replace(" ", "_").replace("-", "_")
        tools[tool_name] = Tool(
            name=tool_name,
            manifest=describe(name, command),
            parameters=parameters_of(
                command.described,
                described_options(),
                command.spec,
            ),
        )
    return tools


def _can_be_tool(spec: CommandSpec) -> bool:
    """Return whether a command can be a tool.

    A command that needs a terminal cannot, because a server has none. Neither can a command that
    lets another program write to its stdout, because that program could forge the response.
    """
    return not spec.takes_stdout and not spec.needs_terminal
