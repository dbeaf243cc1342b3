"""The lists `tests/*/mutants/*.toml`: the mechanism behind each guarantee.

Each entry names the code of a mechanism, and the tests that fail without it. It finds the code by
function and pattern (see source.py), so moving or formatting the lines does not matter:

    [[mechanism]]
    function = "kit/safety/lock.py:_is_current"
    pattern = "os.path.samestat(path.lstat(), locked)"
    instead = "True"
    mechanism = "the inode is compared after the lock is won"
    guarantee = "two processes never hold a lock at the same time"
    tests = ["tests/kit/safety/test_lock.py::test_a_lock_file_that_was_replaced_is_not_the_lock"]

A part can also have a module `tests/*/mutants/derived.py`, whose function `mechanisms` returns the
entries.
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
"""The name of the lists that have no mechanisms (see equivalent.py)."""


@dataclass(frozen=True)
class Mechanism:
    """One entry of a list."""

    function: str
    """The file below the package, a colon, and a function or class. Without one: the module."""
    pattern: str
    instead: str
    mechanism: str
    guarantee: str
    tests: tuple[str, ...]

    @property
    def file(self) -> str:
        """The file below the package."""
        return self.function.partition(":")[0]

    def mutant(self, tree: Path) -> Mutant:
        """Return the code without the mechanism.

        Raise PatternError if the pattern does not match exactly once.
        """
        name = self.function.partition(":")[2]
        if not (tree / PACKAGE / self.file).is_file():
            raise PatternError(f"there is no {self.file}")
        if not self.file.endswith(".py"):
            return replaced_text(tree, self.file, name, self.pattern, self.instead)
        source = _source(tree, self.file)
        place, replacement = source.find(name, self.pattern, self.instead)
        return source.mutant("without", place, replacement)

    def fault(self, tree: Path) -> str:
        """Return why the entry is not about the code as it is, or "" if it is."""
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
    """Return a file. It is cached, because there are many entries about some files.

    The tree must not change meanwhile.
    """
    return Source(tree, file)


def is_test(test: str, tree: Path) -> bool:
    """Return whether there is such a test, whatever its parameters are."""
    file, _, name = test.partition("::")
    if not (tree / file).is_file():
        return False
    function = name.partition("[")[0]
    return f"def {function}(" in (tree / file).read_text()


def replaced_text(tree: Path, file: str, function: str, pattern: str, instead: str) -> Mutant:
    """Replace text in a file that is not Python. White space of the pattern matches any other.

    If `function` is not empty, look only into this function, which is written in Lua.

    Raise PatternError if the pattern does not match exactly once.
    """
    text = (tree / PACKAGE / file).read_text()
    start, end = 0, len(text)
    if function:
        start, end = _lua_function(text, function)
    escaped_words = [re.escape(word) for word in pattern.split()]
    expression = re.compile(r"\s+".join(escaped_words))
    matches = list(expression.finditer(text, start, end))
    if len(matches) != 1:
        raise PatternError(f"the pattern is in {function or file} {len(matches)} times: {pattern}")
    place = matches[0]
    return Mutant(
        file=file,
        function=function,
        line=text.count("\n", 0, place.start()) + 1,
        operator="without",
        before=" ".join(pattern.split()),
        after=" ".join(instead.split()),
        content=text[: place.start()] + instead + text[place.end() :],
    )


def _lua_function(text: str, function: str) -> tuple[int, int]:
    """Return where a function begins in the text, and where it ends.

    Raise PatternError if there is no such function, or more than one.
    """
    head = rf"^(local )?function {re.escape(function)}\("
    heads = list(re.finditer(head, text, re.MULTILINE))
    if len(heads) != 1:
        raise PatternError(f"there is no {function}")
    next_head = re.compile(r"^(local|function) ", re.MULTILINE).search(text, heads[0].end())
    if next_head is None:
        return heads[0].start(), len(text)
    return heads[0].start(), next_head.start()


def lists(tree: Path) -> list[Path]:
    """Return all lists of mechanisms."""
    files = [*tree.glob("tests/*/mutants/*.toml"), *tree.glob("tests/*/mutants/derived.py")]
    return sorted(file for file in files if file.name != EQUIVALENT)


def read_mechanisms(files: Iterable[Path]) -> list[Mechanism]:
    """Return the entries of these lists.

    Raise TypeError for an entry with an unknown key.
    """
    mechanisms: list[Mechanism] = []
    for file in files:
        if file.suffix == ".toml":
            for entry in tomllib.loads(file.read_text())["mechanism"]:
                tests = tuple(entry.pop("tests"))
                mechanisms.append(Mechanism(**entry, tests=tests))
        else:
            part = file.parent.parent.name
            module = import_module(f"tests.{part}.mutants.{file.stem}")
            mechanisms += module.mechanisms()
    return mechanisms
