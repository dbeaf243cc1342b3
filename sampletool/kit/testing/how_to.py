"""Failures that name the section of the how-to whose rule is broken."""

from collections.abc import Iterable
from pathlib import Path

import pytest

from ..program import KIT_DIRECTORY
from ..project import ROOT


def relative(path: Path) -> str:
    """Return a path as people write it: from the root of the project, if it is in there."""
    if path.is_relative_to(ROOT):
        return path.relative_to(ROOT).as_posix()
    return str(path)


_HOW_TO = relative(Path(KIT_DIRECTORY, "README.md"))


def remedy(what_to_do: str, heading: str) -> str:
    """Return the sentence that ends a failure: what to do, and where the how-to explains it.

    `heading` is one of those in the section "Rules" of the how-to.
    """
    return f'{what_to_do} (see "{heading}" in the rules, {_HOW_TO}).'


def fail_if_any(faults: Iterable[str], what_to_do: str, heading: str) -> None:
    """Fail the test if there is a fault. The failure lists all of them, and ends with a remedy.

    A fault is a sentence that begins with the path of a file.
    """
    lines = list(faults)
    if lines:
        lines.append(remedy(what_to_do, heading))
        pytest.fail("\n".join(lines), pytrace=False)
