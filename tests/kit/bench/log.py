"""Measure what the log of commands costs: the same command with the log and without it."""

import os
import statistics
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

from sampletool.kit.program import PACKAGE, WORKSPACE_FILE, env_variable
from tests.kit.bench.startup import Cost, time_one

_ROUNDS = 150
_AT_MOST_MS = 0.5


class Pair(NamedTuple):
    """Two runs of the same command, one after the other."""

    with_log: Cost
    without_log: Cost


def main() -> None:
    """Measure many pairs, and print the difference."""
    with tempfile.TemporaryDirectory(prefix="bench-") as name:
        directory = Path(name)
        (directory / WORKSPACE_FILE).write_text("[settings]\nlevel = 1\n")
        environ = {
            "PATH": os.environ["PATH"],
            "HOME": name,
            "PYTHONPATH": str(Path(__file__).parents[3]),
        }
        pairs = []
        for number in range(_ROUNDS):
            # Which of the two comes first changes from pair to pair.
            pairs.append(_time_pair(directory, environ, log_first=number % 2 == 0))
    _show(pairs)


def _time_pair(directory: Path, environ: dict[str, str], *, log_first: bool) -> Pair:
    if log_first:
        with_log = _time(directory, environ, "on")
        without_log = _time(directory, environ, "off")
    else:
        without_log = _time(directory, environ, "off")
        with_log = _time(directory, environ, "on")
    return Pair(with_log, without_log)


def _time(directory: Path, environ: dict[str, str], log: str) -> Cost:
    command: list[str | Path] = [sys.executable, "-m", PACKAGE, "config", "get", "level"]
    return time_one(command, directory, {**environ, env_variable("CALL_LOG"): log})


def _show(pairs: list[Pair]) -> None:
    """Print the median of the differences.

    Whatever else the machine does slows both runs of a pair alike.
    """
    processor_ms = statistics.median(
        pair.with_log.processor_ms - pair.without_log.processor_ms for pair in pairs
    )
    wall_ms = statistics.median(pair.with_log.wall_ms - pair.without_log.wall_ms for pair in pairs)
    title = f"median of {_ROUNDS} pairs"
    print(f"{title:<22} {'processor ms':>12} {'wall ms':>8} {'at most':>8}")
    print(f"{'log of a command':<22} {processor_ms:12.2f} {wall_ms:8.2f} {_AT_MOST_MS:8.1f}\n")


if __name__ == "__main__":
    main()
