"""Trace one command of the tool: which files of the package run, and in which order.

The architecture page shows the result for `tool config set a 1`. To see the trace of any command,
as rows for that page, run it in a directory of your own:

    python -m tests.kit.project.walk config set a 1

If functions of files on the page were renamed, this command corrects their rows:

    python -m tests.kit.project.walk --update

It prints the rows that it changed, because their text may no longer fit, and the rows that you have
to add, remove or move.
"""

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from sampletool.kit.program import PACKAGE, PROGRAM, WORKSPACE_FILE
from sampletool.kit.project import ROOT

PAGE = "docs/kit/architecture.md"
COMMAND = ["config", "set", "a", "1"]
"""The command that the page follows. It runs in a workspace without settings."""

_ROW = re.compile(r"^\| (`[^`]*`) \|([^|]*)\|([^|]*)\| [^|]+ \|$", re.MULTILINE)

_TRACED = """
import json, os, runpy, sys

root, package, trace_path, *sys.argv = sys.argv[1:]
visits = []
known_files = set()
imports_below = 0

def is_ours(frame):
    return frame.f_code.co_filename.startswith(os.path.join(root, package, ""))

def caller_of(frame):
    frame = frame.f_back
    # Between two functions of ours, there may be Typer, or a function without a name.
    while frame is not None and (not is_ours(frame) or "<" in frame.f_code.co_qualname):
        frame = frame.f_back
    if frame is None:
        return ""
    module = os.path.basename(frame.f_code.co_filename).removesuffix(".py")
    return module + "." + frame.f_code.co_qualname

def see(frame, event, argument):
    global imports_below
    if not is_ours(frame):
        return
    code = frame.f_code
    is_main = frame.f_globals.get("__name__") == "__main__"
    if code.co_name == "<module>" and not is_main:
        # What runs while a module is imported belongs to no step of the walk.
        imports_below += {"call": 1, "return": -1}.get(event, 0)
        return
    if event != "call" or imports_below or code.co_filename in known_files:
        return
    known_files.add(code.co_filename)
    file = os.path.relpath(code.co_filename, root)
    visits.append([file, code.co_qualname, caller_of(frame)])

def exit_with_trace(status):
    sys.setprofile(None)
    with open(trace_path, "w") as file:
        json.dump(visits, file)
    leave(status)

# The tool ends with os._exit, so nothing after it would run.
leave = os._exit
os._exit = exit_with_trace
sys.setprofile(see)
runpy.run_module(package, run_name="__main__", alter_sys=True)
"""


@dataclass(frozen=True)
class Visit:
    """A file that a command enters for the first time."""

    file: str
    """The path of the file, from the root of the project."""
    function: str
    """The function that is entered, with the name of its class: `Context.editing`."""
    caller: str
    """The function that calls it, with the name of its module: `set.command`."""

    def row(self) -> str:
        """Return the row of the table on the page, without what the reader learns from it."""
        cells = [f"`{cell}`" if cell else "" for cell in (self.file, self.function, self.caller)]
        return f"| {' | '.join(cells)} |"


def trace(command: list[str], cwd: Path, environ: dict[str, str], trace_path: Path) -> list[Visit]:
    """Run a command of the tool. Return the files that it entered, in this order."""
    # A new interpreter, because a process of the fork server has imported everything already.
    script = [sys.executable, "-c", _TRACED, str(ROOT), PACKAGE, str(trace_path), PROGRAM, *command]
    environ = {**environ, "PYTHONPATH": str(ROOT)}
    subprocess.run(script, cwd=cwd, env=environ, check=True, capture_output=True)
    visits = []
    for file, function, caller in json.loads(trace_path.read_text()):
        name = "" if function == "<module>" else function
        visits.append(Visit(file=file, function=name, caller=caller))
    return visits


def visits_on_page(text: str) -> list[Visit]:
    """Return the rows of all tables with four columns whose first one is a file."""
    visits = []
    for cells in _ROW.findall(text):
        file, function, caller = (cell.strip(" `") for cell in cells)
        visits.append(Visit(file=file, function=function, caller=caller))
    return visits


def corrections(shown: list[Visit], traced: list[Visit]) -> list[str]:
    """Return what to change on the page, so that its rows are those of the trace."""
    traced_files = [visit.file for visit in traced]
    found = []
    for visit in shown:
        if visit.file not in traced_files:
            found.append(f"Remove the row of {visit.file}: the command does not enter this file.")
    found += _wrong_rows(shown, traced)
    if not found and shown != traced:
        found.append(f"Put the rows into this order: {', '.join(traced_files)}")
    return [f"{PAGE}: {correction}" for correction in found]


def _wrong_rows(shown: list[Visit], traced: list[Visit]) -> Iterator[str]:
    """Yield how to correct each row that is missing or has another beginning."""
    by_file = {visit.file: visit for visit in shown}
    previous = "the head of the first table"
    for visit in traced:
        on_page = by_file.get(visit.file)
        if on_page is None:
            row = f"{visit.row()} What this file adds. |"
            yield f"Add this row after {previous}: {row}"
        elif on_page != visit:
            yield f"Let the row of {visit.file} begin with: {visit.row()}"
        previous = f"the row of {visit.file}"


def with_present_names(text: str, traced: list[Visit]) -> str:
    """Return the page with the functions and callers of the trace in the rows that it has."""
    for shown in visits_on_page(text):
        for visit in traced:
            if visit.file == shown.file:
                text = text.replace(shown.row(), visit.row())
    return text


def _update_page(scratch: Path) -> None:
    # With settings of the user, the command would take another path.
    environ = {"PATH": os.environ["PATH"], "HOME": str(scratch), "TMPDIR": str(scratch)}
    workspace = scratch / "workspace"
    workspace.mkdir()
    (workspace / WORKSPACE_FILE).touch()
    traced = trace(COMMAND, workspace, environ, scratch / "trace")
    page = ROOT / PAGE
    before = page.read_text()
    after = with_present_names(before, traced)
    page.write_text(after)
    for visit in visits_on_page(after):
        if visit not in visits_on_page(before):
            print(f"{PAGE}: Does the text of this row still fit? {visit.row()}")
    for correction in corrections(visits_on_page(after), traced):
        print(correction)


def main(arguments: list[str]) -> None:
    """Correct the page, or print the rows of a command."""
    with TemporaryDirectory() as scratch:
        if arguments == ["--update"]:
            _update_page(Path(scratch))
            return
        for visit in trace(arguments, Path.cwd(), dict(os.environ), Path(scratch, "trace")):
            print(visit.row())


if __name__ == "__main__":
    main(sys.argv[1:])
