"""Draws docs/kit/house.svg: what is in the package, and who imports whom, read from the imports."""

import ast
from collections.abc import Iterator
from pathlib import Path

from sampletool.kit.program import PACKAGE

_KIT = Path(__file__).parents[2] / PACKAGE / "kit"
_NO_CALL = {"testing", "stepping", "upgrade", "rename", "checksums", "new_command"}
"""What no call runs: it is not in the picture."""
_WIDTH, _HEIGHT, _GAP_X, _GAP_Y, _MARGIN = 126, 32, 14, 26, 24
_STYLE = """
  text { font: 13px system-ui, sans-serif; fill: #1c2430; text-anchor: middle }
  .title { font-weight: 600; text-anchor: start }
  .box { fill: #eef3fb; stroke: #7f95b8 } .part { fill: #f8f1e3; stroke: #b59a66 }
  .frame { fill: none; stroke: #7f95b8; stroke-dasharray: 4 3 } line { stroke: #b3bfd2 }
  @media (prefers-color-scheme: dark) {
    text { fill: #e6eaf2 } .box { fill: #22304a } .part { fill: #3c3320 } line { stroke: #4d5a70 }
  }
"""


def imports() -> dict[str, set[str]]:
    """Of each folder and file of the kit: those that it imports."""
    names = [path.stem for path in _KIT.iterdir() if path.suffix == ".py" or (path / "__init__.py").exists()]
    boxes = sorted(set(names) - _NO_CALL - {"__init__"})
    return {box: {name for file in _files(box) for name in _imported(file)} & {*boxes} - {box} for box in boxes}


def _files(box: str) -> list[Path]:
    return sorted((_KIT / box).rglob("*.py")) or [_KIT / f"{box}.py"]


def _imported(file: Path) -> Iterator[str]:
    depth = len(file.relative_to(_KIT).parts)
    left = [ast.parse(file.read_text())]
    while left:
        node = left.pop()
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            continue
        if isinstance(node, ast.ImportFrom) and node.level == depth:
            yield from [node.module.partition(".")[0]] if node.module else [alias.name for alias in node.names]
        left += ast.iter_child_nodes(node)  # type: ignore[arg-type]


def rows(found: dict[str, set[str]]) -> list[list[str]]:
    """The boxes from the top to the bottom: each imports only what stands below it, or this is an AssertionError."""
    height: dict[str, int] = {}
    while len(height) < len(found):
        ready = [box for box, below in found.items() if box not in height and below <= height.keys()]
        assert ready, f"these import each other: {sorted(found.keys() - height.keys())}"
        height |= {box: 1 + max((height[below] for below in found[box]), default=-1) for box in ready}
    return [sorted(box for box in height if height[box] == at) for at in range(max(height.values()), -1, -1)]


def _all_below(box: str, found: dict[str, set[str]]) -> set[str]:
    return found[box].union(*(_all_below(below, found) for below in found[box]))


def svg() -> str:
    """A line leads to what is imported, unless another line leads there on the way."""
    found = imports()
    levels = rows(found)
    widest = max(len(level) for level in levels)
    width = 2 * _MARGIN + widest * (_WIDTH + _GAP_X) + _GAP_X
    drawn, place = [], {}
    top = _MARGIN + 12

    def boxes(names: list[str], kind: str) -> None:
        left = (width - len(names) * (_WIDTH + _GAP_X) + _GAP_X) // 2
        for x, name in enumerate(names):
            at = left + x * (_WIDTH + _GAP_X)
            place[name] = (at + _WIDTH // 2, top)
            label = f'<text x="{at + _WIDTH // 2}" y="{top + 21}">{name}</text>'
            drawn.append(f'<rect class="{kind}" x="{at}" y="{top}" width="{_WIDTH}" height="{_HEIGHT}" rx="5"/>{label}')

    drawn.append(f'<text class="title" x="{_MARGIN}" y="{top - 10}">parts: they import the kit, not each other</text>')
    boxes(["a part", "another part"], "part")
    top += _HEIGHT + 58
    kit_top = top - 30
    drawn.append(f'<text class="title" x="{_MARGIN + 10}" y="{top - 10}">kit: each imports what stands below it</text>')
    for level in levels:
        boxes(level, "box")
        top += _HEIGHT + _GAP_Y
    kit_height = top - _GAP_Y + 14 - kit_top
    frame = (
        f'<rect class="frame" x="{_MARGIN // 2}" y="{kit_top}" width="{width - _MARGIN}" height="{kit_height}" rx="8"/>'
    )
    lines = [
        f'<line x1="{place[box][0]}" y1="{place[box][1] + _HEIGHT}" x2="{place[below][0]}" y2="{place[below][1]}"/>'
        for box in found
        for below in sorted(found[box] - {further for near in found[box] for further in _all_below(near, found)})
    ]
    body = "\n".join([frame, *lines, *drawn])
    height = kit_top + kit_height + _MARGIN // 2
    title = "The kit in layers, with the parts above it"
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" role="img" aria-label="{title}">\n'
        f"<title>{title}</title>\n<style>{_STYLE}</style>\n{body}\n</svg>\n"
    )
