"""Draw mutants of a file, a folder or the whole package by chance; the same seed draws the same ones."""

import random
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from sampletool.kit.program import PACKAGE

from .equivalent import Equivalent
from .operators import candidates
from .source import Mutant, Source

_NOT_OF_THE_PROGRAM = (f"{PACKAGE}/kit/testing/", "/template/")
"""What tests are made with, and what other projects are made from."""


@dataclass(frozen=True)
class Drawn:
    mutants: Sequence[Mutant]
    equivalent: Sequence[tuple[Mutant, str]]
    """Those that were drawn and are listed as equivalent, with the reason."""
    available: int
    """How many changes the operators make of these files."""


def files_of(tree: Path, where: str) -> list[str]:
    """Return the files of the package that a file, a folder or a pattern names, such as `sampletool/kit/*.py`."""
    top = tree / where
    found = [top] if top.is_file() else sorted(top.rglob("*.py") if top.is_dir() else tree.glob(where))
    names = [path.relative_to(tree).as_posix() for path in found if path.suffix == ".py"]
    if not top.is_file():
        names = [name for name in names if not any(part in name for part in _NOT_OF_THE_PROGRAM)]
    wrong = [name for name in names if not name.startswith(f"{PACKAGE}/")]
    if wrong or not names:
        raise SystemExit(f"{where}: name a file or a folder of {PACKAGE}/, with its path from the top of the project.")
    return [name.removeprefix(f"{PACKAGE}/") for name in names]


def draw(tree: Path, files: Iterable[str], seed: str, most: int | None, equivalents: Sequence[Equivalent]) -> Drawn:
    """Draw at most so many mutants. Those that are equivalent are drawn in addition."""
    sources = [Source(tree, file) for file in files]
    available = [(source, candidate) for source in sources for candidate in candidates(source)]
    random.Random(seed).shuffle(available)
    mutants: list[Mutant] = []
    equivalent = []
    for source, candidate in available:
        if most is not None and len(mutants) == most:
            break
        mutant = candidate.mutant(source)
        if mutant is None:
            continue
        reasons = [entry.reason for entry in equivalents if entry.is_about(mutant)]
        if reasons:
            equivalent.append((mutant, reasons[0]))
        else:
            mutants.append(mutant)
    return Drawn(mutants, equivalent, len(available))
