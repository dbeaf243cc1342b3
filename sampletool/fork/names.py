"""Decide whether a project and its command can have a name, and say what else has it.

A package that is called like another module hides it, so neither works. A command that is called
like a builtin of the shell never runs.
"""

import keyword
import os
import re
import sys
from collections.abc import Iterable

from ..kit.contract.errors import Mistake
from ..kit.program import PACKAGE, PROGRAM
from .choice import EXAMPLE_PART, Choice

_NAME = re.compile(r"[a-z](-?[a-z0-9]){0,39}")
"""Up to 40 letters and digits with single dashes in between, such as `acme-stock`."""

_PROJECT_DIRECTORIES = frozenset({"build", "dist", "docs", "kit", "tests"})

_SHELL_COMMANDS = """
alias bg break builtin case cd command continue do done echo esac eval exec exit export false fg fi
function jobs kill let local printf pwd read return select set shift source test then time trap true
type umask unset until wait
"""

_TOOLS = """
ci coverage git github hypothesis make mypy pip pyproject pytest python python3 ruff uv venv
"""
"""Programs in `.venv/bin`, and names of files that the command would take for its own.

If the command were `ruff`, its workspace file would be `ruff.toml`.
"""

_SUBCOMMANDS = """
add create delete help info init list ls new remove rm show status update upgrade version
"""
"""What people type after the name of a program. `tool fork` has no subcommands.

If you type `tool fork list`, you expect a list, and not a project called `list`.
"""


def mistakes_in_names(choice: Choice, constraints: str) -> list[Mistake]:
    """Return what is wrong with the names of the project and of its command.

    `constraints` is the text of constraints.txt, which pins the packages that a project installs.
    """
    owner = owner_of_package_name(choice.package, choice.parts, constraints)
    mistakes = _mistakes_in_name("NAME", choice.name, owner)
    if choice.command != choice.name:
        owner = owner_of_command_name(choice.command)
        mistakes += _mistakes_in_name("--command", choice.command, owner)
    return mistakes


def _mistakes_in_name(parameter: str, name: str, owner: str) -> list[Mistake]:
    """Return the mistake in one name, if any. `owner` is what else has the name, or ""."""
    if not _NAME.fullmatch(name):
        problem = f"Invalid name: {name!r}"
        hint = "Use lowercase letters, digits and single dashes, for example acme-stock."
        code = "INVALID_VALUE"
    elif owner:
        problem = f"The name {name} is taken: it is {owner}"
        hint = f"Choose another name, for example my-{name}."
        code = "NAME_TAKEN"
    else:
        return []
    return [
        Mistake(param=parameter, code=code, message=problem, value=name, suggestion=hint),
    ]


def owner_of_package_name(package: str, parts: Iterable[str], constraints: str) -> str:
    """Return what else has the name, such as "a keyword of Python". Return "" if nothing has it.

    `parts` are the parts of the new project besides the example.
    """
    owner = owner_of_command_name(package)
    if owner:
        return owner
    if package in sys.stdlib_module_names:
        return "a module of Python's standard library"
    if package == PACKAGE:
        return "the package of this tool"
    if package in _PROJECT_DIRECTORIES:
        return "a directory of every project"
    if package in _SUBCOMMANDS.split():
        return f"a subcommand of many programs, but `{PROGRAM} fork` has no subcommands"
    if package == EXAMPLE_PART or package in parts:
        return "a part of the new project"
    if package in _pinned_modules(constraints):
        return "a package that the new project installs"
    if package in installed_modules():
        return "an installed Python package"
    return ""


def owner_of_command_name(command: str) -> str:
    """Return what else has the name, or "" if nothing has it."""
    if keyword.iskeyword(command):
        return "a keyword of Python"
    if command in _SHELL_COMMANDS.split():
        return "a command of the shell"
    if command in _TOOLS.split():
        return "a development tool, or one of its files"
    return ""


def _pinned_modules(constraints: str) -> set[str]:
    """Return the modules that the packages in constraints.txt probably have.

    A line such as `pytest-xdist==3.8` pins the package with the module `pytest_xdist`.
    """
    package_names = re.findall(r"^[\w-]+", constraints, re.MULTILINE)
    return {name.replace("-", "_") for name in package_names}


def installed_modules() -> set[str]:
    """Return the names of all modules and packages in the directories of installed packages.

    Do not ask `importlib.metadata`: it reads the list of files of each package, which took 50 ms.
    """
    modules: set[str] = set()
    for folder in sys.path:
        try:
            names = os.listdir(folder)
        except OSError:
            # It is missing, it is a zip file, or it cannot be read. Python ignores it too.
            continue
        has_packages = any(name.endswith((".dist-info", ".egg-info")) for name in names)
        if has_packages:
            modules.update(name.partition(".")[0] for name in names)
    return modules
