"""From nothing to a tool of your own, with a command of your own and green tests.

It is a real `make` of a real project. pip gets the packages from its cache or its index, so the
first run on a machine takes longer than the next one.
"""

import os
import resource
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from sampletool.kit.program import PACKAGE

MAX_SECONDS = 60


@dataclass(frozen=True)
class Step:
    """One command on the way."""

    name: str
    command: list[str]


STEPS = (
    Step("make its environment", ["make", ".venv/.testable"]),
    Step("a command of its own", ["make", "new-command", "NAME=box/open"]),
    Step("make test", ["make", "test"]),
    Step("make check", ["make", "check"]),
)


def main() -> None:
    """Run the steps, and print how long they took since the beginning."""
    environment = dict(os.environ)
    environment.pop("PYTHONPATH", None)
    with tempfile.TemporaryDirectory(prefix="bench-") as scratch:
        project = Path(scratch, "acme")
        began = time.monotonic()
        fork = [sys.executable, "-m", PACKAGE, "fork", "acme", "--to", str(project), "--json"]
        run(fork, Path.cwd(), environment)
        report("fork", began)
        for step in STEPS:
            run(step.command, project, environment)
            report(step.name, began)
    print(f"At most {MAX_SECONDS} s until `make test` has passed, on an unloaded machine.")
    print(f"load: {os.getloadavg()[0]:.1f} on {os.cpu_count()} processors\n")


def run(command: list[str], directory: Path, environment: dict[str, str]) -> None:
    """Run a command, and fail with its output if it fails."""
    ran = subprocess.run(
        command,
        cwd=directory,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr


def report(name: str, began: float) -> None:
    """Print the time, and the processor time, since the beginning."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    processor_seconds = used.ru_utime + used.ru_stime
    seconds = time.monotonic() - began
    print(f"{name:<22} {seconds:6.1f} s, {processor_seconds:6.1f} s of processor time")


if __name__ == "__main__":
    main()
