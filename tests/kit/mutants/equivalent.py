"""The lists `tests/*/mutants/equivalent.toml`: mutants that behave like the code as it is.

Each entry has the reason:

    [[equivalent]]
    function = "kit/safety/lock.py:Lock._take"
    operator = "drop operand"
    before = "flags | os.O_CLOEXEC"
    after = "flags"
    reason = "Python sets this flag on every descriptor that it opens"

No test can notice such a mutant, so it is not tried and does not count.
"""

import ast
import tomllib
from dataclasses import dataclass
from pathlib import Path

from .guarantees import EQUIVALENT
from .operators import candidates
from .source import Mutant, Source, one_line

MAX_SHARE = 0.05
"""The largest share of the drawn mutants that may be listed. A longer list would hide survivors."""


@dataclass(frozen=True)
class Equivalent:
    """One entry of a list. The fields before `reason` are those of the mutant."""

    function: str
    operator: str
    before: str
    after: str
    reason: str

    def is_about(self, mutant: Mutant) -> bool:
        """Return whether this is the mutant. Its line and the formatting of the code may differ."""
        return (
            self.function == f"{mutant.file}:{mutant.function}"
            and self.operator == mutant.operator
            and one_line(ast.parse(self.before).body) == mutant.before
            and one_line(ast.parse(self.after).body) == mutant.after
        )

    def fault(self, tree: Path) -> str:
        """Return why the entry is not about the code as it is, or "" if it is."""
        file, _, function = self.function.partition(":")
        source = Source(tree, file)
        for candidate in candidates(source):
            if candidate.operator != self.operator or candidate.place.scope != function:
                continue
            mutant = candidate.mutant(source)
            if mutant is not None and self.is_about(mutant):
                return ""
        return "the mutator makes no such mutant"


def read_equivalents(tree: Path) -> list[Equivalent]:
    """Return the entries of all lists."""
    equivalents = []
    for file in sorted(tree.glob(f"tests/*/mutants/{EQUIVALENT}")):
        entries = tomllib.loads(file.read_text())["equivalent"]
        equivalents += [Equivalent(**entry) for entry in entries]
    return equivalents
