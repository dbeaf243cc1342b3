"""What waiting for a lock costs and how fair it is: our lock, and a lock that is asked for every 10 ms, in one run."""

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

from sampletool.kit.testing.holding import holding

WAITERS, WAIT_SECONDS = 50, 10.0
LOOPERS, HOLDS = 8, 50
_MOST_SECONDS, _MOST_UNFAIR, _MOST_HANDOVER_MS = 0.5, 3.0, 1.0
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
    lock = FileLock(path, poll_interval=0.01) if sys.argv[2] == "polling" else Lock(path).exclusively(60)
    with lock:
        got = time.monotonic()
        time.sleep(0.002)
        leaving = time.monotonic()
    holds.append((asked, got, leaving))
print(json.dumps(holds))
"""


def _workspace(directory: Path) -> Path:
    directory.mkdir()
    (directory / "tool.toml").write_text("[settings]\nlevel = 0\n")
    return directory


def processor_seconds(
    workspaces: Sequence[Path], environ: dict[str, str], lock: Path | None = None
) -> float:
    """What the calls use, one in each of the workspaces; with a lock, it is held until they have waited for it."""
    before = os.times()
    if lock is None:
        calls = _start(workspaces, environ)
    else:
        with holding(lock):
            held = os.times()
            calls = _start(workspaces, environ)
            time.sleep(WAIT_SECONDS)
            assert all(call.poll() is None for call in calls), "a call has not waited"
        before = held
    assert [call.wait() for call in calls] == [0] * len(calls)
    after = os.times()
    return (after.children_user + after.children_system) - (
        before.children_user + before.children_system
    )


def _start(workspaces: Sequence[Path], environ: dict[str, str]) -> list[subprocess.Popen[bytes]]:
    return [
        subprocess.Popen(_SET, cwd=cwd, env=environ, stdout=subprocess.DEVNULL)
        for cwd in workspaces
    ]


def loop(path: Path, kind: str) -> list[list[tuple[float, float, float]]]:
    """When each hold of each process was asked for, had and left."""
    argv = [sys.executable, "-c", _LOOPER, str(path), kind, str(HOLDS)]
    loopers = [
        subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        for _ in range(LOOPERS)
    ]
    for looper in loopers:
        assert looper.stdout is not None
        looper.stdout.readline()
    for looper in loopers:
        assert looper.stdin is not None
        looper.stdin.close()
        looper.stdin = None
    return [json.loads(looper.communicate()[0]) for looper in loopers]


def main() -> None:
    environ = {name: value for name, value in os.environ.items() if not name.startswith("TOOL_")}
    with tempfile.TemporaryDirectory(prefix="bench-") as scratch:
        environ |= {"HOME": scratch, "XDG_CONFIG_HOME": scratch, "XDG_STATE_HOME": scratch}
        free = [_workspace(Path(scratch, f"free-{n}")) for n in range(WAITERS)]
        shared = _workspace(Path(scratch, "shared"))
        subprocess.run(_SET, cwd=shared, env=environ, stdout=subprocess.DEVNULL, check=True)
        at_once = processor_seconds(free, environ)
        waited = processor_seconds(
            [shared] * WAITERS, environ, shared / ".tool" / "locks" / "tool.toml.lock"
        )
        print(
            f"{WAITERS} calls, processor seconds: {at_once:.2f} without a wait, "
            f"{waited:.2f} with {WAIT_SECONDS:g} s"
        )
        print(f"  more: {waited - at_once:.2f} of at most {_MOST_SECONDS} s")
        print(
            f"{LOOPERS} processes, {HOLDS} holds of 2 ms each: longest wait of the "
            "luckiest, the unluckiest; handover"
        )
        for kind in ("polling", "kernel"):
            holds = loop(Path(scratch, f"{kind}.lock"), kind)
            longest = sorted(max(got - asked for asked, got, _ in one) * 1000 for one in holds)
            stretches = sorted((got, leaving) for one in holds for _, got, leaving in one)
            handover = statistics.median(
                (after[0] - before[1]) * 1000 for before, after in pairwise(stretches)
            )
            ratio = longest[-1] / longest[0]
            print(
                f"  {kind:<17} {longest[0]:6.1f} ms {longest[-1]:8.1f} ms {ratio:6.1f} "
                f"{handover:5.2f} ms"
            )
        print(f"  at most{'':<32} {_MOST_UNFAIR:6.1f} {_MOST_HANDOVER_MS:5.2f} ms\n")


if __name__ == "__main__":
    main()
