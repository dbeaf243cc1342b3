"""What the user wants of a new project."""

from dataclasses import dataclass
from typing import Literal

KitSource = Literal["vendored", "dependency"]
"""Whether the project contains a copy of the kit, or depends on the package that has the kit."""

CiService = Literal["github", "none"]
"""The service that runs the checks of the project."""

DEFAULT_AUTHOR = "The maintainers"
DEFAULT_DESCRIPTION = "Does one thing, for many at once"

EXAMPLE_PART = "inventory"
"""The part of the template that shows how to write commands."""


@dataclass(frozen=True)
class Choice:
    """The options of `tool fork`."""

    name: str
    """The name of the project, such as `acme-stock`."""
    command: str
    """What users type, such as `stock`."""
    parts: frozenset[str]
    """The parts that come along."""
    author: str
    description: str
    license_holder: str
    repository: str
    """The address of the repository, or "" if it is not known yet."""
    documentation: str
    """The address of the documentation, or ""."""
    ci: CiService
    kit: KitSource
    kit_requirement: str
    """The requirement in pyproject.toml that brings the kit, or "" if the project contains it."""

    @property
    def package(self) -> str:
        """The name of the package, such as `acme_stock`."""
        return self.name.replace("-", "_")
