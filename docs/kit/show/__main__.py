"""`make run`: the same work done by many at once, the naive way and ours. Where a command is gone, so is its part."""

import json
import os
import subprocess
import sys
import tempfile
import time
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

CALLS = 20
LONGEST_SECONDS = 60
NAIVE = [sys.executable, str(Path(__file__).with_name("naive_set.py")), "tool.toml"]
TOOL = [sys.executable, "-m", "sampletool"]
OURS = [*TOOL, "config", "set"]


def many_changes(scratch: Path) -> None:
    say(f"{CALLS} processes each set a key of their own in one tool.toml, all at once:")
    say(f"  a naive script   {kept(NAIVE, scratch):3} of {CALLS} changes are there afterwards")
    say(f"  tool config set  {kept(OURS, scratch):3} of {CALLS} changes are there afterwards")


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
        ended(process)
    try:
        return len(tomllib.loads((directory / "tool.toml").read_text())["settings"])
    except (tomllib.TOMLDecodeError, KeyError):
        return 0


def two_builds(scratch: Path) -> None:
    """One works; the other is told who does, and when to come back."""
    demo = scratch / "demo"
    demo.mkdir()
    (demo / "tool.toml").write_text('[target.slow]\nrun = ["sleep", "2"]\noutputs = ["x"]\n')
    with building(demo):
        second = subprocess.run([*TOOL, "build"], cwd=demo, capture_output=True, check=False, timeout=LONGEST_SECONDS)
    error = json.loads(second.stdout).get("error", {})
    say("Two builds at once: one works, and the other is told who does, and when to come back:")
    say(f"  $ tool build   # exit status {second.returncode}")
    for name in ("code", "message", "retryable", "retry_after_ms"):
        say(f"  {name}: {json.dumps(error.get(name))}")


@contextmanager
def building(directory: Path) -> Iterator[None]:
    """Somebody is in the middle of a build, as far as that can be waited for."""
    process = subprocess.Popen([*TOOL, "build"], cwd=directory, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    deadline = time.monotonic() + LONGEST_SECONDS
    try:
        while not list(directory.glob(".tool/tmp/*/*/slow")) and process.poll() is None and time.monotonic() < deadline:
            time.sleep(0.01)
        yield
    finally:
        process.terminate()
        ended(process)


def races(_scratch: Path) -> None:
    say("Race conditions, each made to happen by a schedule, beside the way that holds (tool lab run --all):")
    say()
    subprocess.run([*TOOL, "lab", "run", "--all", "--format", "text", "--timeout", "5m"], check=False)


def ended(process: subprocess.Popen[bytes]) -> None:
    try:
        process.wait(LONGEST_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def say(line: str = "") -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


PARTS = {"config set": many_changes, "build": two_builds, "lab run": races}
"""The command that each part needs, and the part."""


def is_there(command: str) -> bool:
    asked = [*TOOL, *command.split(), "--help"]
    return subprocess.run(asked, capture_output=True, check=False, timeout=LONGEST_SECONDS).returncode == 0


def main() -> None:
    with tempfile.TemporaryDirectory(prefix="sampletool-") as scratch:
        for command, part in PARTS.items():
            if is_there(command):
                part(Path(scratch))
                say()
    say(f"Try it: {os.path.relpath(Path(sys.executable).with_name('tool'))} --help")


if __name__ == "__main__":
    main()
