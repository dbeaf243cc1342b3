"""The tracer's side: decide when a stepped process continues, and whether it fails or dies there.

    with SteppedProcess(["-m", "acme", "config", "set", "a", "1"], watch=directory) as process:
        process.run_until("os.rename")  # The new file is written, and the old one is still there.
        ...                             # Let others act.
        ended = process.finish()

The docstring of tracee.py explains the protocol.
"""

import json
import os
import signal
import socket
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any, NamedTuple

from .effects import Effects, combine
from .fork_server import ForkServer, Stepping
from .forked_process import FILE

_PATIENCE_SECONDS = 30


class Event(NamedTuple):
    """A call that a stepped process is about to make."""

    name: str
    paths: tuple[str, ...]
    facts: dict[str, Any]

    @property
    def path(self) -> str:
        """The last path, which of two is the new one. Empty if the event has none."""
        if not self.paths:
            return ""
        return self.paths[-1]


class Ended(NamedTuple):
    """The exit code and the output of a process that has exited."""

    status: int
    stdout: bytes
    stderr: bytes


class SteppedProcess:
    """A process that is stepped.

    It stands before the event `at`, which is None when the process has exited.
    """

    def __init__(
        self,
        program: Sequence[str],
        *,
        watch: Path,
        env: Mapping[str, str] | None = None,
        cwd: Path | None = None,
        fork_server: ForkServer | None = None,
    ) -> None:
        our_socket, their_socket = socket.socketpair()
        stepping = Stepping(tracer=their_socket, watch=os.path.realpath(watch))
        variables = os.environ if env is None else env
        environ = {**variables, "PYTHONDONTWRITEBYTECODE": "1"}
        self._exit_stack = ExitStack()
        server = fork_server
        if server is None:
            server = self._exit_stack.enter_context(ForkServer([], environ))
        # Its output goes to files: a pipe would not be read while the process is stepped, and a
        # child of its own may keep the pipe open.
        self.process = server.start(
            program,
            env=environ,
            cwd=cwd,
            stdout=FILE,
            stderr=FILE,
            stepping=stepping,
        )
        their_socket.close()
        self._exit_stack.callback(self.process.__exit__)
        our_socket.settimeout(_PATIENCE_SECONDS)
        self._socket = self._exit_stack.enter_context(our_socket)
        self._lines = self._exit_stack.enter_context(our_socket.makefile("rb"))
        self._effects: Effects = {}
        self.past: list[Event] = []
        self.at = self._receive_stop()

    def __enter__(self) -> "SteppedProcess":
        return self

    def __exit__(self, *_error: object) -> None:
        self.process.kill()
        self._exit_stack.close()

    def step(self) -> Event | None:
        """Let the process do what it is about to do.

        Return the event before which it stops next, or None if it has exited.
        """
        return self._continue("go")

    def run_until(self, wanted: str | Callable[[Event], bool], times: int = 1) -> Event:
        """Let the process continue until it is about to do this, for the n-th time from here."""
        seen = 0
        while self.at is not None:
            event = self.at
            is_wanted = event.name == wanted if isinstance(wanted, str) else wanted(event)
            if is_wanted:
                seen += 1
            if seen == times:
                return event
            self.step()
        past = [event[:2] for event in self.past]
        raise AssertionError(f"the process exited without {wanted}; it did {past}")

    def fail(self, number: int) -> Event | None:
        """Let what the process is about to do fail with this error number."""
        return self._continue(f"raise {number}")

    def signal(self, number: int) -> Event | None:
        """Send the process a signal at this point.

        Its handler runs. Then the process stops at the same event, unless the handler raised.
        """
        return self._continue(f"signal {number}")

    def has_free_lock(self) -> bool:
        """Return whether the lock that the process is about to wait for is free."""
        self._socket.sendall(b"probe\n")
        is_free: bool = self._receive()["is_free"]
        return is_free

    def take_effects(self) -> Effects:
        """Return the effects of what the process has done since the last call.

        It is empty unless the program watches every call, see tracee.py.
        """
        effects = self._effects
        self._effects = {}
        return effects

    def kill(self) -> None:
        """Kill the process with SIGKILL, before it does what it is about to do.

        A child process of its own may live on, with its stdout.
        """
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()
        self.at = None

    def finish(self) -> Ended:
        """Let the process run to its end, without stopping."""
        if self.at is not None:
            self._socket.sendall(b"free\n")
            self.at = None
        stdout, stderr = self.process.communicate(timeout=_PATIENCE_SECONDS)
        assert self.process.returncode is not None
        return Ended(self.process.returncode, stdout, stderr)

    def _continue(self, command: str) -> Event | None:
        assert self.at is not None, "the process has exited"
        if not command.startswith("signal"):
            self.past.append(self.at)
        self._socket.sendall(f"{command}\n".encode())
        self.at = self._receive_stop()
        return self.at

    def _receive_stop(self) -> Event | None:
        """Wait for the next stop, or for the end of the process.

        Keep the effects that the process reports before.
        """
        while True:
            message = self._receive()
            if not message:
                return None
            if "event" in message:
                name = message.pop("event")
                paths = tuple(message.pop("paths"))
                return Event(name, paths, message)
            self._effects = combine(self._effects, message["effects"])

    def _receive(self) -> dict[str, Any]:
        line = self._lines.readline()
        if not line:
            return {}
        message: dict[str, Any] = json.loads(line)
        return message
