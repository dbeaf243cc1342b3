"""Read the option `--kit-from`: where a project gets the kit from, if it does not contain it."""

import re
from pathlib import Path

from ..kit.program import PACKAGE

_VERSION = r"(?:===?|!=|~=|<=?|>=?) *[\w.*+!-]+"
_INDEX_REQUIREMENT = re.compile(rf"{PACKAGE}(?: *{_VERSION}(?: *, *{_VERSION})*)?")
_ADDRESS = re.compile(r"(?:https?|file|git\+https?|git\+ssh)://[^\s\"'\\]+")


def requirement_of(text: str, directory: Path) -> str:
    """Return the requirement for the dependencies in pyproject.toml.

    The text is a requirement on an index (`sampletool>=0.3`), the address of a wheel, or the path
    of a wheel. Relative paths start in `directory`. Raise ValueError if the text is none of these.
    """
    if _INDEX_REQUIREMENT.fullmatch(text):
        return text
    address = text.removeprefix(f"{PACKAGE} @ ")
    if _ADDRESS.fullmatch(address):
        return f"{PACKAGE} @ {address}"
    if not text.endswith(".whl"):
        raise ValueError(f"{text!r} is neither a requirement on {PACKAGE}, nor a URL, nor a wheel")
    wheel = (directory / text).resolve()
    if not wheel.is_file():
        raise ValueError(f"{wheel} does not exist")
    return f"{PACKAGE} @ {wheel.as_uri()}"


def is_direct(requirement: str) -> bool:
    """Return whether the requirement names a place, and not only a package and its versions."""
    return " @ " in requirement
