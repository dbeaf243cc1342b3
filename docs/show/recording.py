"""Run the commands of a demonstration, and record what appears on the terminal, and when."""

import json
import subprocess
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

_COLUMNS = 96
_SECONDS_TO_READ = 1.2
"""The pause after a command, so that a viewer can read its output."""
_SECONDS_TO_TYPE = 0.6
"""The pause before a command. It appears at once, because typing takes a viewer's time."""
_LONGEST_SECONDS = 60


@dataclass(frozen=True)
class Step:
    """One command of a demonstration."""

    command: str
    user: str = ""
    """Who runs it. The prompt shows the name."""
    in_background: bool = False
    """Start the command, and continue with the next step while it runs."""
    seconds_before: float = 0.0
    """How long to wait before the command, for example until a command in the background works."""

    @property
    def prompt(self) -> str:
        """Return what is before the command."""
        return f"{self.user}$ "


@dataclass(frozen=True)
class Line:
    """A line on the terminal."""

    seconds: float
    """When it appears, after the beginning of the recording."""
    text: str
    user: str = ""
    is_command: bool = False


class _Running:
    """A command that runs in the background."""

    def __init__(self, step: Step, directory: Path, environ: Mapping[str, str]) -> None:
        self.step = step
        self.process = _start(step, directory, environ)

    def output(self) -> str:
        """Wait for the command, and return what it printed."""
        output, _ = self.process.communicate(timeout=_LONGEST_SECONDS)
        return output


def record(steps: list[Step], directory: Path, environ: Mapping[str, str]) -> list[Line]:
    """Run the steps in a directory, and return the lines of the terminal.

    The lines appear at the times when they really appeared, plus pauses for the viewer.
    """
    lines: list[Line] = []
    running: list[_Running] = []
    clock = _Clock()
    for step in steps:
        time.sleep(step.seconds_before)
        clock.add(_SECONDS_TO_TYPE)
        lines += _command_lines(step, clock.now())
        if step.in_background:
            running.append(_Running(step, directory, environ))
            continue
        output, _ = _start(step, directory, environ).communicate(timeout=_LONGEST_SECONDS)
        # A command in the background that has exited meanwhile was first: this one waited for it.
        for finished in [each for each in running if each.process.poll() is not None]:
            running.remove(finished)
            lines += _output_lines(finished.output(), clock.now(), finished.step)
        lines += _output_lines(output, clock.now(), step)
        clock.add(_SECONDS_TO_READ)
    assert not running, "a command still runs at the end of the demonstration"
    return lines


def _start(step: Step, directory: Path, environ: Mapping[str, str]) -> "subprocess.Popen[str]":
    session = {"TOOL_SESSION_ID": step.user} if step.user else {}
    return subprocess.Popen(
        ["bash", "-c", step.command],  # noqa: S607 - the shell of the demonstration
        cwd=directory,
        env={**environ, **session},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def _command_lines(step: Step, seconds: float) -> Iterator[Line]:
    first, *others = step.command.split("\n")
    yield Line(seconds, f"{step.prompt}{first}", step.user, is_command=True)
    for other in others:
        yield Line(seconds, f"> {other}", step.user, is_command=True)


def _output_lines(output: str, seconds: float, step: Step) -> Iterator[Line]:
    for text in output.splitlines():
        yield Line(seconds, text, step.user)


class _Clock:
    """The time since the beginning of the recording, with pauses that nobody had to wait for."""

    def __init__(self) -> None:
        self._began = time.monotonic()
        self._pauses = 0.0

    def add(self, seconds: float) -> None:
        """Add a pause."""
        self._pauses += seconds

    def now(self) -> float:
        """Return the time."""
        return time.monotonic() - self._began + self._pauses


def asciicast(lines: list[Line], title: str) -> str:
    """Return a recording in the format of asciinema, version 2."""
    header = {"version": 2, "width": _COLUMNS, "height": len(lines) + 1, "title": title}
    rows = [json.dumps(header)]
    for line in lines:
        rows.append(json.dumps([round(line.seconds, 3), "o", f"{line.text}\r\n"]))
    return "\n".join(rows) + "\n"
