"""The program that probe.py starts: the real tool with one more command, `probe`.

The body of the command is source, because the test that writes it runs in another process.
"""

# The bodies may use all names of this module. Ruff sees no use of some of them.
# ruff: noqa: F401

import fcntl
import os
import signal
import sys
from dataclasses import dataclass
from pathlib import Path
from textwrap import indent
from typing import Any, NoReturn

import typer

from .. import app, start
from ..command_folder import CommandFolder, FileCommand
from ..contract.command_spec import CommandSpec
from ..program import PACKAGE
from ..safety import orphans
from ..safety.children import Children
from ..typer_parameters import command_of


@dataclass(frozen=True)
class Result:
    """The result of `probe`."""

    said: object
    """The value that the test checks."""

    def lines(self) -> list[str]:
        """Return the result as text."""
        return [str(self.said)]


def run(body: str) -> NoReturn:
    """Run `probe` with the arguments of this process, then end the process.

    `body` is the body of the function that the command calls. The parameter is `context`.
    """
    names = globals()
    exec(f"def run_body(context):\n{indent(body, '    ')}", names)  # noqa: S102 - a test wrote it
    run_body = names["run_body"]

    def command(ctx: typer.Context) -> Result:
        """Run the body."""
        result: Result = run_body(ctx.obj)
        return result

    probe: FileCommand = command_of(command, FileCommand)
    probe.spec = CommandSpec(effect="nothing")
    real_root_command = app.root_command

    def root_command_with_probe() -> CommandFolder:
        """Return the command for the whole tool, which has `probe` among its commands."""
        root = real_root_command()
        root.add_command(probe, "probe")
        return root

    app.root_command = root_command_with_probe
    sys.argv = [sys.argv[0], "probe", *sys.argv[1:]]
    sys.exit(start.main(PACKAGE))
