"""`make busy`: the suite where processor time is scarce: once beside busy loops, then twice at the same time.

`python -m tests.kit.busy [--loops N] [PYTEST ARGUMENTS]`. However this process ends, the loops end with it.
"""

import argparse
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

_LOOP = "import os, sys\nwhile os.getppid() == int(sys.argv[1]):\n    for _ in range(1_000_000): pass"
_SUITE = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider"]


def main() -> int:
    parser = argparse.ArgumentParser(prog="make busy", description=__doc__)
    parser.add_argument("--loops", type=int, default=16)
    chosen, arguments = parser.parse_known_args()
    signal.signal(signal.SIGTERM, lambda number, _frame: sys.exit(128 + number))

    with busy_loops(chosen.loops) as pids:
        sys.stdout.write(f"busy loops: {' '.join(map(str, pids))}\n")
        sys.stdout.flush()
        beside = _suites(1, arguments)
    return beside or _suites(2, arguments)


@contextmanager
def busy_loops(count: int) -> Iterator[list[int]]:
    """Their pids. They end with the block, or with this process."""
    loops = [subprocess.Popen([sys.executable, "-S", "-c", _LOOP, str(os.getpid())]) for _ in range(count)]
    try:
        yield [loop.pid for loop in loops]
    finally:
        for loop in loops:
            loop.kill()
            loop.wait()


@contextmanager
def one_processor() -> Iterator[None]:
    """For this process and those that it starts; where a system has no such thing, all of them."""
    if not hasattr(os, "sched_setaffinity"):
        yield
        return
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {max(before)})
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


def _suites(count: int, arguments: list[str]) -> int:
    """The worst status of so many at the same time."""
    running = [subprocess.Popen([*_SUITE, *arguments]) for _ in range(count)]
    try:
        return max(suite.wait() for suite in running)
    finally:
        for suite in running:
            suite.terminate()
            suite.wait()


if __name__ == "__main__":
    sys.exit(main())
