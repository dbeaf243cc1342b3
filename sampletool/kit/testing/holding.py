"""A process that holds a lock, taken with the same code as in a command.

The tests use `holding` or `Holding`, which start this module as a program:

    python -m acme.kit.testing.holding PATH MODE TIMEOUT_SECONDS CHILD

MODE is `exclusive` or `shared`. If CHILD is not empty, it names a program, such as `sleep`. The
process starts it with the argument 60, and it inherits the lock.

The process writes messages to stdout, each a line of JSON. The first is `{"got": "held"}`, or has
the code of the error if the lock could not be taken. The process holds the lock until its stdin is
closed, and then reports when it asked for the lock, got it and released it.
"""

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..contract.expected import to_tool_error
from ..safety.errors import SafetyError
from ..safety.lock import Hold, Lock
from ..safety.lock_record import describe_me
from ..safety.signals import Signals
from .forked import is_forkable, start_python

if TYPE_CHECKING:
    # At run time, this would import jsonschema, which takes 50 ms. The process does not need it.
    from .tool import Process

_LONGEST_SECONDS = 30
"""The timeout for a process that should exit at once. It is long enough for a busy machine."""


def make_lock(path: Path, signals: Signals | None = None) -> Lock:
    """Return a lock whose record names the command `build` and the session `s-1`."""
    return Lock(path, "build", describe_me("s-1", "build"), signals)


class Holding:
    """A process that takes a lock. The module docstring describes the parameters."""

    def __init__(
        self,
        path: Path,
        mode: str = "exclusive",
        timeout_seconds: float = 0.0,
        child: str = "",
    ) -> None:
        module = f"{__package__}.holding"
        program = ["-m", module, str(path), mode, str(timeout_seconds), child]
        self.process: Process
        if is_forkable(os.environ):
            self.process = start_python(*program, stdin=subprocess.PIPE, stderr=2)
        else:
            self.process = subprocess.Popen(
                [sys.executable, *program],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
            )

    @property
    def pid(self) -> int:
        """The pid of the process."""
        return self.process.pid

    def hear(self) -> dict[str, Any]:
        """Wait for the next message of the process, and return it."""
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        assert line, "the process exited without a message"
        return dict(json.loads(line))

    def is_waiting(self) -> bool:
        """Return whether the process waits for the lock in the queue of the kernel."""
        # Only the wait in the kernel needs a second thread (see flock.py).
        return len(os.listdir(f"/proc/{self.pid}/task")) > 1

    def leave(self) -> None:
        """Let the process release the lock, and wait until it has exited."""
        self.process.communicate(timeout=_LONGEST_SECONDS)

    def kill(self) -> None:
        """Kill the process, and wait until it has exited."""
        self.process.kill()
        self.process.communicate(timeout=_LONGEST_SECONDS)


@contextmanager
def holding(
    path: Path,
    mode: str = "exclusive",
    timeout_seconds: float = 0.0,
    child: str = "",
) -> Iterator[Holding]:
    """Start a process that holds the lock when the block begins. Kill it at the end."""
    holder = Holding(path, mode, timeout_seconds, child)
    with holder.process:
        try:
            assert holder.hear()["got"] == "held", f"{path} cannot be locked"
            yield holder
        finally:
            holder.process.kill()


def main(path: Path, mode: str, timeout_seconds: float, child: str) -> None:
    """Hold the lock until stdin is closed."""
    signals = Signals()
    signals.install()
    lock = make_lock(path, signals)
    asked_at = time.monotonic()
    try:
        with _take(lock, mode, timeout_seconds) as hold:
            got_at = time.monotonic()
            message: dict[str, object] = {"got": "held"}
            if child:
                message["child"] = _start_child(child, hold)
            _send(message)
            sys.stdin.read()
            releasing_at = time.monotonic()
        _send({"asked": asked_at, "got": got_at, "releasing": releasing_at})
    except SafetyError as error:
        waited_seconds = time.monotonic() - asked_at
        _send({"got": to_tool_error(error).code, "waited": waited_seconds})


def _take(lock: Lock, mode: str, timeout_seconds: float) -> AbstractContextManager[Hold]:
    if mode == "exclusive":
        return lock.exclusively(timeout_seconds)
    return lock.shared(timeout_seconds)


def _start_child(program: str, hold: Hold) -> int:
    """Start a child that inherits the lock, and return its pid."""
    child = subprocess.Popen(
        [program, "60"],
        pass_fds=hold.descriptors,
        stdout=subprocess.DEVNULL,
    )
    return child.pid


def _send(message: dict[str, object]) -> None:
    print(json.dumps(message), flush=True)


if __name__ == "__main__":
    main(
        path=Path(sys.argv[1]),
        mode=sys.argv[2],
        timeout_seconds=float(sys.argv[3]),
        child=sys.argv[4],
    )
