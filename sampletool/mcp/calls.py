"""The calls of one server: many at once, none in another's way, each stopped when nobody waits for it any more.

A call that changes something runs in a process of its own, which is the command line's. So every promise about locks,
signals, children and kill -9 is the same, for the 60 to 100 ms of a process. A call that only reads runs in this
process, in a thread, in about 1 ms. What it would share with other calls is the process: its current directory, which
`cwd` changes. So only one reads at a time, under an asyncio.Lock that is held for as long as its thread runs; without
it a call would read the workspace of another one. Where the lock is not free for a second (a store does not answer),
the call is made in a process as well.
"""

import asyncio
import json
import os
import signal
import sys
from collections.abc import Callable, Coroutine
from concurrent.futures import Future, InvalidStateError
from contextlib import suppress
from functools import partial
from subprocess import DEVNULL, PIPE, Popen
from threading import Thread
from typing import Any, TypeVar

from ..kit.app import error_response, run_in_process
from ..kit.contract.errors import InternalError
from ..kit.contract.file_errors import from_os_error
from ..kit.program import PACKAGE
from ..kit.safety.signals import Signals

COMMAND = [sys.executable, "-P", "-m", PACKAGE]
"""Without the current directory among the places to import from."""
NO_WAIT_SECONDS = 32
"""So many processes, at the most; a further call waits for one of them to end."""
_READ_SECONDS = 1.0
_END_SECONDS = (0.6, 0.3)
"""For calls to end after the first signal, and after the second, which ends the grace of their children."""

Tell = Callable[[dict[str, Any]], Coroutine[Any, Any, None]]
T = TypeVar("T")


class CallKilled(InternalError):
    """The process of a call ended before it could answer."""

    sentence = "The process of this call ended ({kind}) before it could answer."
    advice = "Look whether its change is there, and call again if not: it is there whole, or not at all."


class _Call:
    """One call. `stop` may come at any moment, and more than once."""

    def __init__(self) -> None:
        self.signals = Signals()
        self.process: Popen[bytes] | None = None

    def stop(self) -> None:
        self.signals.receive(signal.SIGTERM)
        if self.process is not None:
            self.process.terminate()


class Calls:
    """Made in the event loop. A relative `cwd` is meant from the directory that is current then."""

    def __init__(self, at_once: int = NO_WAIT_SECONDS) -> None:
        self.made = 0
        self._home = os.getcwd()
        self._reading = asyncio.Lock()
        self._processes = asyncio.Semaphore(at_once)
        self._running: dict[asyncio.Task[bytes], _Call] = {}

    async def make(self, argv: list[str], reads_only: bool, tell: Tell | None = None) -> bytes:
        """What the call answers. If the caller is cancelled, so is the call."""
        self.made += 1
        one = _Call()
        task = asyncio.create_task(self._read(one, argv) if reads_only else self._process(one, argv, tell))
        self._running[task] = one
        task.add_done_callback(self._running.pop)
        try:
            return await asyncio.shield(task)
        except OSError as error:
            return error_response(from_os_error(error), argv[0])
        except asyncio.CancelledError:
            one.stop()
            raise

    async def end(self) -> None:
        """Stop all calls, and give them the time that two signals leave. What is left then ends by itself."""
        for seconds in _END_SECONDS:
            for one in self._running.values():
                one.stop()
            if self._running:
                await asyncio.wait(self._running, timeout=seconds)

    async def _read(self, one: _Call, argv: list[str]) -> bytes:
        try:
            await asyncio.wait_for(self._reading.acquire(), _READ_SECONDS)
        except TimeoutError:
            return await self._process(one, argv)
        try:
            one.signals.listen()
            os.chdir(self._home)  # it may be gone, or another one now
            return await in_thread(partial(run_in_process, argv, one.signals))
        finally:
            one.signals.close()
            self._reading.release()  # who waits for it goes on later, when this is over
            with suppress(OSError):
                os.chdir(self._home)

    async def _process(self, one: _Call, argv: list[str], tell: Tell | None = None) -> bytes:
        loop = asyncio.get_running_loop()

        def run() -> bytes:
            said = b""
            # The current directory may be that of a call which reads just now.
            one.process = process = Popen(
                [*COMMAND, *argv], stdin=DEVNULL, stdout=PIPE, cwd=self._home, process_group=0
            )
            with process:
                if one.signals.received is not None:
                    one.stop()
                for line in process.stdout or ():
                    if tell is not None and line.startswith(b'{"event":'):
                        asyncio.run_coroutine_threadsafe(tell(json.loads(line)), loop).result()
                    else:
                        said += line
            return said or error_response(CallKilled(f"status {process.returncode}", None), argv[0])

        async with self._processes:
            if one.signals.received is not None:
                raise asyncio.CancelledError
            return await in_thread(run)


async def in_thread(work: Callable[[], T]) -> T:
    """What it returns or raises. The thread keeps nobody from ending the process."""
    done: Future[T] = Future()

    def run() -> None:
        with suppress(InvalidStateError):  # nobody waits any more
            try:
                done.set_result(work())
            except Exception as error:
                done.set_exception(error)

    Thread(target=run, daemon=True).start()
    return await asyncio.wrap_future(done)
