"""The tracer's side: decides when each stepped process goes on, and whether it fails or dies at that point.

with SteppedProcess(["-m", "acme", "config", "set", "a", "1"], watch=directory) as a:
    a.run_until("os.rename")      # the new file is written, the old one still there
    ...                           # let others act
    ran = a.finish()
"""

import json
import os
import signal
import socket
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any, NamedTuple

from .fork_server import ForkServer, Stepping
from .forked_process import FILE

_PATIENCE_SECONDS = 30


class Event(NamedTuple):
    """What a stepped process is about to do."""

    name: str
    paths: tuple[str, ...]
    facts: dict[str, Any]

    @property
    def path(self) -> str:
        return self.paths[-1] if self.paths else ""


class Ended(NamedTuple):
    status: int
    stdout: bytes
    stderr: bytes


class SteppedProcess:
    """One process that is stepped, stopped before `at`; None once it has ended."""

    def __init__(
        self,
        program: Sequence[str],
        *,
        watch: Path,
        env: Mapping[str, str] | None = None,
        cwd: Path | None = None,
        fork_server: ForkServer | None = None,
    ) -> None:
        ours, theirs = socket.socketpair()
        stepping = Stepping(tracer=theirs, watch=os.path.realpath(watch))
        environ = {**(os.environ if env is None else env), "PYTHONDONTWRITEBYTECODE": "1"}
        self._opened = ExitStack()
        server = fork_server or self._opened.enter_context(ForkServer([], environ))
        # Into files: nobody reads while the process is stepped, and a child of its own may keep them open.
        self.process = server.start(
            program, env=environ, cwd=cwd, stdout=FILE, stderr=FILE, stepping=stepping
        )
        theirs.close()
        self._opened.callback(self.process.__exit__)
        ours.settimeout(_PATIENCE_SECONDS)
        self._socket = self._opened.enter_context(ours)
        self._lines = self._opened.enter_context(ours.makefile("rb"))
        self.past: list[Event] = []
        self.at = self._hear()

    def __enter__(self) -> "SteppedProcess":
        return self

    def __exit__(self, *error: object) -> None:
        self.process.kill()
        self._opened.close()

    def step(self) -> Event | None:
        """Let it do what it is about to do; where it stops next."""
        return self._tell("go")

    def run_until(self, wanted: str | Callable[[Event], bool], times: int = 1) -> Event:
        """Let it go on until it is about to do this (for the n-th time from here)."""
        seen = 0
        while self.at is not None:
            event = self.at
            seen += event.name == wanted if isinstance(wanted, str) else bool(wanted(event))
            if seen == times:
                return event
            self.step()
        raise AssertionError(
            f"it ended without {wanted}; it did {[event[:2] for event in self.past]}"
        )

    def fail(self, number: int) -> Event | None:
        """What it is about to do fails with this error instead."""
        return self._tell(f"raise {number}")

    def signal(self, number: int) -> Event | None:
        """It is sent a signal at this point. Its handler runs; then it stops here again, unless that raised."""
        return self._tell(f"signal {number}")

    def kill(self) -> None:
        """Kill -9, before it does what it is about to do. A child of its own may live on, with its stdout."""
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()
        self.at = None

    def finish(self) -> Ended:
        """Let it run to its end, unwatched."""
        if self.at is not None:
            self._socket.sendall(b"free\n")
            self.at = None
        stdout, stderr = self.process.communicate(timeout=_PATIENCE_SECONDS)
        assert self.process.returncode is not None
        return Ended(self.process.returncode, stdout, stderr)

    def _tell(self, word: str) -> Event | None:
        assert self.at is not None, "it has ended"
        if not word.startswith("signal"):
            self.past.append(self.at)
        self._socket.sendall(f"{word}\n".encode())
        self.at = self._hear()
        return self.at

    def _hear(self) -> Event | None:
        line = self._lines.readline()
        if not line:
            return None
        heard = json.loads(line)
        return Event(heard.pop("event"), tuple(heard.pop("paths")), heard)
