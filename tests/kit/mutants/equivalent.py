"""The lists `tests/*/mutants/equivalent.toml`: mutants that behave like the code as it is, each with the reason.

    [[equivalent]]
    function = "kit/safety/lock.py:Lock._take"
    operator = "drop operand"
    before = "flags | os.O_CLOEXEC"
    after = "flags"
    reason = "Python sets this flag on every descriptor that it opens"

No test can notice them, so they are not tried and do not count.
"""

import ast
import tomllib
from dataclasses import dataclass
from pathlib import Path

from .guarantees import EQUIVALENT
from .operators import candidates
from .source import Mutant, Source, one_line

MOST = 0.05
"""Of the mutants that are drawn. A longer list would only hide survivors."""


@dataclass(frozen=True)
class Equivalent:
    """One entry of a list."""

    function: str
    operator: str
    before: str
    after: str
    reason: str

    def is_about(self, mutant: Mutant) -> bool:
        """Compare the code, not its formatting or its line."""
        return (
            self.function == f"{mutant.file}:{mutant.function}"
            and self.operator == mutant.operator
            and one_line(ast.parse(self.before).body) == mutant.before
            and one_line(ast.parse(self.after).body) == mutant.after
        )

    def fault(self, tree: Path) -> str:
        """Return why the entry is not about the code as it is, or nothing."""
        source = Source(tree, self.function.partition(":")[0])
        for candidate in candidates(source):
            if candidate.operator == self.operator and candidate.place.scope == self.function.partition(":")[2]:
                mutant = candidate.mutant(source)
                if mutant is not None and self.is_about(mutant):
                    return ""
        return "the mutator makes no such mutant"


def read_equivalents(tree: Path) -> list[Equivalent]:
    """Return the entries of all parts."""
    found = []
    for file in sorted(tree.glob(f"tests/*/mutants/{EQUIVALENT}")):
        found += [Equivalent(**entry) for entry in tomllib.loads(file.read_text())["equivalent"]]
    return found
