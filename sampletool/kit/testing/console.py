"""Run the console blocks of a page as a reader would: at a terminal, and one after the other.

In a block, `$ ` begins a command and `> ` continues it. The lines below are its expected output. In
them, `...` stands for any text. On a line of its own, `...` stands for any lines, or none.

The home directory is empty. A `cd` lasts until the end of the page.
"""

import os
import pty
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from ..program import PACKAGE, PROGRAM, env_variable
from ..project import ROOT
from .forked import is_forkable, start_python
from .tool import Process

_SHELL = "/bin/bash"
_BLOCK = re.compile(r"^```console\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_PROMPT = re.compile(r"^\$ ", re.MULTILINE)
_CONTINUATION_PROMPT = re.compile(r"^> ?")

_ANY_LINES = r"(?:\n.*)*"
_ANY_TEXT = re.escape("...")


@dataclass(frozen=True)
class Command:
    """A command in a page."""

    line: int
    """The number of its first line in the page, at least 1."""
    text: str
    """The command without prompts. It may have several lines."""
    expected: str
    """Its output, according to the page."""


def commands_of(page: str) -> Iterator[Command]:
    """Yield the commands in the console blocks of a page."""
    for block in _BLOCK.finditer(page):
        block_start = page[: block.start(1)]
        line = block_start.count("\n") + 1
        # Each part but the first begins after a prompt, with a command.
        before_first_prompt, *parts = _PROMPT.split(block[1])
        line += before_first_prompt.count("\n")
        for part in parts:
            yield _parse_command(part, line)
            line += part.count("\n")


def _parse_command(part: str, line: int) -> Command:
    """Return the command at the beginning of this part of a block, with the output after it."""
    command_lines: list[str] = []
    output_lines: list[str] = []
    for text in part.splitlines(keepends=True):
        if not command_lines:
            command_lines.append(text)
        elif _CONTINUATION_PROMPT.match(text) and not output_lines:
            command_lines.append(_CONTINUATION_PROMPT.sub("", text))
        else:
            output_lines.append(text)
    return Command(
        line=line,
        text="".join(command_lines).removesuffix("\n"),
        expected="".join(output_lines),
    )


def matches(expected: str, actual: str) -> bool:
    """Return whether a command has printed what the page expects."""
    pattern = ""
    for line in expected.rstrip("\n").split("\n"):
        if line == "...":
            pattern += _ANY_LINES
        else:
            pattern += r"\n" + re.escape(line).replace(_ANY_TEXT, r"[^\n]*")
    # In the pattern, each line begins with the end of the line before it.
    actual_lines = "\n" + actual.rstrip("\n")
    return re.fullmatch(pattern, actual_lines) is not None


class Terminal:
    """A terminal in which the commands of one page run."""

    def __init__(self, directory: Path) -> None:
        """Create the home directory and the working directory, which is `~/work`."""
        top = directory / "terminal"
        home = top / "home"
        binaries = top / "bin"
        self._directory = top / "work"
        for new_directory in (self._directory, home, binaries):
            new_directory.mkdir(parents=True)

        # A page shows these paths in their short form.
        self._short_paths = {str(self._directory): "~/work", str(home): "~"}
        self._last_directory_file = top / "last directory"

        launcher = binaries / PROGRAM
        launcher.write_text(f'#!/bin/sh\nexec {sys.executable} -m {PACKAGE} "$@"\n')
        launcher.chmod(0o755)
        interpreter_directory = os.path.dirname(sys.executable)
        self._env = {
            "PATH": f"{binaries}:{interpreter_directory}:/usr/local/bin:/usr/bin:/bin",
            "HOME": str(home),
            "TMPDIR": str(home),
            "PYTHONPATH": str(ROOT),
            "TERM": "dumb",
            "LC_ALL": "C.UTF-8",
            "COLUMNS": "100",
            env_variable("CEILING_DIRECTORIES"): str(directory),
        }

    def run(self, command: str) -> str:
        """Run a command of the shell, and return what a person would see."""
        # Each command has a shell of its own. When it exits, it saves its directory for the next.
        save_directory = f"pwd > {shlex.quote(str(self._last_directory_file))}"
        script = f"trap {shlex.quote(save_directory)} EXIT; {command}"
        output = on_terminal(
            [_SHELL, "-c", script],
            self._directory,
            self._env,
            stderr_too=True,
        )
        last_directory = self._last_directory_file.read_text().removesuffix("\n")
        self._directory = Path(last_directory)
        for path, short_path in self._short_paths.items():
            output = output.replace(path, short_path)
        return output


def on_terminal(
    argv: Sequence[str],
    cwd: Path,
    environ: Mapping[str, str],
    *,
    stderr_too: bool = False,
) -> str:
    """Run a command whose stdout is a terminal, and return its output.

    If the command is a Python program, it runs in a forked process (see forked.py).

    With `stderr_too`, stderr is the same terminal. Otherwise it is discarded.
    """
    master, terminal = pty.openpty()
    stderr = subprocess.DEVNULL
    if stderr_too:
        stderr = terminal
    process: Process
    if argv[0] == sys.executable and is_forkable(environ):
        process = start_python(*argv[1:], env=environ, cwd=cwd, stdout=terminal, stderr=stderr)
    else:
        process = subprocess.Popen(
            argv,
            cwd=cwd,
            env=environ,
            stdin=subprocess.DEVNULL,
            stdout=terminal,
            stderr=stderr,
        )
    os.close(terminal)
    output = _read_until_closed(master)
    process.wait()
    os.close(master)
    return output.decode().replace("\r\n", "\n")


def _read_until_closed(master: int) -> bytes:
    """Return what is written to a terminal, until no process has it open any more."""
    output = b""
    while True:
        try:
            chunk = os.read(master, 65536)
        except OSError:
            # This is how Linux reports that the terminal is closed.
            return output
        if not chunk:
            # This is how other systems report it.
            return output
        output += chunk
