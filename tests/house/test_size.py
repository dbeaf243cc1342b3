"""Small enough to read: the whole package, each room, each file."""

import ast
import io
import tokenize
from pathlib import Path

_PACKAGE = Path(__file__).parents[2] / "sampletool"
_WHOLE, _ROOM, _FILE = 7_550, 1500, 270
_OWN = {"commands": 3000, "domain": 500}
"""A fork's own rooms: they do not count into the whole. All these numbers are a fork's to raise."""


def code_lines(path: Path) -> int:
    """What has to be understood: no blank lines, no comments, no docstrings."""
    source = path.read_text()
    found: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type not in _NO_CODE:
            found |= set(range(token.start[0], token.end[0] + 1))
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            found -= set(range(node.lineno, (node.end_lineno or node.lineno) + 1))
    return len(found)


_NO_CODE = {tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER}


def test_the_package_and_every_room_stay_small() -> None:
    sizes: dict[str, int] = {}
    for file in _PACKAGE.rglob("*.py"):
        room, *rest = file.relative_to(_PACKAGE).parts
        if "scenarios" not in rest and "example" not in rest:
            sizes[room if rest else "door"] = sizes.get(room if rest else "door", 0) + code_lines(file)

    assert sum(size for room, size in sizes.items() if room not in _OWN) <= _WHOLE, sizes
    assert {room: size for room, size in sizes.items() if size > _OWN.get(room, _ROOM)} == {}


def test_no_file_holds_a_second_idea() -> None:
    long = {str(file.relative_to(_PACKAGE)): len(file.read_text().splitlines()) for file in _PACKAGE.rglob("*.py")}

    assert {name: lines for name, lines in long.items() if lines > _FILE} == {}


def test_there_is_no_drawer_for_everything() -> None:
    names = {file.stem for file in _PACKAGE.rglob("*.py")}

    assert not names & {"utils", "helpers", "common", "misc"}


def test_every_file_says_what_it_promises() -> None:
    silent = [file for file in _PACKAGE.rglob("*.py") if not file.read_text().startswith('"""')]

    assert silent == []
