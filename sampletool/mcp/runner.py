"""Runs the commands of one server: many at once, without letting them disturb each other.

A command that changes something runs in a process of its own, as on the command line. So locks,
signals, child processes and kill -9 have the same effect as there. Starting the process takes 60 to
100 ms.

A command that only reads runs in a thread of the server, and takes about 1 ms. But all threads
share the current directory, and a command with `cwd` changes it. Without a lock, a command could
read the workspace of another command. So a thread holds a lock while it runs a command, and the
other threads wait for it. If the lock is not free within a second, for example because a store does
not respond, the waiting command runs in a process instead.
"""

import asyncio
import json
import os
import signal
import sys
from collections.abc import Callable, Coroutine
from contextlib import suppress
from functools import partial
from itertools import takewhile
from subprocess import DEVNULL, PIPE, Popen
from typing import Any

from ..kit.app import error_response
from ..kit.app import run_in_process as run_in_this_process
from ..kit.contract.errors import InternalError
from ..kit.contract.file_errors import from_os_error
from ..kit.program import PACKAGE
from ..kit.safety.signals import Signals
from .threads import in_thread

# -P: do not import modules from the current directory, which could contain a json.py.
COMMAND = [sys.executable, "-P", "-m", PACKAGE]
"""The beginning of each command line: how to start this tool."""

MAX_PROCESSES = 32
"""How many processes run at the same time. Further commands wait until one of them exits."""

_READ_SECONDS = 1.0
"""How long a read-only command waits for the lock before it runs in a process instead."""

_STOP_SECONDS = (0.6, 0.3)
"""How long to wait for the commands after the first signal, and after the second one.

After the first signal, a command gives its child processes time to exit. The second signal ends
this time.
"""

_EVENT = b'{"event":'
"""How each event begins in the output of `--format jsonl`. The other output is the response."""

ReportProgress = Callable[[dict[str, Any]], Coroutine[Any, Any, None]]
"""Sends an event of a running command to the client."""


class CommandKilled(InternalError):
    """The process of a command was killed before it could respond."""

    sentence = "The process of this command exited before it could respond ({kind})."
    advice = (
        "Check whether its change was made. "
        "If not, run the command again: a change is made completely, or not at all."
    )  # fmt: skip


class _RunningCommand:
    """A command that was started. It can be stopped at any time, even before it has a process."""

    def __init__(self) -> None:
        self.signals = Signals()
        self.process: Popen[bytes] | None = None

    def stop(self) -> None:
        """Stop the command, as SIGTERM would on the command line.

        A second call has the effect of a second signal.
        """
        self.signals.receive(signal.SIGTERM)
        if self.process is not None:
            self.process.terminate()

    @property
    def is_stopped(self) -> bool:
        """Whether `stop` was called."""
        return self.signals.received is not None


class CommandRunner:
    """Runs commands for the clients of one server.

    Create it while the event loop is running. All commands start in the directory that is current
    then, so relative paths in their arguments are relative to this directory.
    """

    def __init__(self, max_processes: int = MAX_PROCESSES) -> None:
        self.count = 0
        """How many commands were run until now."""
        self._start_directory = os.getcwd()
        self._directory_lock = asyncio.Lock()
        """Held while a thread runs a command, because the command may change the directory."""
        self._free_processes = asyncio.Semaphore(max_processes)
        self._running: dict[asyncio.Task[bytes], _RunningCommand] = {}

    async def run(
        self,
        argv: list[str],
        *,
        reads_only: bool,
        report_progress: ReportProgress | None = None,
    ) -> bytes:
        """Run a command, and return its response, a line of JSON.

        `argv` is the command line, such as `["config", "get", "jobs"]`. `reads_only` says that the
        command changes nothing, and may run in a thread. Each event of the command is passed to
        `report_progress`.

        If the caller is cancelled, the command is stopped.
        """
        self.count += 1
        command = _RunningCommand()
        if reads_only:
            work = self._run_without_process(command, argv)
        else:
            work = self._run_in_process(command, argv, report_progress)
        task = asyncio.create_task(work)
        self._running[task] = command
        task.add_done_callback(self._running.pop)
        try:
            # Without the shield, cancelling the caller would also cancel the task. The task would
            # release the lock while the thread still runs the command.
            return await asyncio.shield(task)
        except OSError as error:
            return error_response(from_os_error(error), _command_of(argv))
        except asyncio.CancelledError:
            command.stop()
            raise

    async def stop_all(self) -> None:
        """Stop all commands, and wait for up to 0.9 s until they have exited.

        Commands that still run then have received two signals, and exit soon without our help.
        """
        for seconds in _STOP_SECONDS:
            for command in self._running.values():
                command.stop()
            if self._running:
                await asyncio.wait(self._running, timeout=seconds)

    async def _run_without_process(self, command: _RunningCommand, argv: list[str]) -> bytes:
        """Run a command in a thread, or in a process if the lock is not free within a second."""
        try:
            await asyncio.wait_for(self._directory_lock.acquire(), _READ_SECONDS)
        except TimeoutError:
            return await self._run_in_process(command, argv)
        try:
            return await self._run_in_thread(command, argv)
        finally:
            self._directory_lock.release()

    async def _run_in_thread(self, command: _RunningCommand, argv: list[str]) -> bytes:
        """Run a command in a thread. The caller must hold the lock of the current directory."""
        try:
            # Prepare the pipe that ends the waits of the command when it is stopped.
            command.signals.listen()
            # This raises OSError if the directory was removed. The command must not run then: it
            # would read in the directory of the previous command.
            os.chdir(self._start_directory)
            return await in_thread(partial(run_in_this_process, argv, command.signals))
        finally:
            command.signals.close()
            # If the directory was removed, the next command raises the same error and reports it.
            with suppress(OSError):
                os.chdir(self._start_directory)

    async def _run_in_process(
        self,
        command: _RunningCommand,
        argv: list[str],
        report_progress: ReportProgress | None = None,
    ) -> bytes:
        """Run a command in a process of its own.

        If the maximum number of processes is running, wait until one of them has exited.
        """
        async with self._free_processes:
            # The command may have been stopped while it waited for its turn.
            if command.is_stopped:
                raise asyncio.CancelledError
            events: asyncio.Queue[bytes | None] = asyncio.Queue()
            reporter = asyncio.create_task(_report_events(events, report_progress))
            put_event = partial(_put_from_thread, asyncio.get_running_loop(), events)
            try:
                return await in_thread(partial(self._run_process, command, argv, put_event))
            finally:
                # None is the signal for the reporter to return.
                events.put_nowait(None)
                await reporter

    def _run_process(
        self,
        command: _RunningCommand,
        argv: list[str],
        put_event: Callable[[bytes], None],
    ) -> bytes:
        """Start a process, wait until it exits, and return its response. Run this in a thread.

        `put_event` is called with each event of the command, a line of JSON.
        """
        response = b""
        process = Popen(
            # With jsonl, a command also prints an event when a job starts or finishes.
            [*COMMAND, "--format=jsonl", *argv],
            stdin=DEVNULL,
            stdout=PIPE,
            # The current directory may differ: a thread may be running a command with `cwd`.
            cwd=self._start_directory,
            process_group=0,
        )
        command.process = process
        with process:
            # `stop` may have been called before the process was known. So call it again.
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
            return error_response(killed, _command_of(argv))
        return response


def _command_of(argv: list[str]) -> str:
    """Return the name of the command in a command line, such as `config set`."""
    words = takewhile(lambda word: not word.startswith("-"), argv)
    return " ".join(words)


async def _report_events(
    events: asyncio.Queue[bytes | None],
    report_progress: ReportProgress | None,
) -> None:
    """Pass each event in the queue to `report_progress`, until None is in the queue."""
    while True:
        line = await events.get()
        if line is None:
            return
        if report_progress is not None:
            await report_progress(json.loads(line))


def _put_from_thread(
    loop: asyncio.AbstractEventLoop,
    events: asyncio.Queue[bytes | None],
    line: bytes,
) -> None:
    """Put a line into a queue of the event loop, from another thread."""
    # The loop raises RuntimeError if it is closed: the server is exiting, and needs no more events.
    with suppress(RuntimeError):
        loop.call_soon_threadsafe(events.put_nowait, line)
