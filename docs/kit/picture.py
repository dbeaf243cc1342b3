"""Draw docs/kit/terminal.svg: what four commands really print at a terminal of 80 columns.

`make pages` calls this. The commands run in a copy of the program without parts. So the picture
shows the kit, and stays the same when a part is added or removed.
"""

import os
import re
import shutil
import sys
import tempfile
from collections.abc import Iterator
from html import escape
from pathlib import Path

from sampletool.kit.program import PACKAGE, PROGRAM, WORKSPACE_FILE
from sampletool.kit.testing.console import on_terminal

_PACKAGE = Path(__file__).parents[2] / PACKAGE
_PICTURE = Path(__file__).with_name("terminal.svg")
_COMMANDS = ("config --help", "config list", "config get levle", "doctor")
_SETTINGS = '[settings]\nlevel = 3\nserver.url = "https://example.org"\n'

_COLUMNS = 80
_COLUMN_WIDTH = 7.3
_LINE_HEIGHT = 17
_MARGIN = 14

_STYLE = "text { font: 12px ui-monospace, Menlo, Consolas, monospace; fill: #1f2328 }"

_TERMINAL_CODE = re.compile(r"\x1b\[(\d+)m")
_ATTRIBUTES = {
    "1": "font-weight='bold'",
    "31": "fill='#d1242f'",
    "32": "fill='#1a7f37'",
    "33": "fill='#9a6700'",
}
"""How SVG shows the text after each terminal code. Other codes end all of these."""


def main() -> None:
    """Write the picture."""
    _PICTURE.write_text(draw(screens()))


def screens() -> list[str]:
    """Return the lines that the commands print one after the other, with terminal codes."""
    with tempfile.TemporaryDirectory() as directory:
        scratch = Path(directory)
        home = scratch / "home"
        work = scratch / "work"
        home.mkdir()
        work.mkdir()
        (work / WORKSPACE_FILE).write_text(_SETTINGS)
        _copy_kit(scratch / PACKAGE)
        environ = {
            "PATH": os.environ["PATH"],
            "HOME": str(home),
            "TMPDIR": str(home),
            "COLUMNS": str(_COLUMNS),
            "TERM": "xterm",
            "LC_ALL": "C.UTF-8",
            "PYTHONPATH": str(scratch),
        }
        lines: list[str] = []
        for command in _COMMANDS:
            argv = [sys.executable, "-m", PACKAGE, *command.split()]
            output = on_terminal(argv, work, environ, stderr_too=True)
            output = output.replace(str(work), "~/work").replace(str(home), "~").replace("\r", "")
            if command == "doctor":
                # The rest has the versions of this machine.
                output, _, _ = output.partition("\n\n")
            prompt = f"\x1b[1m$ {PROGRAM} {command}\x1b[0m"
            lines += [prompt, *output.rstrip("\n").split("\n"), ""]
        # No empty line after the last command.
        return lines[:-1]


def _copy_kit(copy: Path) -> None:
    """Copy the program without its parts."""
    ignored = shutil.ignore_patterns("__pycache__")
    shutil.copytree(_PACKAGE / "kit", copy / "kit", ignore=ignored)
    for file in _PACKAGE.glob("*.py"):
        shutil.copy(file, copy)


def draw(lines: list[str]) -> str:
    """Return the picture of a terminal with these lines."""
    width = round(_COLUMNS * _COLUMN_WIDTH + 2 * _MARGIN)
    height = _LINE_HEIGHT * len(lines) + 3 * _MARGIN
    rows = []
    for number, line in enumerate(lines, 1):
        spans = "".join(_spans(line))
        baseline = _MARGIN + _LINE_HEIGHT * number
        rows.append(f'<text xml:space="preserve" x="{_MARGIN}" y="{baseline}">{spans}</text>')
    body = "\n".join(rows)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
        f'viewBox="0 0 {width} {height}">\n'
        f"<title>Four commands at a terminal: {escape(', '.join(_COMMANDS))}</title>\n"
        f"<style>{_STYLE}</style>\n"
        f'<rect width="{width}" height="{height}" rx="8" fill="#f6f8fa"/>\n'
        f"{body}\n</svg>\n"
    )


def _spans(line: str) -> Iterator[str]:
    """Yield the parts of a line. A new part begins at each terminal code."""
    attributes = ""
    start = 0
    for code in _TERMINAL_CODE.finditer(line):
        yield from _span(line[start : code.start()], attributes)
        attributes = _ATTRIBUTES.get(code[1], "")
        start = code.end()
    yield from _span(line[start:], attributes)


def _span(text: str, attributes: str) -> Iterator[str]:
    if text:
        yield f"<tspan {attributes}>{escape(text)}</tspan>"
