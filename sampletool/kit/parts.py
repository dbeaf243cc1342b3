"""Which parts there are: the folders beside the kit. The kit knows none of them by name.

What a part may offer, by the name of the file: `commands/`, `settings.py`, `doctor.py`.

`python -m acme.kit.parts` lists them, and `python -m acme.kit.parts remove NAME...` removes some: every folder of that
name outside the kit, and the lines that end in `# NAME` (every pyproject and Makefile, those of templates too) or
`<!-- NAME -->` (pages). Only what git tracks is changed, and only while nothing differs from the last commit, so that
git can bring everything back.
"""

import os
import sys
from collections.abc import Iterable, Iterator
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

from .program import PACKAGE

TOP = Path(__file__).parents[2]
_KIT = "kit"


@cache
def part_names() -> list[str]:
    """In the order of their names. A folder without an `__init__.py` is no part."""
    return sorted(name for name in os.listdir(TOP / PACKAGE) if name != _KIT and _is_there(name, "__init__.py"))


def _is_there(part: str, file: str) -> bool:
    return os.path.exists(f"{TOP}/{PACKAGE}/{part}/{file}")  # pathlib takes three times as long, at each start


def command_packages() -> list[str]:
    """The packages whose files are commands, the kit's first."""
    own = [f"{PACKAGE}.{name}.commands" for name in part_names() if _is_there(name, "commands")]
    return [f"{PACKAGE}.{_KIT}.commands", *own]


def offered(file: str) -> Iterator[Any]:
    """The module of this name of each part that has one."""
    for name in part_names():
        if _is_there(name, f"{file}.py"):
            yield import_module(f"{PACKAGE}.{name}.{file}")


def folders_of(names: set[str], tracked: Iterable[str]) -> set[str]:
    """The outermost folders of these names, but none inside the kit, its tests and its pages."""
    folders = set()
    for path in tracked:
        above = path.split("/")[:-1]
        if above[1:2] != [_KIT] and (inner := [number for number, name in enumerate(above, 1) if name in names]):
            folders.add("/".join(above[: inner[0]]))
    return folders


def lines_without(names: set[str], path: str, text: str) -> str:
    """The text of a page, of pyproject.toml or the Makefile without the lines that are about these parts."""
    marks = tuple(f"<!-- {name} -->" if path.endswith(".md") else f"# {name}" for name in names)
    return "".join(line for line in text.splitlines(keepends=True) if not line.rstrip().endswith(marks))


def remove(names: set[str]) -> None:
    if unknown := sorted(names - set(part_names())):
        raise SystemExit(f"There is no part {', '.join(unknown)}. There are: {', '.join(part_names())}.")
    if run_git("status", "--porcelain", "--untracked-files=no"):
        raise SystemExit("Files differ from the last commit. Commit them first: then git can undo the removal.")
    folders = folders_of(names, tracked())
    run_git("rm", "-rq", "--", *sorted(folders))
    for path in tracked():
        if Path(path).stem in ("pyproject", "Makefile") or path.endswith(".md"):
            text = (TOP / path).read_text()
            (TOP / path).write_text(lines_without(names, path, text))
    sys.stdout.write("".join(f"removed {folder}/\n" for folder in sorted(folders)))
    sys.stdout.write("Undo: git restore --staged --worktree .    Next: make check test, and README.md if it names it\n")


def tracked(directory: Path = TOP) -> list[str]:
    return run_git("ls-files", "-z", directory=directory).split("\0")[:-1]


def run_git(*args: str, directory: Path = TOP) -> str:
    import subprocess  # not at the top: each call of the tool imports this file

    ran = subprocess.run(["/usr/bin/env", "git", *args], cwd=directory, capture_output=True, text=True, check=False)
    if ran.returncode != 0:
        raise SystemExit(f"git {args[0]} failed: {ran.stderr.strip()}")
    return ran.stdout


def main(args: list[str]) -> None:
    if not args:
        sys.stdout.write("".join(f"{name}\n" for name in part_names()))
    elif args[0] == "remove" and args[1:]:
        remove(set(args[1:]))
    else:
        raise SystemExit(f"Usage: python -m {PACKAGE}.kit.parts [remove NAME...]")


if __name__ == "__main__":
    main(sys.argv[1:])
