"""Follow the commands of the lab in a process whose threads are the workers.

The program is learner_threads.py or scenario_threads.py. The lab sends one command per line:

* `go A`: let A make the access before which it has stopped, and run to its next access.
* `run invariant`: run this function in the main thread, while all workers stand still.

The reply to each command is one line of JSON, see stepped_threads.py.
"""

import json
import socket
from collections.abc import Mapping
from types import FrameType
from typing import Any, Protocol

from .outcome import Outcome
from .threads import Threads, WorkerThread


class Program(Protocol):
    """The program that the threads run: a learner's file, or a variant of a scenario."""

    def work(self, worker_name: str) -> Outcome:
        """Run a worker in the current thread. Return how it ended."""
        ...

    def run(self, function_name: str) -> Outcome:
        """Run another function of the program in the main thread. Return how it ended."""
        ...

    def shared_state(self) -> str:
        """Return the state that the threads share, as text for the lab."""
        ...

    def describe(self, frame: FrameType) -> dict[str, Any]:
        """Return facts about the position of a thread for the lab."""
        ...


class _Server:
    """The process's side of the connection to the lab."""

    def __init__(self, connection: socket.socket, program: Program, threads: Threads) -> None:
        self._connection = connection
        self._program = program
        self._threads = threads

    def serve(self, worker_names: str) -> None:
        """Start a worker for each name, then follow commands until the lab hangs up."""
        prepared = self._program.run("prepare")
        if prepared.exit_code != 0:
            self._send({"problem": f"prepare() failed, {prepared.reason}"})
            return
        workers = {name: WorkerThread(name, self._program.work) for name in worker_names}
        for worker in workers.values():
            self._threads.start(worker)
        self._send({name: self._report_on(worker) for name, worker in workers.items()})
        for line in self._connection.makefile():
            self._send(self._follow(line.strip(), workers))

    def _follow(self, command_line: str, workers: Mapping[str, WorkerThread]) -> dict[str, Any]:
        """Follow a command, and return the reply."""
        command, _, argument = command_line.partition(" ")
        if command == "go":
            worker = workers[argument]
            # This thread waits here until the worker stops again.
            self._threads.resume(worker)
            return self._report_on(worker)
        assert command == "run"
        outcome = self._program.run(argument)
        return {**self._report(), "outcome": outcome.as_json()}

    def _report_on(self, worker: WorkerThread) -> dict[str, Any]:
        """Return the shared state, and the facts about the last step of a worker."""
        report = self._report()
        report["stop"] = worker.next_stop
        report["effects"] = worker.effects
        if worker.outcome is not None:
            report["outcome"] = worker.outcome.as_json()
        return report

    def _report(self) -> dict[str, Any]:
        """Return the state that the threads share."""
        return {
            "shared": self._program.shared_state(),
            "locks_held": sorted(self._threads.locks_held),
        }

    def _send(self, message: Mapping[str, Any]) -> None:
        """Send a message to the lab as a line of JSON."""
        self._connection.sendall(json.dumps(message).encode() + b"\n")


def serve(socket_descriptor: int, program: Program, threads: Threads, worker_names: str) -> None:
    """Start a thread for each name, then follow the commands of the lab until it hangs up."""
    connection = socket.socket(fileno=socket_descriptor)
    _Server(connection, program, threads).serve(worker_names)
