"""Runs the commands of one server: many at once, and none in another one's way.

A command that changes something runs in a process of its own, as on the command line. So
everything that holds there holds here, too: locks, signals, children and kill -9. This costs 60 to
100 ms for the process.

A command that only reads runs in a thread of the server, in about 1 ms. The one thing that it could
share with other commands is the current directory, because there is one for the whole process. So
only one command reads at a time, and holds a lock until its thread has finished. Without the lock,
a command would read the workspace of another one. If the lock isn't free within a second, because a
store doesn't reply, the command runs in a process as well.
"""

import asyncio
import json
import os
import signal
import sys
from collections.abc import Callable, Coroutine
from contextlib import suppress
from functools import partial
from subprocess import DEVNULL, PIPE, Popen
from typing import Any

from ..kit.app import error_response, run_in_process
from ..kit.contract.errors import InternalError
from ..kit.contract.file_errors import from_os_error
from ..kit.program import PACKAGE
from ..kit.safety.signals import Signals
from .threads import in_thread

# -P: the current directory must not be searched for modules. It could contain a json.py.
COMMAND = [sys.executable, "-P", "-m", PACKAGE]
"""The command line of the tool, without its arguments."""

MAX_PROCESSES = 32
"""How many processes run at the same time. A further command waits until one of them exits."""

_READ_SECONDS = 1.0

_STOP_SECONDS = (0.6, 0.3)
"""How long commands have to exit after the first signal, and after the second one.

The second signal ends the grace period of their children.
"""

_EVENT = b'{"event":'
"""The beginning of each line of `--format jsonl` that is not the response."""

ReportProgress = Callable[[dict[str, Any]], Coroutine[Any, Any, None]]


class CommandKilled(InternalError):
    """The process of a command was killed before it could respond."""

    sentence = "The process of this command exited before it could respond ({kind})."
    advice = (
        "Check whether its change was made. "
        "If not, run the command again: a change is made completely, or not at all."
    )  # fmt: skip


class _RunningCommand:
    """A command that was started, and can be stopped at any moment, even more than once."""

    def __init__(self) -> None:
        self.signals = Signals()
        self.process: Popen[bytes] | None = None

    def stop(self) -> None:
        """Stop the command, like SIGTERM on the command line."""
        self.signals.receive(signal.SIGTERM)
        if self.process is not None:
            self.process.terminate()

    @property
    def is_stopped(self) -> bool:
        """Whether the command was stopped."""
        return self.signals.received is not None


class CommandRunner:
    """Runs commands for the clients of one server.

    It is created in the event loop. A relative path in a command line starts at the directory that
    is current at this moment.
    """

    def __init__(self, max_processes: int = MAX_PROCESSES) -> None:
        self.count = 0
        """How many commands were run."""
        self._home = os.getcwd()
        self._reading = asyncio.Lock()
        self._free_processes = asyncio.Semaphore(max_processes)
        self._running: dict[asyncio.Task[bytes], _RunningCommand] = {}

    async def run(
        self,
        argv: list[str],
        *,
        reads_only: bool,
        report_progress: ReportProgress | None = None,
    ) -> bytes:
        """Return the response of a command, a line of JSON.

        If the caller is cancelled, the command is stopped.
        """
        self.count += 1
        command = _RunningCommand()
        if reads_only:
            work = self._run_in_server(command, argv)
        else:
            work = self._run_in_process(command, argv, report_progress)
        task = asyncio.create_task(work)
        self._running[task] = command
        task.add_done_callback(self._running.pop)
        try:
            # Without the shield, a cancelled caller would leave the thread of the command behind.
            return await asyncio.shield(task)
        except OSError as error:
            return error_response(from_os_error(error), argv[0])
        except asyncio.CancelledError:
            command.stop()
            raise

    async def stop_all(self) -> None:
        """Stop all commands, and wait for them for up to 0.9 s.

        A command that still runs then has received two signals, and exits by itself.
        """
        for seconds in _STOP_SECONDS:
            for command in self._running.values():
                command.stop()
            if self._running:
                await asyncio.wait(self._running, timeout=seconds)

    async def _run_in_server(self, command: _RunningCommand, argv: list[str]) -> bytes:
        try:
            await asyncio.wait_for(self._reading.acquire(), _READ_SECONDS)
        except TimeoutError:
            return await self._run_in_process(command, argv)
        try:
            command.signals.listen()
            # This fails if the directory was removed. A command must not run in that of another.
            os.chdir(self._home)
            return await in_thread(partial(run_in_process, argv, command.signals))
        finally:
            command.signals.close()
            # The next reader continues only after this coroutine has returned to the event loop.
            self._reading.release()
            with suppress(OSError):
                os.chdir(self._home)

    async def _run_in_process(
        self,
        command: _RunningCommand,
        argv: list[str],
        report_progress: ReportProgress | None = None,
    ) -> bytes:
        async with self._free_processes:
            if command.is_stopped:
                raise asyncio.CancelledError
            events: asyncio.Queue[bytes | None] = asyncio.Queue()
            reporter = asyncio.create_task(_report_events(events, report_progress))
            put_event = partial(_put, asyncio.get_running_loop(), events)
            try:
                return await in_thread(partial(self._wait_for, command, argv, put_event))
            finally:
                events.put_nowait(None)
                await reporter

    def _wait_for(
        self,
        command: _RunningCommand,
        argv: list[str],
        put_event: Callable[[bytes], None],
    ) -> bytes:
        """Start a process, wait until it exits, and return its response."""
        response = b""
        # jsonl: each job that starts or finishes is a line of its own, for the progress. The
        # current directory of the server may be that of a command that reads at the moment.
        process = Popen(
            [*COMMAND, "--format=jsonl", *argv],
            stdin=DEVNULL,
            stdout=PIPE,
            cwd=self._home,
            process_group=0,
        )
        command.process = process
        with process:
            # The command may have been stopped before the process was known.
            if command.is_stopped:
                command.stop()
            assert process.stdout is not None
            for line in process.stdout:
                if line.startswith(_EVENT):
                    put_event(line)
                else:
                    response += line
        if not response:
            killed = CommandKilled(f"exit code {process.returncode}", report=None)
            return error_response(killed, argv[0])
        return response


async def _report_events(
    events: asyncio.Queue[bytes | None],
    report_progress: ReportProgress | None,
) -> None:
    """Report each event of a command, until there is a None."""
    while True:
        line = await events.get()
        if line is None:
            return
        if report_progress is not None:
            await report_progress(json.loads(line))


def _put(
    loop: asyncio.AbstractEventLoop,
    events: asyncio.Queue[bytes | None],
    line: bytes,
) -> None:
    """Put a line into a queue, from another thread."""
    # Raised if the server has exited meanwhile.
    with suppress(RuntimeError):
        loop.call_soon_threadsafe(events.put_nowait, line)
