"""`make run`: the same work done by many at once, the naive way and ours; then what each part's `show.py` shows."""

import os
import subprocess
import sys
import tempfile
import tomllib
from importlib import import_module
from pathlib import Path

from sampletool.kit.program import PACKAGE, PROGRAM, WORKSPACE_FILE

CALLS = 20
LONGEST_SECONDS = 60
NAIVE = [sys.executable, str(Path(__file__).with_name("naive_set.py")), WORKSPACE_FILE]
TOOL = [sys.executable, "-m", PACKAGE]
OURS = [*TOOL, "config", "set"]


def many_changes(scratch: Path) -> None:
    say(f"{CALLS} processes each set a key of their own in one {WORKSPACE_FILE}, all at once:")
    say(f"  a naive script   {kept(NAIVE, scratch):3} of {CALLS} changes are there afterwards")
    say(f"  {PROGRAM} config set  {kept(OURS, scratch):3} of {CALLS} changes are there afterwards")


def kept(command: list[str], directory: Path) -> int:
    """How many of the keys that CALLS processes set at once are there afterwards."""
    (directory / WORKSPACE_FILE).write_text("[settings]\n")
    processes = [
        subprocess.Popen(
            [*command, f"key{n}", str(n)], cwd=directory, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        for n in range(CALLS)
    ]
    for process in processes:
        ended(process)
    try:
        return len(tomllib.loads((directory / WORKSPACE_FILE).read_text())["settings"])
    except (tomllib.TOMLDecodeError, KeyError):
        return 0


def ended(process: subprocess.Popen[bytes]) -> None:
    try:
        process.wait(LONGEST_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def say(line: str = "") -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def main() -> None:
    with tempfile.TemporaryDirectory(prefix=f"{PACKAGE}-") as scratch:
        many_changes(Path(scratch))
        for file in sorted(Path(__file__).parents[2].glob("*/show.py")):
            say()
            import_module(f"docs.{file.parent.name}.show").show(Path(scratch))
    say()
    say(f"Try it: {os.path.relpath(Path(sys.executable).with_name(PROGRAM))} --help")


if __name__ == "__main__":
    main()
