"""Calls git in a directory, and in no other repository than the one that is there."""

import os
import subprocess
from pathlib import Path

from sampletool.fork.errors import GitFailed
from sampletool.kit.contract.errors import ProgramNotFound

_OF_ANOTHER = ("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_PREFIX", "GIT_OBJECT_DIRECTORY", "GIT_COMMON_DIR")
"""Set where git itself runs the call, in a hook: they would lead to the caller's repository."""
_UNASKED = ("core.hooksPath=/dev/null", "core.excludesFile=/dev/null", "commit.gpgSign=false")
"""What a user has set for all repositories must not change the first commit, nor ask for a password."""


def git(directory: Path, *args: str, **environ: str) -> str:
    """What it prints. `environ` is set for this call besides the caller's."""
    own = {name: value for name, value in os.environ.items() if name not in _OF_ANOTHER}
    argv = ["git", *(word for option in _UNASKED for word in ("-c", option)), *args]
    try:
        ran = subprocess.run(argv, cwd=directory, env={**own, **environ}, capture_output=True, text=True, check=False)
    except FileNotFoundError:
        raise ProgramNotFound(command="git", what="The first commit") from None
    if ran.returncode != 0:
        reason = ran.stderr.strip().rstrip(".") or f"status {ran.returncode}"
        raise GitFailed(command=args[0], directory=str(directory), reason=reason)
    return ran.stdout
