"""The lists `tests/*/mutants/*.toml`: for each guarantee, its mechanism in the code and the tests that fail without it.

An entry finds its mechanism by function and pattern (see `source.py`), so it survives formatting and moved lines:

    [[mechanism]]
    function = "kit/safety/lock.py:_is_current"
    pattern = "os.path.samestat(path.lstat(), locked)"
    instead = "True"
    mechanism = "the inode is compared after the lock is won"
    guarantee = "two processes never hold a lock at the same time"
    tests = ["tests/kit/safety/test_lock.py::test_a_lock_file_that_was_replaced_is_not_the_lock"]

A list may also be made by a module, `tests/*/mutants/derived.py`, with a function `mechanisms`.
"""

import re
import tomllib
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from pathlib import Path

from sampletool.kit.program import PACKAGE

from .source import Mutant, PatternError, Source

EQUIVALENT = "equivalent.toml"


@dataclass(frozen=True)
class Mechanism:
    """One entry of a list."""

    function: str
    """The file below the package and, after a colon, the function, class or nothing."""
    pattern: str
    instead: str
    mechanism: str
    guarantee: str
    tests: tuple[str, ...]

    @property
    def file(self) -> str:
        return self.function.partition(":")[0]

    def mutant(self, tree: Path) -> Mutant:
        """Return the code without the mechanism. Raise PatternError if the code is not there exactly once."""
        name = self.function.partition(":")[2]
        if not (tree / PACKAGE / self.file).is_file():
            raise PatternError(f"there is no {self.file}")
        if not self.file.endswith(".py"):
            return replaced_text(tree, self.file, name, self.pattern, self.instead)
        source = _source(tree, self.file)
        place, replacement = source.find(name, self.pattern, self.instead)
        return source.mutant("without", place, replacement)

    def fault(self, tree: Path) -> str:
        """Return why the entry is not about the code as it is, or nothing."""
        try:
            self.mutant(tree)
        except PatternError as error:
            return str(error)
        if not self.tests:
            return "it names no test"
        for test in self.tests:
            if not is_test(test, tree):
                return f"there is no test {test}"
        return ""


@cache
def _source(tree: Path, file: str) -> Source:
    """Return the file, which many entries are about; nobody changes this tree meanwhile."""
    return Source(tree, file)


def is_test(test: str, tree: Path) -> bool:
    """Return whether there is such a test, whatever its parameters are."""
    file, _, name = test.partition("::")
    definition = f"def {name.partition('[')[0]}("
    return (tree / file).is_file() and definition in (tree / file).read_text()


def replaced_text(tree: Path, file: str, function: str, pattern: str, instead: str) -> Mutant:
    """Replace text in a file that is not Python; how much white space is between its words does not matter."""
    text = (tree / PACKAGE / file).read_text()
    start, end = 0, len(text)
    if function:
        heads = list(re.finditer(rf"^(local )?function {re.escape(function)}\(", text, re.MULTILINE))
        if len(heads) != 1:
            raise PatternError(f"there is no {function}")
        start = heads[0].start()
        after = re.compile(r"^(local|function) ", re.MULTILINE).search(text, heads[0].end())
        end = after.start() if after else len(text)
    words = r"\s+".join(map(re.escape, pattern.split()))
    found = list(re.compile(words).finditer(text, start, end))
    if len(found) != 1:
        raise PatternError(f"the pattern is in {function or file} {len(found)} times: {pattern}")
    place = found[0]
    return Mutant(
        file=file,
        function=function,
        line=text.count("\n", 0, place.start()) + 1,
        operator="without",
        before=" ".join(pattern.split()),
        after=" ".join(instead.split()),
        content=text[: place.start()] + instead + text[place.end() :],
    )


def lists(tree: Path) -> list[Path]:
    """Return all lists of mechanisms."""
    files = [*tree.glob("tests/*/mutants/*.toml"), *tree.glob("tests/*/mutants/derived.py")]
    return sorted(file for file in files if file.name != EQUIVALENT)


def read_mechanisms(files: Iterable[Path]) -> list[Mechanism]:
    """Return the entries of these lists. A key that is not a field of Mechanism raises TypeError."""
    found = []
    for file in files:
        if file.suffix == ".toml":
            entries = tomllib.loads(file.read_text())["mechanism"]
            found += [Mechanism(**{**entry, "tests": tuple(entry["tests"])}) for entry in entries]
        else:
            found += import_module(f"tests.{file.parent.parent.name}.mutants.{file.stem}").mechanisms()
    return found
