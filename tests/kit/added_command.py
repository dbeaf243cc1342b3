"""The real tool with one command more, which is made by a test."""

import sys
from textwrap import indent

from sampletool.kit.stepping.forked_process import ForkedProcess
from sampletool.kit.testing.tool import Tool

_PROGRAM = """
import fcntl, os, signal, sys, types
from dataclasses import dataclass
from pathlib import Path
{before}
import sampletool.kit.start
import typer
import sampletool.kit.command_folder as folder
from sampletool.kit.contract.command_spec import CommandSpec
from sampletool.kit.safety import children as module, orphans
from sampletool.kit.safety.children import Children

@dataclass(frozen=True)
class Result:
    said: object
    def lines(self): return [str(self.said)]

def command(ctx: typer.Context) -> Result:
    context = ctx.obj
{body}

probe = types.ModuleType("sampletool.kit.commands.probe")
probe.spec, probe.command = CommandSpec(effect="nothing"), command
sys.modules[probe.__name__] = probe
names = folder._names_in
folder._names_in = lambda package: names(package) + ["probe"] * (package == "sampletool.kit.commands")
sys.argv = ["tool", "probe"]
sys.exit(sampletool.kit.start.main())
"""


def added(body: str, *, before: str = "") -> list[str]:
    """Return the command line of an interpreter of its own. `body` sees `context` and returns a `Result`.

    `before` runs before anything of ours is imported.
    """
    return [sys.executable, "-c", _PROGRAM.format(before=before, body=indent(body, "    "))]


def start_added(tool: Tool, body: str, *, before: str = "") -> ForkedProcess:
    """Start the same in a forked process, where all but kit/start.py is imported when `before` runs."""
    _interpreter, *program = added(body, before=before)
    return tool.start(program=program)
