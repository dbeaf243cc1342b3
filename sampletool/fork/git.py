"""Calls git in a directory, and in no other repository than the one that is there."""

import os
import subprocess
from pathlib import Path

from ..kit.contract.errors import ProgramNotFound
from .errors import GitFailed

_KEPT = ("GIT_AUTHOR_", "GIT_COMMITTER_", "GIT_CONFIG_", "GIT_EXEC_PATH")
"""Any other variable of git's may lead to the repository of the caller, which may be a hook of git."""
_NOWHERE = ("core.hooksPath", "core.excludesFile", "core.attributesFile")
_UNASKED = (*(f"{option}=/dev/null" for option in _NOWHERE), "core.autocrlf=false", "commit.gpgSign=false")
"""What a user has set for all repositories must not change the first commit, nor ask for a password."""


def git(directory: Path, *args: str, **environ: str) -> str:
    """What it prints. `environ` is set for this call besides the caller's."""
    own = {name: value for name, value in os.environ.items() if name.startswith(_KEPT) or not name.startswith("GIT_")}
    argv = ["git", *(word for option in _UNASKED for word in ("-c", option)), *args]
    try:
        ran = subprocess.run(argv, cwd=directory, env={**own, **environ}, capture_output=True, text=True, check=False)
    except FileNotFoundError:
        raise ProgramNotFound(command="git", what="The first commit") from None
    if ran.returncode != 0:
        reason = ran.stderr.strip().rstrip(".") or f"status {ran.returncode}"
        raise GitFailed(command=args[0], directory=str(directory), reason=reason)
    return ran.stdout
