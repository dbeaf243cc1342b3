"""Measure what waiting for a lock costs, and how fair it is.

The lock of the kit is compared with a lock for which each process asks every 10 ms, in one run.
"""

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

from sampletool.kit.testing.holding import holding

WAITERS = 50
WAIT_SECONDS = 10.0

LOOPERS = 8
HOLDS = 50
"""How often each looper takes the lock."""

_MOST_SECONDS = 0.5
_MOST_UNFAIR = 3.0
_MOST_HANDOVER_MS = 1.0

_SET = [
    str(Path(sys.executable).with_name("tool")),
    "config",
    "set",
    "level",
    "1",
    "--lock-timeout",
    "120s",
]

_LOOPER = """
import json, sys, time
from pathlib import Path
from filelock import FileLock
from sampletool.kit.safety.lock import Lock
path = Path(sys.argv[1])
print(flush=True)
sys.stdin.read()
holds = []
for _ in range(int(sys.argv[3])):
    asked = time.monotonic()
    if sys.argv[2] == "polling":
        lock = FileLock(path, poll_interval=0.01)
    else:
        lock = Lock(path).exclusively(60)
    with lock:
        got = time.monotonic()
        time.sleep(0.002)
        leaving = time.monotonic()
    holds.append((asked, got, leaving))
print(json.dumps(holds))
"""


class Hold(NamedTuple):
    """One hold of a lock, in seconds of the monotonic clock."""

    asked: float
    got: float
    leaving: float


def _workspace(directory: Path) -> Path:
    directory.mkdir()
    (directory / "tool.toml").write_text("[settings]\nlevel = 0\n")
    return directory


def processor_seconds_without_wait(workspaces: Sequence[Path], environ: dict[str, str]) -> float:
    """Run one command in each workspace at the same time, and return their processor time."""
    before = _children_seconds()
    _await_success(_start(workspaces, environ))
    return _children_seconds() - before


def processor_seconds_with_wait(workspace: Path, environ: dict[str, str]) -> float:
    """Return the processor time of commands that all wait for one lock, which is held meanwhile."""
    with holding(workspace / ".tool" / "locks" / "tool.toml.lock"):
        before = _children_seconds()
        processes = _start([workspace] * WAITERS, environ)
        time.sleep(WAIT_SECONDS)
        for process in processes:
            assert process.poll() is None, "a command has not waited"
    _await_success(processes)
    return _children_seconds() - before


def _children_seconds() -> float:
    """Return the processor time of all children that have exited."""
    times = os.times()
    return times.children_user + times.children_system


def _start(workspaces: Sequence[Path], environ: dict[str, str]) -> list[subprocess.Popen[bytes]]:
    processes = []
    for workspace in workspaces:
        process = subprocess.Popen(_SET, cwd=workspace, env=environ, stdout=subprocess.DEVNULL)
        processes.append(process)
    return processes


def _await_success(processes: Sequence[subprocess.Popen[bytes]]) -> None:
    for process in processes:
        assert process.wait() == 0


def loop(path: Path, kind: str) -> list[list[Hold]]:
    """Let several processes take a lock again and again, and return the holds of each process."""
    command = [sys.executable, "-c", _LOOPER, str(path), kind, str(HOLDS)]
    loopers = []
    for _ in range(LOOPERS):
        looper = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        loopers.append(looper)
    for looper in loopers:
        # The process prints an empty line when it is ready.
        assert looper.stdout is not None
        looper.stdout.readline()
    for looper in loopers:
        # The process begins when its stdin is closed.
        assert looper.stdin is not None
        looper.stdin.close()
        looper.stdin = None
    holds_of_loopers = []
    for looper in loopers:
        stdout, _ = looper.communicate()
        holds_of_loopers.append([Hold(*times) for times in json.loads(stdout)])
    return holds_of_loopers


def longest_waits_ms(holds_of_loopers: list[list[Hold]]) -> list[float]:
    """Return the longest wait of each process, the shortest of them first."""
    waits = []
    for holds in holds_of_loopers:
        longest_seconds = max(hold.got - hold.asked for hold in holds)
        waits.append(longest_seconds * 1000)
    return sorted(waits)


def handover_ms(holds_of_loopers: list[list[Hold]]) -> float:
    """Return the median time from the end of a hold to the beginning of the next one."""
    all_holds = [hold for holds in holds_of_loopers for hold in holds]
    all_holds.sort(key=lambda hold: hold.got)
    handovers = [after.got - before.leaving for before, after in pairwise(all_holds)]
    return statistics.median(handovers) * 1000


def main() -> None:
    """Measure and print the costs of a wait, then the fairness of both locks."""
    environ = {}
    for name, value in os.environ.items():
        if not name.startswith("TOOL_"):
            environ[name] = value
    with tempfile.TemporaryDirectory(prefix="bench-") as scratch:
        environ |= {"HOME": scratch, "XDG_CONFIG_HOME": scratch, "XDG_STATE_HOME": scratch}
        _show_costs(Path(scratch), environ)
        _show_fairness(Path(scratch))


def _show_costs(scratch: Path, environ: dict[str, str]) -> None:
    free = [_workspace(scratch / f"free-{number}") for number in range(WAITERS)]
    shared = _workspace(scratch / "shared")
    # The first command creates the lock file.
    subprocess.run(_SET, cwd=shared, env=environ, stdout=subprocess.DEVNULL, check=True)
    at_once = processor_seconds_without_wait(free, environ)
    waited = processor_seconds_with_wait(shared, environ)
    print(
        f"{WAITERS} commands, processor seconds: {at_once:.2f} without a wait, "
        f"{waited:.2f} with {WAIT_SECONDS:g} s"
    )
    print(f"  more: {waited - at_once:.2f} of at most {_MOST_SECONDS} s")


def _show_fairness(scratch: Path) -> None:
    print(
        f"{LOOPERS} processes, {HOLDS} holds of 2 ms each: "
        "longest wait of the luckiest, the unluckiest; handover"
    )
    for kind in ("polling", "kernel"):
        holds_of_loopers = loop(scratch / f"{kind}.lock", kind)
        waits = longest_waits_ms(holds_of_loopers)
        luckiest = waits[0]
        unluckiest = waits[-1]
        handover = handover_ms(holds_of_loopers)
        ratio = unluckiest / luckiest
        print(
            f"  {kind:<17} {luckiest:6.1f} ms {unluckiest:8.1f} ms {ratio:6.1f} {handover:5.2f} ms"
        )
    print(f"  at most{'':<32} {_MOST_UNFAIR:6.1f} {_MOST_HANDOVER_MS:5.2f} ms\n")


if __name__ == "__main__":
    main()
