"""Create the starter file of an exercise."""

import os
import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from ....kit.completion import offering
from ....kit.contract.command_spec import CommandSpec
from ....kit.contract.errors import InvalidValues, Mistake
from ....kit.contract.file_errors import OutputExists
from ....kit.contract.response import Effect
from ....kit.global_options import DryRunOption
from ....kit.program import PROGRAM
from ....kit.safety.atomic_file import create, read_regular
from ...errors import NoExercise, ScenarioNotFound
from ...starter_files import exercise_names, starter_file_name, starter_text

spec = CommandSpec(
    effect="outputs",
    errors=(NoExercise, ScenarioNotFound, OutputExists),
    examples=(
        "lab exercise lost-config-update",
        "lab exercise stale-lock --output mine.py",
    ),
)

_MAX_BYTES = 1024 * 1024
"""The largest existing file at the path that is compared with the starter file."""


@dataclass(frozen=True)
class Exercise:
    """The file that was created."""

    effect: Effect
    scenario: str
    output: str

    def lines(self) -> list[str]:
        """Return the result as text, with the next commands."""
        file = shlex.quote(os.path.relpath(self.output))
        return [
            f"{self.output}: {self.effect}",
            f"Find the schedule that breaks it: {PROGRAM} lab try {file}",
            "Then change the file until no schedule breaks.",
        ]


def command(
    ctx: typer.Context,
    name: Annotated[
        str | None,
        typer.Argument(
            help="A race with an exercise, such as lost-config-update.",
            autocompletion=offering(lambda _: exercise_names()),
        ),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="Write to FILE.  [default: the name of the race, with .py]"
        ),
    ] = None,
    dry_run: DryRunOption = False,
) -> Exercise:
    """Create a file with a bug for you to fix.

    The file contains a function with the bug, and a rule that the bug breaks. To look for an order
    of steps that breaks the rule, run `tool lab try FILE`. When it finds none, it exits with 0.

    A file that you have changed is never overwritten.
    """
    if name is None:
        hint = f"The exercises are {', '.join(exercise_names())}."
        raise InvalidValues(Mistake("NAME", "MISSING", "name an exercise", suggestion=hint))
    starter_file = starter_text(name).encode()
    if output is None:
        output = Path(starter_file_name(name))
    path = Path(os.path.realpath(output.parent, strict=True)) / output.name
    if not os.path.lexists(path):
        if not dry_run:
            create(path, starter_file)
        return Exercise(effect="created", scenario=name, output=str(path))
    if read_regular(path, _MAX_BYTES, follow=False) != starter_file:
        raise OutputExists(str(path), found="it has another text", suggestion=_hint(name, output))
    return Exercise(effect="unchanged", scenario=name, output=str(path))


def _hint(name: str, output: Path) -> str:
    """Return the hint for a learner whose file exists already, with commands to copy."""
    file = shlex.quote(str(output))
    other_file = shlex.quote(str(output.with_stem(f"{output.stem}_2")))
    return (
        f"To try your solution, run `{PROGRAM} lab try {file}`. To start again in another file, "
        f"run `{PROGRAM} lab exercise {name} --output {other_file}`."
    )
