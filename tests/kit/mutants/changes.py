"""The lists, `tests/*/mutants/*.toml`. Each change takes one mechanism out, and names the tests that have to notice.

A list may also be made by a module, `tests/*/mutants/derived.py`: its `entries()` are what a file of TOML would have.
"""

import tomllib
from collections.abc import Iterable
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

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
    return sorted([*tree.glob("tests/*/mutants/*.toml"), *tree.glob("tests/*/mutants/derived.py")])


def read_changes(files: Iterable[Path]) -> list[Change]:
    """Of all lists, in their order. A key that is not a field of Change raises TypeError."""
    return [
        Change(**{**entry, "tests": tuple(entry.get("tests", ()))}, list=file.name)
        for file in files
        for entry in _entries(file)
    ]


def _entries(file: Path) -> Iterable[dict[str, Any]]:
    if file.suffix == ".toml":
        yield from tomllib.loads(file.read_text())["change"]
    else:
        yield from import_module(f"tests.{file.parent.parent.name}.mutants.{file.stem}").entries()
