"""Read the option `--kit-from`: where a project gets the kit from, if it does not contain it."""

import os
import re
from pathlib import Path

from ..kit.program import PACKAGE

_VERSION = r"(?:===?|!=|~=|<=?|>=?) *[\w.*+!-]+"
"""One condition on the version, such as `>=0.3`."""

_INDEX_REQUIREMENT = re.compile(rf"{PACKAGE}(?: *{_VERSION}(?: *, *{_VERSION})*)?")
"""A package on an index, such as `sampletool` or `sampletool >=0.3, <1`."""

_URL = re.compile(r"(?:https?|file|git\+https?|git\+ssh)://[^\s\"'\\]+")
"""Such as `https://example.org/sampletool.whl` or `git+ssh://git@example.org/sampletool`."""


def requirement_of(kit_from: str, directory: Path) -> str:
    """Return the requirement on the kit that pyproject.toml has to list.

    `kit_from` is a requirement on an index (`sampletool>=0.3`), the URL of a wheel or of a
    repository, or the path of a wheel, relative to `directory`. Raise ValueError if it is none of
    these.
    """
    if _INDEX_REQUIREMENT.fullmatch(kit_from):
        return kit_from
    url = kit_from.removeprefix(f"{PACKAGE} @ ")
    if _URL.fullmatch(url):
        return f"{PACKAGE} @ {url}"
    if not kit_from.endswith(".whl"):
        message = f"{kit_from!r} is neither a requirement on {PACKAGE}, nor a URL, nor a wheel"
        raise ValueError(message)
    # Unlike Path.resolve(), this does not fail if two links lead to each other.
    wheel = Path(os.path.realpath(directory / kit_from))
    if not wheel.is_file():
        raise ValueError(f"{wheel} does not exist")
    return f"{PACKAGE} @ {wheel.as_uri()}"


def is_direct(requirement: str) -> bool:
    """Return whether the requirement names a place, and not only a package and its versions."""
    return " @ " in requirement
