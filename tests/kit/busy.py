"""Run the suite where processor time is scarce: `make busy`.

It runs once next to busy loops, and then twice at the same time.

    python -m tests.kit.busy [--loops N] [PYTEST ARGUMENTS]

However this process ends, the loops end with it.
"""

import argparse
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

# After `kill -9` of this process, each loop has another parent, and exits.
_LOOP = """
import os, sys
while os.getppid() == int(sys.argv[1]):
    for _ in range(1_000_000):
        pass
"""
_SUITE = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider"]


def main() -> int:
    """Run the suites, and return the exit code of the first that failed."""
    parser = argparse.ArgumentParser(prog="make busy", description=__doc__)
    parser.add_argument("--loops", type=int, default=16)
    options, pytest_arguments = parser.parse_known_args()
    signal.signal(signal.SIGTERM, _exit)

    with busy_loops(options.loops) as pids:
        shown_pids = " ".join(str(pid) for pid in pids)
        sys.stdout.write(f"busy loops: {shown_pids}\n")
        sys.stdout.flush()
        exit_code = _run_suites(1, pytest_arguments)
    if exit_code != 0:
        return exit_code
    return _run_suites(2, pytest_arguments)


def _exit(number: int, _frame: FrameType | None) -> None:
    """Exit because of a signal, so that the blocks that end the children are left."""
    sys.exit(128 + number)


@contextmanager
def busy_loops(count: int) -> Iterator[list[int]]:
    """Start busy loops, and return their pids. They end with the block, or with this process."""
    command = [sys.executable, "-S", "-c", _LOOP, str(os.getpid())]
    loops = [subprocess.Popen(command) for _ in range(count)]
    try:
        yield [loop.pid for loop in loops]
    finally:
        for loop in loops:
            loop.kill()
            loop.wait()


def _run_suites(count: int, pytest_arguments: list[str]) -> int:
    """Run the suite several times at the same time, and return the largest exit code."""
    command = [*_SUITE, *pytest_arguments]
    suites = [subprocess.Popen(command) for _ in range(count)]
    try:
        exit_codes = [suite.wait() for suite in suites]
    finally:
        for suite in suites:
            suite.terminate()
            suite.wait()
    return max(exit_codes)


if __name__ == "__main__":
    sys.exit(main())
