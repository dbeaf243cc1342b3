"""Another process that holds a lock, through the production code.

`python -m acme.kit.testing.holding PATH MODE TIMEOUT`.

It says `held` or the error's code, keeps the lock until its stdin ends, and can be stopped, interrupted or killed.
"""

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from ..contract.expected import to_tool_error
from ..safety.errors import SafetyError
from ..safety.lock import Lock
from ..safety.lock_record import describe_me
from ..safety.signals import Signals
from .forked import is_forkable, start_python
from .tool import Process


def make_lock(path: Path, signals: Signals | None = None) -> Lock:
    return Lock(path, "build", describe_me("s-1", "build"), signals)


class Holding:
    """One such process; `answer` is its answer."""

    def __init__(self, path: Path, mode: str = "exclusive", timeout_seconds: float = 0.0, child: str = "") -> None:
        words = [str(path), mode, str(timeout_seconds), child]
        program = ["-m", f"{__package__}.holding", *words]
        self.process: Process
        if is_forkable(os.environ):
            self.process = start_python(*program, stdin=subprocess.PIPE, stderr=2)
        else:
            command = [sys.executable, *program]
            self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    @property
    def pid(self) -> int:
        return self.process.pid

    def hear(self) -> dict[str, Any]:
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        assert line, "the process exited without a message"
        return dict(json.loads(line))

    def is_waiting(self) -> bool:
        """Whether its thread is in the kernel's queue."""
        return len(os.listdir(f"/proc/{self.pid}/task")) > 1

    def leave(self) -> None:
        """Let it release the lock, and wait for it."""
        self.process.communicate(timeout=30)

    def kill(self) -> None:
        self.process.kill()
        self.process.communicate(timeout=30)


@contextmanager
def holding(path: Path, mode: str = "exclusive", timeout_seconds: float = 0.0, child: str = "") -> Iterator[Holding]:
    """A process that holds the lock when the block begins."""
    other = Holding(path, mode, timeout_seconds, child)
    with other.process:
        try:
            assert other.hear()["got"] == "held", f"{path} cannot be locked"
            yield other
        finally:
            other.process.kill()


def main() -> None:
    path, mode, timeout_seconds, child = Path(sys.argv[1]), sys.argv[2], float(sys.argv[3]), sys.argv[4]
    signals = Signals()
    signals.install()
    lock = make_lock(path, signals)
    asked = time.monotonic()
    try:
        with lock.exclusively(timeout_seconds) if mode == "exclusive" else lock.shared(timeout_seconds) as hold:
            got = time.monotonic()
            orphan = None
            if child:
                orphan = subprocess.Popen([child, "60"], pass_fds=hold.descriptors, stdout=subprocess.DEVNULL)
            print(json.dumps({"got": "held", "child": orphan and orphan.pid}), flush=True)
            sys.stdin.read()
            releasing = time.monotonic()
        print(json.dumps({"asked": asked, "got": got, "releasing": releasing}), flush=True)
    except SafetyError as error:
        print(json.dumps({"got": to_tool_error(error).code, "waited": time.monotonic() - asked}), flush=True)


if __name__ == "__main__":
    main()
