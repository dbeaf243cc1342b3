"""Create a small workspace that builds, tests and has data to process."""

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from ...kit.context import PATIENT_WAIT_SECONDS, Context
from ...kit.contract.command_spec import CommandSpec
from ...kit.contract.file_errors import OutputExists
from ...kit.contract.mistyped import check_path
from ...kit.contract.response import Effect
from ...kit.global_options import DryRunOption, checked_by
from ...kit.program import WORKSPACE_FILE
from ...kit.safety.atomic_file import create, sweep
from ...kit.safety.errors import UnsafePath
from ..new_directory import check_writable, refuse_wide_directory
from ..output import lock_path

spec = CommandSpec(
    effect="files",
    errors=(OutputExists,),
    locks=("output",),
    examples=("init demo",),
)

_EXAMPLE = Path(__file__).parents[1] / "example"

_MARK_OF_PART = re.compile(rb" <!-- \w+ -->$", re.MULTILINE)
"""The end of a line that a project without this part does not have. It is for no reader."""


@dataclass(frozen=True)
class Created:
    """The workspace, and whether the command has created it."""

    effect: Effect
    """"created" if a file was missing, or "unchanged" if the directory had all of them."""

    directory: str
    files: list[str]
    """The paths of all files of the workspace, relative to the directory."""

    def lines(self) -> list[str]:
        """Return the text that a person reads: what happened, and what to do next."""
        if self.effect == "created":
            message = f"Created a workspace with {len(self.files)} files in {self.directory}."
        else:
            message = f"{self.directory} already contains the example workspace."
        return [f"{message} To see what to try, read TRY.md there."]


def create_workspace(context: Context, directory: Path, *, dry_run: bool) -> Created:
    """Create the files of the example. Raise OutputExists if something else is in their place.

    A file that has the right content already stays. So after a command that was killed, run it
    again.
    """
    contents = _example_files()
    missing = _find_missing_files(directory, contents)
    if dry_run and missing:
        check_writable(directory)
    elif not dry_run:
        missing = _create_missing_files(context, directory, contents)
    return Created("created" if missing else "unchanged", str(directory), list(contents))


def _example_files() -> dict[str, bytes]:
    """Return the content of each file by its path in the workspace, in the order to create them."""
    contents = {}
    for path in sorted(_EXAMPLE.rglob("*")):
        if path.is_file() and "__pycache__" not in path.parts:
            name = str(path.relative_to(_EXAMPLE))
            contents[name] = _MARK_OF_PART.sub(b"", path.read_bytes())
    # The workspace file comes last: a directory that has it has the other files, too.
    workspace_file = contents.pop(WORKSPACE_FILE)
    return {**contents, WORKSPACE_FILE: workspace_file}


def _find_missing_files(directory: Path, contents: Mapping[str, bytes]) -> set[str]:
    """Return the files that do not exist yet. Raise OutputExists if something is in the way."""
    in_the_way = _find_obstacles(directory, contents)
    if in_the_way:
        found = f"{', '.join(in_the_way)} is in the way"
        hint = "Choose an empty or a new directory."
        raise OutputExists(str(directory), found=found, suggestion=hint)
    return {name for name in contents if not os.path.lexists(directory / name)}


def _find_obstacles(directory: Path, contents: Mapping[str, bytes]) -> list[str]:
    """Return the paths at which there is something other than a file or directory of ours."""
    if os.path.lexists(directory) and not directory.is_dir():
        return ["."]
    obstacles = set()
    for name, content in contents.items():
        parent = os.path.dirname(name)
        if parent != "" and not _is_free_or_directory(directory / parent):
            obstacles.add(parent)
        elif not _is_free_or_has_content(directory / name, content):
            obstacles.add(name)
    return sorted(obstacles)


def _is_free_or_directory(path: Path) -> bool:
    """Return whether files can be created in this directory. A link could lead anywhere."""
    if not os.path.lexists(path):
        return True
    return path.is_dir() and not path.is_symlink()


def _is_free_or_has_content(path: Path, content: bytes) -> bool:
    """Return whether there is nothing at this path, or a file with this content."""
    if not os.path.lexists(path):
        return True
    return path.is_file() and not path.is_symlink() and path.read_bytes() == content


def _create_missing_files(
    context: Context,
    directory: Path,
    contents: Mapping[str, bytes],
) -> set[str]:
    """Create the files that do not exist yet, and return their paths in the workspace."""
    directory.mkdir(parents=True, exist_ok=True)
    lock = lock_path(directory / WORKSPACE_FILE)
    with context.hold(lock, f"output {directory}", "exclusive", PATIENT_WAIT_SECONDS):
        # Another command may have created some of them while this one waited for the lock.
        missing = _find_missing_files(directory, contents)
        for name, content in contents.items():
            path = directory / name
            path.parent.mkdir(exist_ok=True)
            # A command that was killed may have left a temporary file.
            sweep(path)
            if name in missing:
                create(path, content)
    return missing


def command(
    ctx: typer.Context,
    directory: Annotated[
        str,
        typer.Argument(
            metavar="[DIR]",
            callback=checked_by(check_path),
            help="Directory of the workspace. It is created if it does not exist.",
        ),
    ] = ".",
    force: Annotated[
        bool,
        typer.Option(
            "--force",
            help="Create the workspace even in the root directory or your home directory.",
        ),
    ] = False,
    dry_run: DryRunOption = False,
) -> Created:
    """Create a small workspace to try things in.

    The workspace contains targets, checks and data, and the files explain what to try. It needs
    nothing but Python. Existing files are never replaced.
    """
    context: Context = ctx.obj
    is_name = directory.isprintable() and not os.path.basename(directory).startswith("-")
    if not directory or not is_name:
        raise UnsafePath(directory, "it is not a name for a directory")
    path = context.cwd / directory
    if not force:
        refuse_wide_directory(path)
    return create_workspace(context, path, dry_run=dry_run)
