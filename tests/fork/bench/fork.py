"""From nothing to a tool of your own with a command of your own and green tests: a real `make` of a real fork.

pip takes the packages from its cache or its index, so the first run on a machine takes longer than the next.
"""

import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from sampletool.kit.program import PACKAGE

AT_MOST_SECONDS = 60


def main() -> None:
    environ = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    with tempfile.TemporaryDirectory(prefix="bench-") as scratch:
        tree = Path(scratch, "acme")
        steps = {
            "fork": ([sys.executable, "-m", PACKAGE, "fork", "acme", "--to", str(tree), "--json"], Path.cwd()),
            "make its environment": (["make", ".venv/.testable"], tree),
            "a command of its own": (["make", "new-command", "NAME=box/open"], tree),
            "make test, of what it owns": (
                [".venv/bin/python", "-m", "pytest", "-q", "tests/box", "tests/inventory"],
                tree,
            ),
            "make check test, of all": (["make", "check", "test"], tree),
        }
        began = time.monotonic()
        for step, (command, cwd) in steps.items():
            ran = subprocess.run(command, cwd=cwd, env=environ, capture_output=True, text=True, check=False)
            assert ran.returncode == 0, ran.stdout + ran.stderr
            limit = f" (at most {AT_MOST_SECONDS})" if "owns" in step else ""
            used = resource.getrusage(resource.RUSAGE_CHILDREN)
            took = f"{time.monotonic() - began:6.1f} s, {used.ru_utime + used.ru_stime:6.1f} of a processor"
            print(f"{step:<28} {took}, since the beginning{limit}")
        print(f"load: {os.getloadavg()[0]:.1f} on {os.cpu_count()} processors\n")


if __name__ == "__main__":
    main()
