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

KIT_FOLDER_NAME = "kit"
"""The folder in the package that is not a part, if the program contains the kit."""


@cache
def part_names() -> list[str]:
    """Return the names of all parts, sorted.

    A folder is a part if it has an `__init__.py`, and a name that a program can import. A hidden
    folder is not a part. Neither is the folder of a deleted part that still has a `__pycache__`.
    """
    names = []
    for name in sorted(os.listdir(PACKAGE_DIRECTORY)):
        is_package = name.isidentifier() and _exists_in_part(name, "__init__.py")
        if is_package and name != KIT_FOLDER_NAME:
            names.append(name)
    return names


def command_packages() -> list[str]:
    """Return the packages whose files are commands. The package of the kit is the first one."""
    packages = [f"{KIT}.commands"]
    for part in part_names():
        if _exists_in_part(part, "commands"):
            packages.append(f"{PACKAGE}.{part}.commands")
    return packages


def has_command(name: str) -> bool:
    """Return whether the program has a command of this name, outside of all groups."""
    directories = [directory_of(package) for package in command_packages()]
    return any(os.path.exists(f"{directory}/{name}.py") for directory in directories)


def directory_of(package: str) -> str:
    """Return the directory of a package in the kit or in a part, without importing it.

    `acme.stock.commands`, for example, is in the folder `stock/commands` of the program `acme`.
    """
    # The kit is a separate case: it can be installed outside of the program.
    if package.startswith(f"{KIT}."):
        parent_directory = KIT_DIRECTORY
        inner_package = package.removeprefix(f"{KIT}.")
    else:
        parent_directory = PACKAGE_DIRECTORY
        inner_package = package.removeprefix(f"{PACKAGE}.")
    inner_path = inner_package.replace(".", "/")
    return f"{parent_directory}/{inner_path}"


def offered(module: str) -> Iterator[ModuleType]:
    """Import and yield the module with this name, such as `settings`, of each part that has it."""
    for part in part_names():
        if _exists_in_part(part, f"{module}.py"):
            yield import_module(f"{PACKAGE}.{part}.{module}")


def _exists_in_part(part: str, name: str) -> bool:
    """Return whether the folder of a part contains a file or a folder with this name."""
    # Each command calls this several times, and pathlib would take three times as long.
    return os.path.exists(f"{PACKAGE_DIRECTORY}/{part}/{name}")
