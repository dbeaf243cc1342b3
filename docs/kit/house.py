"""Draw docs/kit/house.svg: the modules of the kit in layers, and which of them imports which.

The imports are read from the code, so the picture cannot disagree with it. A *box* is a folder or a
module of the kit. Each box is above all boxes that it imports.
"""

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from sampletool.kit.program import PACKAGE

_KIT = Path(__file__).parents[2] / PACKAGE / "kit"

_NOT_USED_BY_COMMANDS = {
    "testing",
    "stepping",
    "upgrade",
    "rename",
    "checksums",
    "new_command",
    "command_templates",
}
"""The boxes that are left out, because no command runs their code."""

_BOX_WIDTH = 126
_BOX_HEIGHT = 32
_GAP_X = 14
_GAP_Y = 26
_MARGIN = 24
_TITLE_HEIGHT = 30
"""The room between the top of the frame and the boxes in it."""
_TITLE_DISTANCE = 10
"""The distance of the baseline of a title from what is below it."""
_BASELINE = 21
"""The distance of the baseline of a name from the top of its box."""

_TITLE = "The modules of the kit in layers, with the parts above them"
_PARTS_TITLE = "Parts: they import the kit, but not each other"
_KIT_TITLE = "The kit: each box imports only boxes below it"
_STYLE = """
  text { font: 13px system-ui, sans-serif; fill: #1c2430; text-anchor: middle }
  .title { font-weight: 600; text-anchor: start }
  .box { fill: #eef3fb; stroke: #7f95b8 } .part { fill: #f8f1e3; stroke: #b59a66 }
  .frame { fill: none; stroke: #7f95b8; stroke-dasharray: 4 3 } line { stroke: #b3bfd2 }
  @media (prefers-color-scheme: dark) {
    text { fill: #e6eaf2 } .box { fill: #22304a } .part { fill: #3c3320 } line { stroke: #4d5a70 }
  }
"""

Imports = dict[str, set[str]]
"""For each box, the boxes that it imports."""


def imports() -> Imports:
    """Return what each box of the kit imports, apart from itself."""
    names = set()
    for path in _KIT.iterdir():
        if path.suffix == ".py" or (path / "__init__.py").exists():
            names.add(path.stem)
    boxes = sorted(names - _NOT_USED_BY_COMMANDS - {"__init__"})

    found = {}
    for box in boxes:
        imported: set[str] = set()
        for file in _files_of(box):
            imported.update(_imported_boxes(file))
        found[box] = imported.intersection(boxes) - {box}
    return found


def _files_of(box: str) -> list[Path]:
    """Return the Python files of a folder, or the file of a module."""
    files = sorted((_KIT / box).rglob("*.py"))
    return files if files else [_KIT / f"{box}.py"]


def _imported_boxes(file: Path) -> Iterator[str]:
    """Yield the names that a file of the kit imports from the folder of the kit.

    Imports for type checkers do not count: they are not executed.
    """
    # In kit/app.py, `from .x` is relative to the kit. In kit/safety/lock.py, `from ..x` is.
    levels_to_kit = len(file.relative_to(_KIT).parts)
    remaining: list[ast.AST] = [ast.parse(file.read_text())]
    while remaining:
        node = remaining.pop()
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            continue
        if isinstance(node, ast.ImportFrom) and node.level == levels_to_kit:
            if node.module:
                name, _, _ = node.module.partition(".")
                yield name
            else:
                yield from (alias.name for alias in node.names)
        remaining += ast.iter_child_nodes(node)


def layers(found: Imports) -> list[list[str]]:
    """Return the boxes of each layer, from top to bottom. Each imports only boxes of lower layers.

    Raise AssertionError if boxes import each other.
    """
    heights: dict[str, int] = {}
    while len(heights) < len(found):
        # A box can be placed when everything that it imports has been placed.
        ready = []
        for box, imported in found.items():
            if box not in heights and imported <= heights.keys():
                ready.append(box)
        assert ready, f"these import each other: {sorted(found.keys() - heights.keys())}"
        for box in ready:
            heights[box] = 1 + max((heights[other] for other in found[box]), default=-1)

    from_bottom: list[list[str]] = [[] for _ in range(max(heights.values()) + 1)]
    for box in sorted(heights):
        from_bottom[heights[box]].append(box)
    return from_bottom[::-1]


def _direct_imports(box: str, found: Imports) -> list[str]:
    """Return what a box imports, except for what it also imports through another box."""
    through_others: set[str] = set()
    for other in found[box]:
        through_others |= _all_below(other, found)
    return sorted(found[box] - through_others)


def _all_below(box: str, found: Imports) -> set[str]:
    """Return everything that a box imports, directly or through other boxes."""
    below = set(found[box])
    for other in found[box]:
        below |= _all_below(other, found)
    return below


@dataclass(frozen=True)
class _Box:
    """A box at its place in the picture."""

    name: str
    css_class: str
    left: int
    top: int

    @property
    def middle(self) -> int:
        """The horizontal position of its middle."""
        return self.left + _BOX_WIDTH // 2

    @property
    def bottom(self) -> int:
        """The vertical position of its lower edge."""
        return self.top + _BOX_HEIGHT

    def svg(self) -> str:
        """Return the box with its name."""
        return (
            f'<rect class="{self.css_class}" x="{self.left}" y="{self.top}" '
            f'width="{_BOX_WIDTH}" height="{_BOX_HEIGHT}" rx="5"/>'
            f'<text x="{self.middle}" y="{self.top + _BASELINE}">{self.name}</text>'
        )


def svg() -> str:
    """Return the picture. A line leads from a box to each box that it imports directly."""
    found = imports()
    kit_layers = layers(found)
    widest_layer = max(len(layer) for layer in kit_layers)
    width = 2 * _MARGIN + widest_layer * (_BOX_WIDTH + _GAP_X) + _GAP_X

    parts_top = _MARGIN + 12
    part_boxes = _boxes_in_row(["a part", "another part"], "part", parts_top, width)
    frame_top = parts_top + _BOX_HEIGHT + 28
    first_layer_top = frame_top + _TITLE_HEIGHT
    kit_boxes: dict[str, _Box] = {}
    top = first_layer_top
    for layer in kit_layers:
        for box in _boxes_in_row(layer, "box", top, width):
            kit_boxes[box.name] = box
        top += _BOX_HEIGHT + _GAP_Y
    frame_bottom = top - _GAP_Y + 14

    elements = [
        f'<rect class="frame" x="{_MARGIN // 2}" y="{frame_top}" width="{width - _MARGIN}" '
        f'height="{frame_bottom - frame_top}" rx="8"/>'
    ]
    elements += _lines(kit_boxes, found)
    elements.append(_title(_PARTS_TITLE, _MARGIN, parts_top))
    elements += [box.svg() for box in part_boxes]
    elements.append(_title(_KIT_TITLE, _MARGIN + 10, first_layer_top))
    elements += [box.svg() for box in kit_boxes.values()]
    body = "\n".join(elements)
    height = frame_bottom + _MARGIN // 2
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" role="img" '
        f'aria-label="{_TITLE}">\n'
        f"<title>{_TITLE}</title>\n<style>{_STYLE}</style>\n{body}\n</svg>\n"
    )


def _boxes_in_row(names: list[str], css_class: str, top: int, width: int) -> list[_Box]:
    """Return boxes next to one another, in the middle of the picture."""
    row_width = len(names) * (_BOX_WIDTH + _GAP_X) - _GAP_X
    left = (width - row_width) // 2
    boxes = []
    for name in names:
        boxes.append(_Box(name=name, css_class=css_class, left=left, top=top))
        left += _BOX_WIDTH + _GAP_X
    return boxes


def _lines(boxes: dict[str, _Box], found: Imports) -> list[str]:
    """Return a line for each direct import."""
    lines = []
    for name in found:
        box = boxes[name]
        for imported_name in _direct_imports(name, found):
            imported = boxes[imported_name]
            start = f'x1="{box.middle}" y1="{box.bottom}"'
            end = f'x2="{imported.middle}" y2="{imported.top}"'
            lines.append(f"<line {start} {end}/>")
    return lines


def _title(text: str, left: int, top: int) -> str:
    """Return a title above what begins at `top`."""
    return f'<text class="title" x="{left}" y="{top - _TITLE_DISTANCE}">{text}</text>'
