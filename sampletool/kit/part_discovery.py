"""Find the parts of the program: the folders in its package, except the kit.

The kit knows no part by name. A part offers something by having a file or a folder with a name that
the kit looks for: `commands/`, `settings.py`, `errors.py`, `doctor.py`.
"""

import os
from collections.abc import Iterator
from functools import cache
from importlib import import_module
from types import ModuleType

from .program import KIT, KIT_DIRECTORY, PACKAGE, PACKAGE_DIRECTORY

KIT_FOLDER = "kit"
"""The folder in the package that is not a part, if the program contains the kit."""


@cache
def part_names() -> list[str]:
    """Return the names of all parts, sorted.

    A folder is a part if it has an `__init__.py`, and a name that a program can import. A hidden
    folder is not a part. Neither is the folder of a deleted part that still has a `__pycache__`.
    """
    names = []
    for name in sorted(os.listdir(PACKAGE_DIRECTORY)):
        if name != KIT_FOLDER and name.isidentifier() and _has(name, "__init__.py"):
            names.append(name)
    return names


def command_packages() -> list[str]:
    """Return the packages whose files are commands. The package of the kit is the first one."""
    packages = [f"{KIT}.commands"]
    for name in part_names():
        if _has(name, "commands"):
            packages.append(f"{PACKAGE}.{name}.commands")
    return packages


def directory_of(package: str) -> str:
    """Return the directory of a package of the kit or of a part, without importing it."""
    if package.startswith(f"{KIT}."):
        below_kit = package.removeprefix(f"{KIT}.")
        return f"{KIT_DIRECTORY}/{below_kit.replace('.', '/')}"
    below_package = package.removeprefix(f"{PACKAGE}.")
    return f"{PACKAGE_DIRECTORY}/{below_package.replace('.', '/')}"


def offered(module: str) -> Iterator[ModuleType]:
    """Yield the module with this name of each part that has one."""
    for name in part_names():
        if _has(name, f"{module}.py"):
            yield import_module(f"{PACKAGE}.{name}.{module}")


def _has(part: str, file: str) -> bool:
    """Return whether the folder of a part has this file or folder."""
    # Each command calls this several times, and pathlib would take three times as long.
    return os.path.exists(f"{PACKAGE_DIRECTORY}/{part}/{file}")
