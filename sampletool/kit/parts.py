"""Which parts there are: the folders beside the kit. The kit knows none of them by name.

What a part may offer, by the name of the file: `commands/`, `settings.py`, `doctor.py`.
"""

import os
from collections.abc import Iterator
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

from .program import PACKAGE

_PACKAGE_FOLDER = Path(__file__).parents[1]
_KIT = Path(__file__).parent.name


@cache
def part_names() -> list[str]:
    """In the order of their names. A folder without an `__init__.py` is no part."""
    names = [entry.name for entry in os.scandir(_PACKAGE_FOLDER) if entry.is_dir() and entry.name != _KIT]
    return sorted(name for name in names if (_PACKAGE_FOLDER / name / "__init__.py").is_file())


def command_packages() -> list[str]:
    """The packages whose files are commands, the kit's first."""
    own = [f"{PACKAGE}.{name}.commands" for name in part_names() if (_PACKAGE_FOLDER / name / "commands").is_dir()]
    return [f"{PACKAGE}.{_KIT}.commands", *own]


def offered(file: str) -> Iterator[Any]:
    """The module of this name of each part that has one."""
    for name in part_names():
        if (_PACKAGE_FOLDER / name / f"{file}.py").is_file():
            yield import_module(f"{PACKAGE}.{name}.{file}")
