"""The names of the tool: its package, its command, and the names that are built from these two.

This is the only module of the kit that knows in which package the kit is.
"""

import sys

from .. import PROGRAM, __version__

__all__ = [
    "DOCUMENTATION",
    "PACKAGE",
    "PROGRAM",
    "WORKSPACE_DIRECTORY",
    "WORKSPACE_FILE",
    "__version__",
    "env_variable",
    "tracker_address",
]

PACKAGE = __name__.removesuffix(".kit.program")
"""The package that contains the kit, such as `sampletool`."""

WORKSPACE_FILE = f"{PROGRAM}.toml"
"""The settings file of a workspace. A directory with this file is a workspace."""

WORKSPACE_DIRECTORY = f".{PROGRAM}"
"""The directory in a workspace that the tool uses for its own files, such as locks."""

DOCUMENTATION: str = getattr(sys.modules[PACKAGE], "DOCUMENTATION", "")
"""The address of the documentation, or "" if the package does not name one."""


def tracker_address() -> str:
    """Return the address of the issue tracker, or "" if the package does not name a repository."""
    repository: str = getattr(sys.modules[PACKAGE], "REPOSITORY", "")
    if not repository:
        return ""
    return f"{repository}/issues"


def env_variable(name: str) -> str:
    """Return the environment variable for a name.

    If the command is `acme`, the variable for `jobs` is ACME_JOBS.
    """
    return f"{PROGRAM}_{name}".upper().replace("-", "_")
