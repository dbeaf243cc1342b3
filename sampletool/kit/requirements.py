"""Raise the requirements in pyproject.toml to those that a newer kit needs.

NEEDS.toml in the kit lists what it needs of the project. Only requirements are changed here. A
project that lacks a setting of NEEDS.toml fails one of the rules.
"""

import re
import tomllib
from dataclasses import dataclass

_PACKAGE_NAME = re.compile(r"[\w-]+")
"""The name at the beginning of a requirement: `pytest-xdist` in `pytest-xdist[psutil]>=3`."""


@dataclass(frozen=True)
class RaisedRequirements:
    """The new texts of both files, and what was changed in them."""

    pyproject: str
    """The text of pyproject.toml."""
    constraints: str
    """The text of constraints.txt, which pins the version of each package."""
    changes: list[str]
    """A sentence for each change."""


def raise_requirements(needs: str, pyproject: str, constraints: str) -> RaisedRequirements:
    """Add the requirements of NEEDS.toml to pyproject.toml, or replace those that differ.

    The parameters are the texts of NEEDS.toml, pyproject.toml and constraints.txt. A pin of a
    changed requirement is removed from constraints.txt, because it may contradict it.
    """
    changes = []
    for list_name, requirement in _needed_requirements(needs):
        if f'"{requirement}"' in pyproject:
            continue
        pyproject = _with_requirement(pyproject, list_name, requirement)
        changes.append(f"pyproject.toml: added {requirement}")
        name = _package_name(requirement)
        without_pin = re.sub(rf"^{name}==.*\n", "", constraints, flags=re.MULTILINE)
        if without_pin != constraints:
            constraints = without_pin
            changes.append(f"constraints.txt: removed the pin of {name}")
    return RaisedRequirements(pyproject, constraints, changes)


def _needed_requirements(needs: str) -> list[tuple[str, str]]:
    """Return each requirement of NEEDS.toml, after the name of the list that it belongs to."""
    document = tomllib.loads(needs)
    requirements = []
    for requirement in document["project"]["dependencies"]:
        requirements.append(("dependencies", requirement))
    for requirement in document["dependency-groups"]["dev"]:
        requirements.append(("dev", requirement))
    return requirements


def _with_requirement(pyproject: str, list_name: str, requirement: str) -> str:
    """Return the text of pyproject.toml with this requirement.

    It replaces the requirement on the same package. If there is none, it becomes the first one in
    the list with this name.
    """
    # "pytest>=7" or "pytest[extra] >= 7", but not "pytest-xdist>=3", which is another package.
    same_package = rf'"{_package_name(requirement)}(\[[^]"]*\])? *[<>=!~][^"]*"'
    replaced, count = re.subn(same_package, f'"{requirement}"', pyproject, count=1)
    if count == 1:
        return replaced
    # dependencies = [
    beginning_of_list = re.compile(rf"^{list_name} = \[", re.MULTILINE)
    return beginning_of_list.sub(rf'\g<0>\n    "{requirement}",', pyproject, count=1)


def _package_name(requirement: str) -> str:
    """Return the name of the required package, without extras and versions."""
    match = _PACKAGE_NAME.match(requirement)
    if match is None:
        raise ValueError(f"a requirement must begin with the name of a package: {requirement!r}")
    return match[0]
