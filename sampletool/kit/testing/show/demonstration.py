"""The demonstrations that `make run` prints.

First, many processes change one file at the same time: once with a naive script, once with the
tool. Then comes the demonstration of each part that has one, in its docs/PART/show.py.
"""

import os
import signal
import subprocess
import sys
import tempfile
import tomllib
from importlib import import_module
from pathlib import Path

from ...program import PACKAGE, PROGRAM, WORKSPACE_FILE
from ...project import ROOT

PROCESSES = 20
MAX_SECONDS = 60
"""The longest time that a process of a demonstration may take. It is for a machine that is busy."""

NAIVE_SET = [
    sys.executable,
    str(Path(__file__).with_name("naive_set.py")),
    WORKSPACE_FILE,
]
TOOL = [sys.executable, "-m", PACKAGE]
TOOL_SET = [*TOOL, "config", "set"]


def main() -> None:
    """Print all demonstrations, then what to do next. Ctrl-C stops this with a short notice."""
    try:
        show_all()
    except KeyboardInterrupt:
        say()
        say("Stopped by Ctrl-C.")
        raise SystemExit(128 + signal.SIGINT) from None


def show_all() -> None:
    """Print all demonstrations, then what to do next."""
    with tempfile.TemporaryDirectory(prefix=f"{PACKAGE}-") as directory:
        scratch = Path(directory)
        show_many_changes(scratch)
        for file in sorted(ROOT.glob("docs/*/show.py")):
            say()
            import_module(f"docs.{file.parent.name}.show").show(scratch)
    say()
    heading("What next")
    program = os.path.relpath(Path(sys.executable).with_name(PROGRAM))
    say(f"List the commands:       {program} --help")
    if (ROOT / "docs" / "index.md").exists():
        say("Read the documentation:  docs/index.md")


def show_many_changes(scratch: Path) -> None:
    """Compare the tool with a naive script when many processes change one file."""
    heading("Many changes at the same time")
    say(f"{PROCESSES} processes run at the same time. Each adds a key to {WORKSPACE_FILE}.")
    say()
    saved_by_script = count_saved(NAIVE_SET, scratch)
    say(f"  a naive script   {saved_by_script:3} of {PROCESSES} keys were saved")
    saved_by_tool = count_saved(TOOL_SET, scratch)
    say(f"  {PROGRAM} config set  {saved_by_tool:3} of {PROCESSES} keys were saved")
    say()
    say("The script reads the file, adds its key and writes the file. If two scripts read")
    say("the file before one of them writes it, a key is lost. `config set` does the same")
    say("under a lock, so each process reads what the previous one wrote.")


def count_saved(command: list[str], directory: Path) -> int:
    """Run the command in many processes. Return how many of their keys are in the file then.

    Return 0 if the file is not TOML any more.
    """
    file = directory / WORKSPACE_FILE
    file.write_text("[settings]\n")
    processes = []
    try:
        for number in range(PROCESSES):
            process = subprocess.Popen(
                [*command, f"key{number}", str(number)],
                cwd=directory,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
            )
            processes.append(process)
        for process in processes:
            wait_for(process)
    finally:
        # After Ctrl-C, the directory is deleted. A process that still runs could write to it.
        for process in processes:
            process.kill()
            process.wait()
    try:
        return len(tomllib.loads(file.read_text())["settings"])
    except (tomllib.TOMLDecodeError, KeyError):
        return 0


def wait_for(process: subprocess.Popen[bytes]) -> None:
    """Wait until the process exits. Kill it if it takes too long."""
    try:
        process.wait(MAX_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def heading(title: str) -> None:
    """Print the title of a demonstration."""
    say(title)
    say("-" * len(title))


def say(line: str = "") -> None:
    """Print a line now, so that it appears before the output of the next process."""
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()
