"""The tools of a server. Each is a command, described by what the manifest says about it.

So a tool cannot offer anything that its command does not have.
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
"""Of a longer description, only the first paragraph is shown. The manifest has all of it."""


@dataclass(frozen=True)
class Tool:
    """A command as a tool."""

    name: str
    """The name of the command, such as config_set."""
    manifest: dict[str, Any]
    """What the manifest says about the command."""
    parameters: list[Parameter]

    @property
    def command(self) -> str:
        """The name of the command, such as `config set`."""
        command: str = self.manifest["command"]
        return command

    @property
    def reads_only(self) -> bool:
        """Whether the command may run in the process of the server.

        A command that examines the machine starts processes of its own.
        """
        return self.manifest["effect"] == "nothing" and "machine" not in self.manifest["reads"]

    @property
    def description(self) -> str:
        """What the command does, for an agent that chooses a tool."""
        text = f"{self.manifest['summary']} {self.manifest['help']}".strip()
        if len(text) > _MAX_DESCRIPTION_CHARACTERS:
            text = self.manifest["summary"]
        if self.manifest["destroys"]:
            text += f" Destroys: {self.manifest['destroys']}"
        return text

    @property
    def annotations(self) -> dict[str, bool]:
        """The hints of the protocol, by their names in the SDK.

        Hints that have the default of the protocol are left out. Of a tool that only reads, the
        protocol ignores `destructive_hint` and `idempotent_hint`.
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
        """Return the schema of the arguments."""
        return {
            "type": "object",
            "properties": {each.name: each.schema for each in self.parameters if each.is_shown},
            "required": [each.name for each in self.parameters if each.is_required],
        }

    def output_schema(self) -> dict[str, Any]:
        """Return the schema of the response."""
        return response_schema(self.manifest["data"])

    def command_line(self, arguments: dict[str, Any]) -> list[str]:
        """Return the command line that does what the arguments say.

        Raise UsageMistakes with all mistakes in the arguments.
        """
        timeout = os.environ.get(env_variable("TIMEOUT")) or DEFAULT_TIMEOUT
        given = {name: value for name, value in arguments.items() if value is not None}
        given.setdefault("timeout", timeout)
        words, mistakes = to_command_line(self.parameters, given)
        if mistakes:
            raise UsageMistakes(mistakes, f"{PROGRAM} {self.command}")
        return [*self.command.split(), *words]

    def translate_response(self, line: bytes) -> bytes:
        """Return a response with the tool's arguments in place of options in its error."""
        response = json.loads(line)
        if response["ok"]:
            return line
        response["error"] = translate_error(response["error"], self.parameters)
        return json_line(response)


def load_tools(*, only: Collection[str] = (), offer_all: bool = False) -> dict[str, Tool]:
    """Return the tools to offer, by their names.

    `only` and `offer_all` are those of `select_commands`. This imports all commands, which takes
    half a second.
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
    """Return whether a command can be a tool: it needs no terminal, and stdout is its own.

    If another program writes to its stdout, that program could forge the response.
    """
    return not spec.takes_stdout and not spec.needs_terminal
