"""Remove one check from a copy of the store. The history checker must notice it."""

import shutil
import tomllib
from dataclasses import dataclass
from pathlib import Path

from sampletool.kit.program import PACKAGE
from sampletool.kit.project import ROOT
from tests.kit.mutants.guarantees import replaced_text

LIST = Path(__file__).with_suffix(".toml")


@dataclass(frozen=True, kw_only=True)
class RemovedCheck:
    """One check of the store, and the promise that is broken without it."""

    name: str
    backends: tuple[str, ...]
    file: str
    """The file that contains the check, below the package."""
    pattern: str
    instead: str
    refused_by: str

    def remove(self, directory: Path) -> None:
        """Copy the package into a directory, without this check.

        Raise PatternError if the check is not in its file exactly once.
        """
        without = replaced_text(ROOT, self.file, "", self.pattern, self.instead)
        package = directory / PACKAGE
        shutil.copytree(ROOT / PACKAGE, package, ignore=shutil.ignore_patterns("__pycache__"))
        (package / self.file).write_text(without.content)


def read_removed_checks(path: Path = LIST) -> list[RemovedCheck]:
    """Return the checks of the list."""
    entries = tomllib.loads(path.read_text())["check"]
    return [RemovedCheck(**{**entry, "backends": tuple(entry["backends"])}) for entry in entries]
