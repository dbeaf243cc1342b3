"""`make run`: the same work done by many at once, the naive way and ours."""

import json
import os
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path

CALLS = 20
NAIVE = [sys.executable, str(Path(__file__).with_name("naive_set.py")), "tool.toml"]
OURS = [sys.executable, "-m", "sampletool", "config", "set"]


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
        say("One call, one answer:")
        answer = subprocess.run([*OURS, "key1", "val1"], cwd=directory, capture_output=True, check=True).stdout
        say(f"  $ tool config set key1 val1\n  {json.dumps(json.loads(answer)['data'])}")
        say()
        say(f"Try it: {os.path.relpath(Path(sys.executable).with_name('tool'))} --help")


if __name__ == "__main__":
    main()
