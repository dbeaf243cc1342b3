"""Writes docs/kit/terminal.svg: what four calls really print at a terminal of 80 columns. Part of `make pages`.

They run in a copy that has no part: the picture is about the kit, and stays the same when a part comes or goes.
"""

import os
import re
import shutil
import sys
import tempfile
from html import escape
from itertools import pairwise
from pathlib import Path

from sampletool.kit.program import PACKAGE, PROGRAM, WORKSPACE_FILE
from sampletool.kit.testing.console import on_terminal

_PACKAGE = Path(__file__).parents[2] / PACKAGE
_CALLS = ("config --help", "config list", "config get levle", "doctor")
_PICTURE = Path(__file__).with_name("terminal.svg")
_COLUMNS, _WIDTH, _HEIGHT, _MARGIN = 80, 7.3, 17, 14
_STYLES = {"1": "font-weight='bold'", "31": "fill='#d1242f'", "32": "fill='#1a7f37'", "33": "fill='#9a6700'"}


def screens() -> list[str]:
    """The lines of all calls, one after the other, with the codes of a terminal in them."""
    with tempfile.TemporaryDirectory() as scratch:
        work, home, copy = (Path(scratch) / name for name in ("work", "home", PACKAGE))
        shutil.copytree(_PACKAGE / "kit", copy / "kit", ignore=shutil.ignore_patterns("__pycache__"))
        for file in _PACKAGE.glob("*.py"):
            shutil.copy(file, copy)
        for directory in (work, home):
            directory.mkdir()
        (work / WORKSPACE_FILE).write_text('[settings]\nlevel = 3\nserver.url = "https://example.org"\n')
        environ = {"PATH": os.environ["PATH"], "HOME": str(home), "TMPDIR": str(home), "COLUMNS": str(_COLUMNS)}
        environ |= {"TERM": "xterm", "LC_ALL": "C.UTF-8", "PYTHONPATH": scratch}
        lines: list[str] = []
        for call in _CALLS:
            said = on_terminal([sys.executable, "-m", PACKAGE, *call.split()], work, environ, stderr_too=True)
            said = said.replace(str(work), "~/work").replace(str(home), "~").replace("\r", "")
            if call == "doctor":  # the versions of this machine are of no interest
                said = said.partition("\n\n")[0]
            lines += [f"\x1b[1m$ {PROGRAM} {call}\x1b[0m", *said.rstrip("\n").split("\n"), ""]
        return lines[:-1]


def drawn(lines: list[str]) -> str:
    rows = []
    for number, line in enumerate(lines):
        codes = [*re.finditer(r"\x1b\[(\d+)m", line)]
        ends = [(0, ""), *((code.end(), _STYLES.get(code[1], "")) for code in codes), (len(line), "")]
        starts = [*(code.start() for code in codes), len(line)]
        spans = "".join(
            f"<tspan {style}>{escape(line[begin:end])}</tspan>"
            for ((begin, style), _), end in zip(pairwise(ends), starts, strict=True)
            if begin < end
        )
        rows.append(f'<text xml:space="preserve" x="{_MARGIN}" y="{_MARGIN + _HEIGHT * (number + 1)}">{spans}</text>')
    width, height = round(_COLUMNS * _WIDTH + 2 * _MARGIN), _HEIGHT * len(lines) + 3 * _MARGIN
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}">\n'
        f"<title>Four calls at a terminal: {escape(', '.join(_CALLS))}</title>\n"
        "<style>text { font: 12px ui-monospace, Menlo, Consolas, monospace; fill: #1f2328 }</style>\n"
        f'<rect width="{width}" height="{height}" rx="8" fill="#f6f8fa"/>\n' + "\n".join(rows) + "\n</svg>\n"
    )


def main() -> None:
    _PICTURE.write_text(drawn(screens()))
