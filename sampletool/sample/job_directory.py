"""Prepare where the command of a job runs: its directory, and its environment variables.

Both contain only what the job has declared. So a command that reads something else by a relative
path fails, and cannot give a result that depends on something unknown.
"""

import os
from collections.abc import Iterable, Mapping
from pathlib import Path

from ..kit.context import Context
from ..kit.program import env_variable

_INHERITED_VARIABLES = frozenset(
    {"PATH", "HOME", "TMPDIR", "LANG", "LC_ALL", "TZ", "XDG_CONFIG_HOME", "XDG_STATE_HOME"}
)
"""The variables of the caller that a command gets, in addition to those of the tool."""


def create_job_directory(
    directory: Path,
    workspace: Path,
    inputs: Iterable[str],
    needs: Mapping[str, Path],
) -> None:
    """Create the directory of a job, with links to its inputs and to the outputs that it needs.

    Each input is at the same path as in the workspace. The outputs of a needed target are in
    `out/NAME`. `needs` has the directory of each, by its name.

    Raise FileExistsError if the directory exists already: then it belongs to another command.
    """
    os.mkdir(directory)
    for path in inputs:
        _link(directory / path, workspace / path)
    for name, outputs in needs.items():
        _link(directory / "out" / name, outputs)


def _link(link: Path, target: Path) -> None:
    os.makedirs(link.parent, exist_ok=True)
    os.symlink(target, link)


def job_environment(context: Context) -> dict[str, str]:
    """Return the environment variables that every command of a job gets.

    These are few: a variable that only one user has could change what is built.
    """
    # All variables of the tool itself begin with this, for example `TOOL_`.
    prefix_of_tool = env_variable("")
    environment = {}
    for name, value in os.environ.items():
        if name in _INHERITED_VARIABLES or name.startswith(prefix_of_tool):
            environment[name] = value
    environment[env_variable("WORKSPACE")] = str(context.workspace)
    environment[env_variable("SESSION_ID")] = context.session_id
    return environment
