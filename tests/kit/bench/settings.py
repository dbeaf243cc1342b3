"""Measure what changing one key costs in a small settings file and in a file of 10,000 keys."""

import os
import resource
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from sampletool.kit.program import PROGRAM, WORKSPACE_FILE

ROUNDS = 5
KEYS = 10_000
_AT_MOST_SECONDS = 1.5
_CHANGES: dict[str, Callable[[int], list[str]]] = {
    "update one of": lambda n: ["set", "key_5", str(n)],
    "add one to": lambda n: ["set", f"new_{n}", "1"],
    "unset one of": lambda n: ["unset", f"new_{n}"],
}
"""The arguments of the change in each round."""


def main() -> None:
    """Measure and print the processor time of each change, for both files."""
    tool = str(Path(sys.executable).with_name(PROGRAM))
    environ = dict(os.environ)
    # The installed tool has compiled bytecode.
    environ.pop("PYTHONDONTWRITEBYTECODE", None)
    with tempfile.TemporaryDirectory(prefix="bench-") as scratch:
        environ |= {"HOME": scratch, "XDG_CONFIG_HOME": scratch, "XDG_STATE_HOME": scratch}
        print(f"processor time of one change, median of {ROUNDS}")
        for key_count in (10, KEYS):
            _write_settings(Path(scratch, WORKSPACE_FILE), key_count)
            limit = ""
            if key_count == KEYS:
                limit = f"  (at most {_AT_MOST_SECONDS:.2f} s)"
            for name, arguments_of in _CHANGES.items():
                taken = []
                for number in range(ROUNDS):
                    command = [tool, "config", *arguments_of(number)]
                    taken.append(_seconds(command, scratch, environ))
                print(f"  {name:<13} {key_count:>6} keys {statistics.median(taken):6.2f} s{limit}")
    print()


def _write_settings(path: Path, key_count: int) -> None:
    lines = [f'key_{number} = "value {number}"' for number in range(key_count)]
    path.write_text("\n".join(["[settings]", *lines, ""]))


def _seconds(command: list[str], directory: str, environ: dict[str, str]) -> float:
    """Run a command, and return the processor time that it used."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, cwd=directory, env=environ, stdout=subprocess.DEVNULL, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


if __name__ == "__main__":
    main()
