"""The names of the program: its package, its command, and the names that are built from these two.

For a program `ledger` that has the kit in its own package:

* PACKAGE is `ledger`, the package in which Python finds the code of the program.
* KIT is `ledger.kit`. If the program depends on the kit, it is for example `sampletool.kit`.
* PROGRAM is the command that users type. The package names it: `PROGRAM = "ledger"`.

This is the only module of the kit that knows which package is the program. It finds out when it is
imported, and the names do not change after that:

1. An entry point names it before the import: `main(package="ledger")` in `ledger/__main__.py`.
2. Otherwise, the variable KIT_PACKAGE names it. It is for the processes that developers and tests
   start from a module of the kit, such as `python -m sampletool.kit.new_command`.
3. Otherwise, it is the package that contains the kit.
"""

import os

from . import package_of_program

__all__ = [
    "DOCUMENTATION",
    "KIT",
    "KIT_DIRECTORY",
    "PACKAGE",
    "PACKAGE_DIRECTORY",
    "PROGRAM",
    "WORKSPACE_DIRECTORY",
    "WORKSPACE_FILE",
    "__version__",
    "env_variable",
    "tracker_address",
]

KIT = __name__.removesuffix(".program")
"""The package of the kit, such as `sampletool.kit`. The program may be in another package."""

_CONTAINER = KIT.removesuffix(".kit")

PACKAGE = package_of_program or os.environ.get("KIT_PACKAGE") or _CONTAINER
"""The package of the program, such as `sampletool`."""

_package = __import__(PACKAGE)

PACKAGE_DIRECTORY = os.path.dirname(_package.__file__ or "")
"""The directory of the program's package."""

KIT_DIRECTORY = os.path.dirname(__file__)
"""The directory of the kit."""

PROGRAM: str = _package.PROGRAM
"""The name of the command, such as `tool`."""

__version__: str = _package.__version__
"""The version of the program."""

DOCUMENTATION: str = getattr(_package, "DOCUMENTATION", "")
"""The address of the documentation, or "" if the package does not name one."""

WORKSPACE_FILE = f"{PROGRAM}.toml"
"""The settings file of a workspace. A directory with this file is a workspace."""

WORKSPACE_DIRECTORY = f".{PROGRAM}"
"""The directory in a workspace that the tool uses for its own files, such as locks."""


def tracker_address() -> str:
    """Return the address of the issue tracker, or "" if the package does not name a repository."""
    repository: str = getattr(_package, "REPOSITORY", "")
    if not repository:
        return ""
    return f"{repository}/issues"


def env_variable(name: str) -> str:
    """Return the environment variable for a name.

    If the command is `acme`, the variable for `jobs` is ACME_JOBS.
    """
    return f"{PROGRAM}_{name}".upper().replace("-", "_")
