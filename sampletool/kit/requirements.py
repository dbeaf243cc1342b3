"""Raise the requirements in pyproject.toml to those that a newer kit needs.

NEEDS.toml in the kit lists what it needs of the project. Only requirements are changed here. A
project that lacks a setting of NEEDS.toml fails one of the rules.
"""

import re
import tomllib
from dataclasses import dataclass

_NAME = re.compile(r"[\w-]+")


@dataclass(frozen=True)
class RaisedRequirements:
    """The new texts of both files, and what was changed in them."""

    project: str
    """The text of pyproject.toml."""
    pins: str
    """The text of constraints.txt."""
    changes: list[str]
    """A sentence for each change."""


def raise_requirements(needs: str, project: str, pins: str) -> RaisedRequirements:
    """Add the requirements of NEEDS.toml to pyproject.toml, or replace those that differ.

    A pin of a changed requirement is removed from constraints.txt, because it may contradict it.
    """
    changes = []
    for list_name, requirement in _needed_requirements(needs):
        if f'"{requirement}"' in project:
            continue
        project = _with_requirement(project, list_name, requirement)
        changes.append(f"pyproject.toml: added {requirement}")
        name = _name_of(requirement)
        without_pin = re.sub(rf"^{name}==.*\n", "", pins, flags=re.MULTILINE)
        if without_pin != pins:
            pins = without_pin
            changes.append(f"constraints.txt: removed the pin of {name}")
    return RaisedRequirements(project, pins, changes)


def _needed_requirements(needs: str) -> list[tuple[str, str]]:
    """Return each requirement of NEEDS.toml, with the name of the list that it belongs to."""
    document = tomllib.loads(needs)
    requirements = []
    for requirement in document["project"]["dependencies"]:
        requirements.append(("dependencies", requirement))
    for requirement in document["dependency-groups"]["dev"]:
        requirements.append(("dev", requirement))
    return requirements


def _with_requirement(project: str, list_name: str, requirement: str) -> str:
    """Return the text of pyproject.toml with a requirement, in the place of one with its name."""
    # A requirement may have extras in brackets. It has a version here, or the name of another
    # package would match, such as "pytest-xdist" for "pytest".
    same_package = rf'"{_name_of(requirement)}(\[[^]"]*\])? *[<>=!~][^"]*"'
    replaced, count = re.subn(same_package, f'"{requirement}"', project, count=1)
    if count == 1:
        return replaced
    beginning_of_list = re.compile(rf"^{list_name} = \[", re.MULTILINE)
    return beginning_of_list.sub(rf'\g<0>\n    "{requirement}",', project, count=1)


def _name_of(requirement: str) -> str:
    found = _NAME.match(requirement)
    if found is None:
        raise ValueError(f"a requirement must begin with the name of a package: {requirement!r}")
    return found[0]
