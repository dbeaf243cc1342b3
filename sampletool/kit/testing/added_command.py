"""The real tool with one more command, `probe`, whose body a test writes."""

import sys
from textwrap import indent

from ..program import KIT, PACKAGE, PROGRAM
from ..stepping.forked_process import ForkedProcess
from .tool import Tool

_PROGRAM = """
import fcntl, os, signal, sys, types
from dataclasses import dataclass
from pathlib import Path
{before}
import {kit}.start
import typer
import {kit}.command_folder as folder
from {kit}.contract.command_spec import CommandSpec
from {kit}.safety import children as module, orphans
from {kit}.safety.children import Children

@dataclass(frozen=True)
class Result:
    said: object

    def lines(self):
        return [str(self.said)]

def command(ctx: typer.Context) -> Result:
    context = ctx.obj
{body}

probe = types.ModuleType("{kit}.commands.probe")
probe.spec, probe.command = CommandSpec(effect="nothing"), command
sys.modules[probe.__name__] = probe

names_in = folder._names_in

def names_with_probe(package):
    names = names_in(package)
    if package == "{kit}.commands":
        names = names + ["probe"]
    return names

folder._names_in = names_with_probe

sys.argv = ["{program}", "probe", *sys.argv[1:]]
sys.exit({kit}.start.main("{package}"))
"""


def added(body: str, *, before: str = "") -> list[str]:
    """Return the command line that runs the command in an interpreter of its own.

    `body` may use `context`, and may return a `Result`. `before` runs before any module of the tool
    is imported.
    """
    program = _PROGRAM.format(
        kit=KIT,
        package=PACKAGE,
        program=PROGRAM,
        before=before,
        body=indent(body, "    "),
    )
    return [sys.executable, "-c", program]


def start_added(tool: Tool, body: str, *args: str, before: str = "") -> ForkedProcess:
    """Start the command with these arguments in a forked process.

    When `before` runs there, all modules but kit/start.py are already imported.
    """
    _interpreter, *program = added(body, before=before)
    return tool.start(*args, program=program)
