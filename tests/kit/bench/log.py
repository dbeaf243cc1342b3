"""What the log of calls costs: the same call with it and without it, one after the other, many times."""

import os
import statistics
import sys
import tempfile
from pathlib import Path

from sampletool.kit.program import PACKAGE, WORKSPACE_FILE, env_variable
from tests.kit.bench.startup import Cost, time_one

_ROUNDS = 150
_AT_MOST_MS = 0.5


def main() -> None:
    with tempfile.TemporaryDirectory(prefix="bench-") as name:
        Path(name, WORKSPACE_FILE).write_text("[settings]\nlevel = 1\n")
        environ = {
            "PATH": os.environ["PATH"],
            "HOME": name,
            "PYTHONPATH": str(Path(__file__).parents[3]),
        }
        show([pair(name, environ, is_first=number % 2 == 0) for number in range(_ROUNDS)])


def pair(directory: str, environ: dict[str, str], *, is_first: bool) -> tuple[Cost, Cost]:
    """With it and without it; which of them comes first changes from pair to pair."""
    if is_first:
        return one(directory, environ, "on"), one(directory, environ, "off")
    without = one(directory, environ, "off")
    return one(directory, environ, "on"), without


def one(directory: str, environ: dict[str, str], log: str) -> Cost:
    call: list[str | Path] = [sys.executable, "-m", PACKAGE, "config", "get", "level"]
    return time_one(call, Path(directory), {**environ, env_variable("CALL_LOG"): log})


def show(taken: list[tuple[Cost, Cost]]) -> None:
    """The median of the differences: what the machine does besides falls on both calls of a pair alike."""
    print(f"{f'median of {_ROUNDS} pairs':<22} {'processor ms':>12} {'wall ms':>8} {'at most':>8}")
    processor, wall = (
        statistics.median(pair[0][n] - pair[1][n] for pair in taken) for n in range(2)
    )
    print(f"{'log of a call':<22} {processor:12.2f} {wall:8.2f} {_AT_MOST_MS:8.1f}\n")
