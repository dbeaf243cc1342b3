"""The lists, `tests/*/mutants/*.toml`. Each change takes one mechanism out, and names the tests that have to notice."""

import tomllib
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from sampletool.kit.program import PACKAGE


@dataclass(frozen=True)
class Change:
    file: str
    mechanism: str
    line: str
    instead: str
    tests: tuple[str, ...] = ()
    guarantee: str = ""
    unnoticed: str = ""
    list: str = ""

    def path(self, tree: Path) -> Path:
        return tree / PACKAGE / self.file

    def fault(self, tree: Path) -> str:
        """Why it cannot be tried, or nothing."""
        if not self.path(tree).is_file():
            return "there is no such file"
        count = self.path(tree).read_text().count(self.line)
        if count != 1:
            return f"the text is in the file {count} times"
        if bool(self.tests) == bool(self.unnoticed):
            return "it needs either tests or the reason why none can notice it"
        for test in self.tests:
            file, _, name = test.partition("::")
            if not (tree / file).is_file() or f"def {name.partition('[')[0]}(" not in (tree / file).read_text():
                return f"there is no test {test}"
        return ""


def lists(tree: Path) -> list[Path]:
    return sorted(tree.glob("tests/*/mutants/*.toml"))


def read_changes(files: Iterable[Path]) -> list[Change]:
    """Of all lists, in their order. A key that is not a field of Change raises TypeError."""
    return [
        Change(**{**entry, "tests": tuple(entry.get("tests", ()))}, list=file.name)
        for file in files
        for entry in tomllib.loads(file.read_text())["change"]
    ]
