"""`make run`: the same work done by many at once, the naive way and ours."""

import json
import os
import subprocess
import sys
import tempfile
import time
import tomllib
from pathlib import Path

CALLS = 20
NAIVE = [sys.executable, str(Path(__file__).with_name("naive_set.py")), "tool.toml"]
TOOL = [sys.executable, "-m", "sampletool"]
OURS = [*TOOL, "config", "set"]


def kept(command: list[str], directory: Path) -> int:
    """How many of the keys that CALLS processes set at once are there afterwards."""
    (directory / "tool.toml").write_text("[settings]\n")
    processes = [
        subprocess.Popen(
            [*command, f"key{n}", str(n)], cwd=directory, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        for n in range(CALLS)
    ]
    for process in processes:
        process.wait()
    try:
        return len(tomllib.loads((directory / "tool.toml").read_text())["settings"])
    except (tomllib.TOMLDecodeError, KeyError):
        return 0


def two_builds(directory: Path) -> None:
    """One works; the other is told who does, and when to come back."""
    directory.mkdir()
    (directory / "tool.toml").write_text('[target.slow]\nrun = ["sleep", "2"]\noutputs = ["x"]\n')
    first = subprocess.Popen([*TOOL, "build"], cwd=directory, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    while not list(directory.glob(".tool/tmp/*/*/slow")):
        time.sleep(0.01)
    second = subprocess.run([*TOOL, "build"], cwd=directory, capture_output=True, check=False)
    error = json.loads(second.stdout)["error"]
    say("Two builds at once: one works, and the other is told who does, and when to come back:")
    say(f"  $ tool build   # exit status {second.returncode}")
    for name in ("code", "message", "retryable", "retry_after_ms"):
        say(f"  {name}: {json.dumps(error[name])}")
    first.terminate()
    first.wait()
    say()


def say(line: str = "") -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def main() -> None:
    with tempfile.TemporaryDirectory(prefix="sampletool-") as scratch:
        directory = Path(scratch)
        say(f"{CALLS} processes each set a key of their own in one tool.toml, all at once:")
        say(f"  a naive script   {kept(NAIVE, directory):3} of {CALLS} changes are there afterwards")
        say(f"  tool config set  {kept(OURS, directory):3} of {CALLS} changes are there afterwards")
        say()
        two_builds(directory / "demo")
    say("Race conditions, each made to happen by a schedule, beside the way that holds (tool lab run --all):")
    say()
    subprocess.run([*TOOL, "lab", "run", "--all", "--format", "text"], check=False)
    say()
    say(f"Try it: {os.path.relpath(Path(sys.executable).with_name('tool'))} --help")


if __name__ == "__main__":
    main()
