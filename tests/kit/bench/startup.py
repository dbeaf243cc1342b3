"""What a call costs, in multiples of starting the bare interpreter of the same environment."""

import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

ROUNDS = 25
_TARGETS = {"bare interpreter": 1.0, "tool --version": 2.0, "tool config get": 6.0, "tool config set": 8.0}


def main() -> None:
    tool = str(Path(sys.executable).with_name("tool"))
    environ = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    with tempfile.TemporaryDirectory(prefix="bench-") as scratch:
        Path(scratch, "tool.toml").write_text("[settings]\nlevel = 1\n")
        environ |= {"HOME": scratch, "XDG_CONFIG_HOME": scratch, "XDG_STATE_HOME": scratch}
        calls: dict[str, Callable[[int], list[str]]] = {
            "bare interpreter": lambda _: [sys.executable, "-c", "pass"],
            "tool --version": lambda _: [tool, "--version"],
            "tool config get": lambda _: [tool, "config", "get", "level"],
            "tool config set": lambda n: [tool, "config", "set", "level", str(100 + n)],
        }
        taken: dict[str, list[float]] = {name: [] for name in calls}
        for n in range(-2, ROUNDS):
            for name, call in calls.items():
                began = time.perf_counter()
                subprocess.run(call(n), cwd=scratch, env=environ, stdout=subprocess.DEVNULL, check=True)
                if n >= 0:
                    taken[name].append(time.perf_counter() - began)
    bare = statistics.median(taken["bare interpreter"])
    print(f"{'median of ' + str(ROUNDS):<20} {'ms':>7} {'x bare':>7} {'at most':>8}")
    for name, times in taken.items():
        median = statistics.median(times)
        print(f"{name:<20} {median * 1000:7.1f} {median / bare:7.2f} {_TARGETS[name]:8.1f}")
    print()


if __name__ == "__main__":
    main()
