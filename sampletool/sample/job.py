"""A target or a check: a command, and everything that it may see."""

import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from ..kit.program import WORKSPACE_DIRECTORY

OWN_PLACES = (WORKSPACE_DIRECTORY, "out")
"""The directories of the tool in a workspace. They contain no inputs."""

Kind = Literal["target", "check"]


@dataclass(frozen=True)
class Job:
    """A target or a check. Only a target has outputs."""

    name: str
    run: tuple[str, ...] = ()
    """The command, as a list of arguments."""
    inputs: tuple[str, ...] = ()
    """The paths of input files in the workspace, and patterns such as `src/*.c`."""
    outputs: tuple[str, ...] = ()
    """The files and directories that the command creates."""
    needs: tuple[str, ...] = ()
    """The names of the targets whose outputs the command reads."""
    env: dict[str, str] = field(default_factory=dict)
    """Environment variables of the command."""

    def find_inputs(self, workspace: Path) -> set[str]:
        """Return the paths of the input files, relative to the workspace.

        Raise ValueError if a pattern matches no file.
        """
        inputs: set[str] = set()
        for pattern in self.inputs:
            files = _find_files(workspace, pattern)
            if not files:
                raise ValueError(_why_no_file_matches(workspace, pattern))
            inputs |= files
        return inputs


def _find_files(workspace: Path, pattern: str) -> set[str]:
    """Return the files that match a pattern, except for those in the directories of the tool."""
    files = set()
    for path in _find_paths(workspace, pattern):
        name = os.path.relpath(path, workspace)
        top = name.split(os.sep)[0]
        if top not in OWN_PLACES and path.is_file():
            files.add(name)
    return files


def _find_paths(workspace: Path, pattern: str) -> list[Path]:
    """Return the files and directories that match a pattern."""
    path = workspace / pattern
    # The name of a file can look like a pattern, for example `notes[1].txt`.
    if path.is_file():
        return [path]
    if pattern.split("/")[-1] == "**":
        # Before Python 3.13, `**` at the end of a pattern matches only directories.
        pattern = f"{pattern}/*"
    return list(workspace.glob(pattern))


def _why_no_file_matches(workspace: Path, pattern: str) -> str:
    if (workspace / pattern).is_dir():
        return f"the input {pattern!r} is a directory: write {f'{pattern}/**'!r}"
    return f"the input {pattern!r} matches no file"
