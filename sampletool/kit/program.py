"""The names that all others are made from: those of the package that the kit lies in, and of its command."""

import sys

from .. import PROGRAM, __version__

__all__ = ["DOCUMENTATION", "PACKAGE", "PROGRAM", "WORKSPACE_DIRECTORY", "WORKSPACE_FILE", "__version__", "variable"]

PACKAGE = __name__.removesuffix(".kit.program")
WORKSPACE_FILE = f"{PROGRAM}.toml"
WORKSPACE_DIRECTORY = f".{PROGRAM}"

DOCUMENTATION: str = getattr(sys.modules[PACKAGE], "DOCUMENTATION", "")
"""The address of the documentation, or "" if the package does not name one."""


def variable(name: str) -> str:
    """The environment variable of this name: `jobs` is ACME_JOBS where the command is `acme`."""
    return f"{PROGRAM}_{name}".upper().replace("-", "_")
