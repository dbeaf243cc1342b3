"""The lab's side of workers that are threads: decide when each thread continues.

The threads are in one process, see threads.py. It runs only while this side waits for its
reply. Each thread looks like a stepped process, so that a run is played in the same way.
"""

import base64
import json
import pickle
import socket
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..kit.stepping.effects import Effects
from ..kit.stepping.fork_server import ForkServer
from ..kit.stepping.protocol import BLOCKED
from ..kit.stepping.tracer import Ended, Event, SteppedProcess
from .outcome import Outcome
from .scenario import Step
from .stepped_worker import EveryStepWorker

_PATIENCE_SECONDS = 120
"""The time limit for a message of the process.

The process itself notices sooner if a thread does not end, or if it waits for something else than
a lock. So this limit only matters if the process hangs.
"""


class CannotRun(Exception):
    """The process of the threads has refused to run them. The message has the reason."""


class ThreadedProcess:
    """The process of the threads of one run."""

    def __init__(
        self,
        module: str,
        arguments: Sequence[str],
        *,
        fork_server: ForkServer,
        env: Mapping[str, str],
        cwd: Path,
    ) -> None:
        """Start `python -m module SOCKET ARGUMENTS`. `__exit__` ends the process."""
        self._socket, socket_of_process = socket.socketpair()
        with socket_of_process:
            descriptor = socket_of_process.fileno()
            self._process = fork_server.start(
                ["-m", module, str(descriptor), *arguments],
                env=env,
                cwd=cwd,
                pass_fds=[descriptor],
            )
        self._socket.settimeout(_PATIENCE_SECONDS)
        self._lines = self._socket.makefile("rb")
        self.shared_state = ""
        """The state of the shared variables after the last step, as the program reports it."""
        self.locks_held: set[str] = set()
        """The locks that a thread holds, by their names in the effects of a step."""
        self.threads: dict[str, SteppedThread] = {}
        """The threads by the names of their workers."""

    def __enter__(self) -> "ThreadedProcess":
        """Wait until each thread has stopped before its first step. Raise CannotRun on failure."""
        try:
            reports = self._receive()
            if "problem" in reports:
                raise CannotRun(reports["problem"])
            for worker_name, message in reports.items():
                self._store_shared_state(message)
                self.threads[worker_name] = SteppedThread(self, worker_name, _report_in(message))
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_error: object) -> None:
        # A thread that waits for a lock would keep the process alive for ever.
        self._process.kill()
        self._lines.close()
        self._socket.close()
        self._process.__exit__()

    def resume(self, worker_name: str) -> "Report":
        """Let a thread take one step, and return its report."""
        message = self._ask(f"go {worker_name}")
        self._store_shared_state(message)
        return _report_in(message)

    def run(self, function_name: str) -> Outcome:
        """Run prepare(), always() or invariant() of the file. Return how it ended."""
        message = self._ask(f"run {function_name}")
        return Outcome(**message["outcome"])

    def _store_shared_state(self, message: Mapping[str, Any]) -> None:
        """Store the shared state that a message contains."""
        self.shared_state = message["shared"]
        self.locks_held = set(message["locks_held"])

    def _ask(self, command: str) -> dict[str, Any]:
        """Send a command to the process, and return its reply."""
        self._socket.sendall(f"{command}\n".encode())
        return self._receive()

    def _receive(self) -> dict[str, Any]:
        """Return the next message of the process. Raise CannotRun if the process has exited."""
        line = self._lines.readline()
        if not line:
            # The process exits early if the file makes a call that cannot be stepped.
            stdout, stderr = self._process.communicate(timeout=_PATIENCE_SECONDS)
            raise CannotRun(_reason_in(stdout, stderr))
        message: dict[str, Any] = json.loads(line)
        return message


@dataclass(frozen=True)
class Report:
    """The report about a thread after a step."""

    next_stop: dict[str, Any] | None
    """The facts about its next stop. None if the thread has ended."""
    effects: Effects
    """The resources that its last step has read or changed."""
    outcome: Outcome | None
    """The outcome of the thread. None while it runs."""


def _report_in(message: Mapping[str, Any]) -> Report:
    """Return the report about a thread that a message contains."""
    outcome = None
    if "outcome" in message:
        outcome = Outcome(**message["outcome"])
    return Report(next_stop=message["stop"], effects=message["effects"], outcome=outcome)


def unpickle_state(text: str) -> Any:
    """Return the object that `read_state` of the scenario has returned, see scenario_threads.py."""
    return pickle.loads(base64.b64decode(text))  # noqa: S301 - our own process wrote it


def _reason_in(stdout: bytes, stderr: bytes) -> str:
    """Return the reason why a process has exited, from its output."""
    if stdout:
        return str(json.loads(stdout))
    last_line = stderr.decode("utf-8", "backslashreplace").strip().rpartition("\n")[2]
    return f"its process has exited, {last_line or 'without a message'}"


class SteppedThread(SteppedProcess):
    """A thread that stops before every event."""

    def __init__(self, process: ThreadedProcess, worker_name: str, report: Report) -> None:
        self._process_of_threads = process
        self._worker_name = worker_name
        self._effects: Effects = {}
        self._outcome: Outcome | None = None
        self.past_events: list[Event] = []
        self.next_event: Event | None = None
        self._store_report(report)

    def step(self) -> Event | None:
        """Let the thread execute its event. Return its next event, or None if it has ended."""
        assert self.next_event is not None, "the thread is over"
        self.past_events.append(self.next_event)
        self._store_report(self._process_of_threads.resume(self._worker_name))
        return self.next_event

    def has_free_lock(self) -> bool:
        """Return whether the lock that the thread is about to take is free."""
        assert self.next_event is not None
        return self.next_event.facts["lock"] not in self._process_of_threads.locks_held

    def finish(self) -> Ended:
        """Return the exit code and the output of the thread, as if it were a process."""
        assert self._outcome is not None, "the thread is not over"
        reason = self._outcome.reason
        # A process would print the reason to stdout as JSON, and to stderr as text.
        response = json.dumps(reason) if reason else ""
        return Ended(self._outcome.exit_code, response.encode(), reason.encode())

    def _store_report(self, report: Report) -> None:
        """Store the report about the thread. Set `next_event`."""
        self._effects = report.effects
        self._outcome = report.outcome
        self.next_event = None
        if report.next_stop is not None:
            facts = dict(report.next_stop)
            event_name = facts.pop("event")
            self.next_event = Event(event_name, (facts["name"],), facts)


class ThreadWorker(EveryStepWorker):
    """A worker that is a thread. Each access to shared memory is a step, and each use of a lock."""

    def can_continue(self) -> bool:
        """Return whether the thread can take its next step without waiting for a lock or value."""
        event = self.stepped.next_event
        if event is None or self.waits_for is not None:
            return False
        if event.name in ("lock.acquire", BLOCKED):
            return self.stepped.has_free_lock()
        return True

    def _step_at(self, event: Event) -> Step | None:
        """Return a step for the event. Every event of a thread is a step.

        Its name is for example `acquire mutex`, or `read count: count = count + 1` with the line of
        source. For a call of unknown code, the name is only the line.
        """
        facts = event.facts
        if facts["verb"] == "call":
            return Step(name=facts["source"], event=event.name)
        name = f"{facts['verb']} {facts['name']}"
        if "lock" not in facts:
            name = f"{name}: {facts['source']}"
        return Step(name=name, event=event.name)

    def _add_lock_effects(self) -> None:
        """Do nothing: a thread that ends does not release its locks."""
