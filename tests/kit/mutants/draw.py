"""Draw mutants of a file, a folder or the whole package at random.

The same seed draws the same mutants again, as long as the code is the same. (For the terms, see
source.py.)
"""

import random
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from sampletool.kit.program import PACKAGE

from .equivalent import Equivalent
from .operators import Candidate, candidates
from .source import Mutant, Source

_NOT_OF_THE_PROGRAM = (f"{PACKAGE}/kit/testing/", "/template/")
"""Files that `tool` itself does not run: helpers for tests, and the template of other projects."""


@dataclass(frozen=True)
class Drawn:
    """The mutants that were drawn."""

    mutants: Sequence[Mutant]
    equivalent: Sequence[tuple[Mutant, str]]
    """Mutants that were also drawn but are listed as equivalent, each with the reason."""
    available: int
    """How many changes the operators make of these files."""


def files_of(tree: Path, where: str) -> list[str]:
    """Return the Python files that `where` names, as paths below the package.

    `where` is a path or a pattern below the top of the project: a file, a folder (with all files
    in it) or a pattern such as `sampletool/kit/*.py`. Some files are only returned if `where`
    names the file itself: see _NOT_OF_THE_PROGRAM.

    Raise SystemExit if there are no such files, or if one of them is not in the package.
    """
    if (tree / where).is_file():
        paths = [tree / where]
    else:
        paths = _paths_of_the_program(tree, where)

    package = tree / PACKAGE
    is_in_package = [path.is_relative_to(package) and path.suffix == ".py" for path in paths]
    if not paths or not all(is_in_package):
        hint = f"name a file or folder of {PACKAGE}/, with its path from the top of the project."
        raise SystemExit(f"{where}: {hint}")
    return [path.relative_to(package).as_posix() for path in paths]


def draw(
    tree: Path,
    files: Iterable[str],
    seed: str,
    most: int | None,
    equivalents: Sequence[Equivalent],
) -> Drawn:
    """Draw at most `most` mutants of these files, or all of them if `most` is None.

    Mutants that are listed as equivalent are drawn in addition, and do not count.
    """
    available: list[tuple[Source, Candidate]] = []
    for file in files:
        source = Source(tree, file)
        for candidate in candidates(source):
            available.append((source, candidate))
    random.Random(seed).shuffle(available)

    mutants: list[Mutant] = []
    equivalent: list[tuple[Mutant, str]] = []
    for source, candidate in available:
        if most is not None and len(mutants) == most:
            break
        mutant = candidate.mutant(source)
        if mutant is None:
            continue
        reason = _reason_why_equivalent(mutant, equivalents)
        if reason is None:
            mutants.append(mutant)
        else:
            equivalent.append((mutant, reason))
    return Drawn(mutants=mutants, equivalent=equivalent, available=len(available))


def _paths_of_the_program(tree: Path, where: str) -> list[Path]:
    """Return the Python files of a folder or pattern, without those that `tool` does not run."""
    if (tree / where).is_dir():
        found = (tree / where).rglob("*.py")
    else:
        found = tree.glob(where)
    paths = []
    for path in sorted(found):
        name = path.relative_to(tree).as_posix()
        is_left_out = any(part in name for part in _NOT_OF_THE_PROGRAM)
        if path.suffix == ".py" and not is_left_out:
            paths.append(path)
    return paths


def _reason_why_equivalent(mutant: Mutant, equivalents: Sequence[Equivalent]) -> str | None:
    """Return the reason from the list of equivalent mutants, or None if it has no such mutant."""
    for entry in equivalents:
        if entry.is_about(mutant):
            return entry.reason
    return None
