"""Run git in one directory, whatever repository and settings the caller has."""

import os
import subprocess
from pathlib import Path

from ..kit.contract.errors import ProgramNotFound
from .errors import GitFailed

_KEPT_PREFIXES = ("GIT_AUTHOR_", "GIT_COMMITTER_", "GIT_CONFIG_", "GIT_EXEC_PATH")
"""The variables of git that stay. Any other can lead to the repository of the caller.

The caller may be a hook of git, which runs with GIT_DIR and GIT_INDEX_FILE.
"""

_SETTINGS = (
    "core.hooksPath=/dev/null",
    "core.excludesFile=/dev/null",
    "core.attributesFile=/dev/null",
    "core.autocrlf=false",
    "commit.gpgSign=false",
    # Otherwise, git invents an address from the names of the user and the machine.
    "user.useConfigOnly=true",
)
"""The settings of this run. Those of the user must not change the commit, or ask questions."""


def git(directory: Path, *arguments: str) -> str:
    """Run git, and return what it prints. Raise GitFailed, or ProgramNotFound without git."""
    command = ["git"]
    for setting in _SETTINGS:
        command += ["-c", setting]
    command += arguments
    try:
        completed = subprocess.run(
            command,
            cwd=directory,
            env=_environment(),
            capture_output=True,
            text=True,
            check=False,
        )
    except FileNotFoundError:
        raise ProgramNotFound(command="git", what="The first commit") from None
    if completed.returncode != 0:
        reason = completed.stderr.strip().rstrip(".")
        if not reason:
            reason = f"exit code {completed.returncode}"
        raise GitFailed(command=arguments[0], directory=str(directory), reason=reason)
    return completed.stdout


def _environment() -> dict[str, str]:
    """Return the environment without the variables that lead to another repository."""
    environment = {}
    for name, value in os.environ.items():
        if not name.startswith("GIT_") or name.startswith(_KEPT_PREFIXES):
            environment[name] = value
    return environment
