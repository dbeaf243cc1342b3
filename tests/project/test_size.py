"""Small enough to read: every part, counted honestly."""

import ast
import sys
from pathlib import Path

_PACKAGE = Path(__file__).parents[2] / "sampletool"
LIMITS = {
    "kit": 3789,
    "kit/completion.py, kit/upgrade.py, kit/parts.py, kit/rename.py, kit/checksums.py, kit/new_command.py": 400,
    "kit/stepping, kit/testing": 699,
    "sample": 1398,
    "state": 2142,
    "state/redis.lua": 248,
    "lab": 1100,
    "lab/tried.py, lab/learner.py, lab/commands/lab/try.py": 223,
    "lab/explorer, lab/standing.py, lab/commands/lab/explore.py": 176,
    "lab/scenarios": 100 * 25,
    "audit": 799,
    "mcp": 400,
    "fork": 450,
}
"""Lines of code, at the most. A folder or file that is named here does not count into the one that it lies in."""


def code_lines(path: Path) -> int:
    """What has to be understood: every line that is not blank, a comment or a docstring."""
    lines = path.read_text().splitlines()
    if path.suffix == ".lua":
        return sum(1 for line in lines if line.strip() and not line.strip().startswith("--"))
    left = {number for number, line in enumerate(lines, 1) if line.strip() and not line.strip().startswith("#")}
    for node in ast.walk(ast.parse("\n".join(lines))):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            left -= set(range(node.lineno, (node.end_lineno or node.lineno) + 1))
    return len(left)


def sizes() -> dict[str, int]:
    """Of each row of the table; nothing is left out but parts that a fork has added."""
    paths = [(path, row) for row in LIMITS for path in row.split(", ") if (_PACKAGE / path).exists()]
    rows = sorted(paths, key=lambda pair: -len(pair[0]))
    counted = {row: 0 for _, row in paths}
    for file in [*_PACKAGE.rglob("*.py"), *_PACKAGE.rglob("*.lua")]:
        name = file.relative_to(_PACKAGE).as_posix()
        row = next((row for path, row in rows if name == path or name.startswith(f"{path}/")), None)
        if row is not None:
            counted[row] += code_lines(file)
    return counted


def test_every_part_stays_small() -> None:
    too_large = {row: f"{lines} of {LIMITS[row]}" for row, lines in sizes().items() if lines > LIMITS[row]}

    assert too_large == {}


def main() -> None:
    """`make check` prints this."""
    for row, lines in sizes().items():
        sys.stdout.write(f"{lines:5} of {LIMITS[row]:5}  {row}\n")


if __name__ == "__main__":
    main()
