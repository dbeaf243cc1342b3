"""Remove one check from a copy of the store, and record a history with that copy."""

import os
import shutil
import subprocess
import sys
import tomllib
from dataclasses import dataclass
from pathlib import Path

from sampletool.kit.program import PACKAGE
from sampletool.kit.project import ROOT
from tests.kit.mutants.guarantees import replaced_text

from .operation import Operation, read_history
from .recording import Plan

LIST = Path(__file__).with_suffix(".toml")

_LONGEST_SECONDS = 120


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


def record_in(tree: Path, url: str, directory: Path, plan: Plan) -> list[Operation]:
    """Run one round with the code in `tree`. Return what the clients recorded in `directory`."""
    program = [sys.executable, "-m", "tests.state.history.recording", url, str(directory)]
    options = {
        "--seed": plan.seed,
        "--clients": plan.clients,
        "--calls": plan.calls,
        "--kills": plan.kills,
        "--round": plan.round_name,
    }
    for option, value in options.items():
        program += [option, str(value)]
    # Python looks for modules in the working directory first: the package is that of the tree, and
    # the tests are those of the project.
    env = {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONDONTWRITEBYTECODE": "1"}
    subprocess.run(program, cwd=tree, env=env, check=True, timeout=_LONGEST_SECONDS)
    return read_history(directory)
