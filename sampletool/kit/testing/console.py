"""Runs the console blocks of a page as a person would: at a terminal, in an empty home, one page after the other.

`$ ` begins a command and `> ` continues it; what follows is its output. `...` stands for anything, on a line of its own
for any lines.
A `cd` lasts until the end of the page.
"""

import os
import pty
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from ..program import PACKAGE, PROGRAM, variable

_BLOCK = re.compile(r"^```console\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_CONTINUED = re.compile(r"([^\n]*(?:\n>[^\n]*)*)\n(.*)", re.DOTALL)


class Command(NamedTuple):
    line: int
    text: str
    expected: str


def commands_of(page: str) -> Iterator[Command]:
    for block in _BLOCK.finditer(page):
        first_line = page[: block.start(1)].count("\n") + 1
        parts = re.split(r"^\$ ", block[1], flags=re.MULTILINE)
        line = first_line + parts[0].count("\n")
        for part in parts[1:]:
            text, expected = _CONTINUED.fullmatch(part).groups()  # type: ignore[union-attr]
            yield Command(line, re.sub("\n> ?", "\n", text), expected)
            line += part.count("\n")


def matches(expected: str, actual: str) -> bool:
    pattern = re.escape(expected.rstrip("\n"))
    pattern = pattern.replace("\\\n\\.\\.\\.", r"(?:\n.*)*").replace(r"\.\.\.", r"[^\n]*")
    return re.fullmatch(pattern, actual.rstrip("\n")) is not None


class Terminal:
    """Where the commands of one page run."""

    def __init__(self, directory: Path) -> None:
        self._directory, home, binaries = (directory / "terminal" / name for name in ("work", "home", "bin"))
        for made in (self._directory, home, binaries):
            made.mkdir(parents=True)
        self._shown = {str(self._directory): "~/work", str(home): "~"}
        self._left_at = directory / "terminal" / "left at"
        (binaries / PROGRAM).write_text(f'#!/bin/sh\nexec {sys.executable} -m {PACKAGE} "$@"\n')
        (binaries / PROGRAM).chmod(0o755)
        self._environ = {
            "PATH": f"{binaries}:{os.path.dirname(sys.executable)}:/usr/local/bin:/usr/bin:/bin",
            "HOME": str(home),
            "TMPDIR": str(home),
            "PYTHONPATH": str(Path(__file__).parents[3]),
            "TERM": "dumb",
            "LC_ALL": "C.UTF-8",
            "COLUMNS": "100",
            variable("CEILING_DIRECTORIES"): str(directory),
        }

    def run(self, command: str) -> str:
        tell_where = shlex.quote(f"pwd > {shlex.quote(str(self._left_at))}")
        script = f"trap {tell_where} EXIT; {command}"
        seen = on_terminal(["/bin/bash", "-c", script], self._directory, self._environ, stderr_too=True)
        self._directory = Path(self._left_at.read_text().removesuffix("\n"))
        for path, shown in self._shown.items():
            seen = seen.replace(path, shown)
        return seen


def on_terminal(argv: list[str], cwd: Path, environ: dict[str, str], *, stderr_too: bool = False) -> str:
    """What a person at a terminal would see of a command."""
    master, slave = pty.openpty()
    process = subprocess.Popen(
        argv,
        cwd=cwd,
        env=environ,
        stdin=subprocess.DEVNULL,
        stdout=slave,
        stderr=slave if stderr_too else subprocess.DEVNULL,
    )
    os.close(slave)
    seen = b""
    with suppress(OSError):  # how Linux says that nobody has the terminal open any more
        while chunk := os.read(master, 65536):
            seen += chunk
    process.wait()
    os.close(master)
    return seen.decode().replace("\r\n", "\n")
