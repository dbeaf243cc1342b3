"""The tracer: decide when a stepped process continues, and whether it fails or dies there.

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
from .protocol import Command

_PATIENCE_SECONDS = 30
"""The time limit for each message of a stepped process, and for its exit."""


class Event(NamedTuple):
    """A call that a stepped process is about to make."""

    name: str
    paths: tuple[str, ...]
    facts: dict[str, Any]

    @property
    def path(self) -> str:
        """The last path, or "" if the event has no path. For a rename, it is the new path."""
        if not self.paths:
            return ""
        return self.paths[-1]


class Ended(NamedTuple):
    """The exit code and the output of a process that has exited."""

    status: int
    stdout: bytes
    stderr: bytes


class SteppedProcess:
    """A process that stops before every event."""

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
        # The output goes to files. Nothing would read a pipe while the process is stepped, and a
        # child of the process may keep the pipe open.
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
        self.past_events: list[Event] = []
        """The events that the process has executed."""
        self.next_event = self._receive_stop()
        """The event before which the process has stopped, or None if the process has exited."""

    def __enter__(self) -> "SteppedProcess":
        return self

    def __exit__(self, *_error: object) -> None:
        self.process.kill()
        self._exit_stack.close()

    def step(self) -> Event | None:
        """Let the process execute its event.

        Return the event before which the process stops next, or None if it has exited.
        """
        return self._end_event(Command.GO)

    def run_until(self, wanted: str | Callable[[Event], bool], times: int = 1) -> Event:
        """Step the process until it stops before the wanted event. Return this event.

        `wanted` is the name of the event, or a function that returns whether an event is wanted.
        With `times=2`, skip the first wanted event, and so on. The current event counts.

        Raise AssertionError if the process exits before.
        """
        matches = 0
        while self.next_event is not None:
            if _is_wanted(self.next_event, wanted):
                matches += 1
                if matches == times:
                    return self.next_event
            self.step()
        executed = [(event.name, event.paths) for event in self.past_events]
        raise AssertionError(f"the process exited without {wanted}; it did {executed}")

    def fail(self, number: int) -> Event | None:
        """Let the event fail with this error number. Return the next event, or None at the end."""
        return self._end_event(f"{Command.RAISE} {number}")

    def signal(self, number: int) -> Event | None:
        """Send the process a signal at this point.

        Return the event before which the process stops after the signal handler: the same event
        again, or a later one if the handler raised an error. Return None if the process has exited.
        """
        return self._continue(f"{Command.SIGNAL} {number}")

    def has_free_lock(self) -> bool:
        """Return whether the lock that the process is about to wait for is free."""
        self._send(Command.PROBE)
        is_free: bool = self._receive()["is_free"]
        return is_free

    def take_effects(self) -> Effects:
        """Return the effects of the events since this method was called before.

        They are empty unless the program watches every call, see tracee.py.
        """
        effects = self._effects
        self._effects = {}
        return effects

    def kill(self) -> None:
        """Kill the process with SIGKILL, so that it does not execute its event.

        Its child processes continue to run, and may still write to its stdout.
        """
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()
        self.next_event = None

    def finish(self) -> Ended:
        """Let the process run to its end without stopping. Return its exit code and output."""
        is_stopped = self.next_event is not None
        if is_stopped:
            # From now on, the process does not stop before its events.
            self._send(Command.FREE)
            self.next_event = None
        stdout, stderr = self.process.communicate(timeout=_PATIENCE_SECONDS)
        assert self.process.returncode is not None
        return Ended(self.process.returncode, stdout, stderr)

    def _end_event(self, command: str) -> Event | None:
        """Send a command that lets the current event happen or fail. Return the next event."""
        assert self.next_event is not None, "the process has exited"
        self.past_events.append(self.next_event)
        return self._continue(command)

    def _continue(self, command: str) -> Event | None:
        """Send a command, and store and return the event of the next stop. None means the end."""
        assert self.next_event is not None, "the process has exited"
        self._send(command)
        self.next_event = self._receive_stop()
        return self.next_event

    def _send(self, command: str) -> None:
        """Send a command line to the process."""
        self._socket.sendall(f"{command}\n".encode())

    def _receive_stop(self) -> Event | None:
        """Wait for the next stop, and return its event. Return None if the process exits.

        Add the effects that the process reports before the stop to `_effects`.
        """
        while True:
            message = self._receive()
            if not message:
                return None
            is_stop = "event" in message
            if is_stop:
                name = message.pop("event")
                paths = tuple(message.pop("paths"))
                return Event(name, paths, message)
            self._effects = combine(self._effects, message["effects"])

    def _receive(self) -> dict[str, Any]:
        """Return the next message of the process. Return an empty one if the process has exited."""
        line = self._lines.readline()
        if not line:
            return {}
        message: dict[str, Any] = json.loads(line)
        return message


def _is_wanted(event: Event, wanted: str | Callable[[Event], bool]) -> bool:
    """Return whether the event has the wanted name, or whether the wanted function accepts it."""
    if isinstance(wanted, str):
        return event.name == wanted
    return wanted(event)
