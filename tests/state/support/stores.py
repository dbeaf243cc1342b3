"""One store for every test, whatever its backend is, and many clients of it at once.

A job is a coroutine of tests/state/jobs.py. It gets a client and the number of the client. On a
backend that outlives a process, each job runs in a process of its own, and all of them start at the
same moment. In a process, the jobs run in one event loop.
"""

import asyncio
import json
import os
import signal
import subprocess
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from importlib.util import find_spec
from typing import Any, cast

from sampletool.kit.testing.forked import fork_server, start_python
from sampletool.state.connect import open_store
from sampletool.state.memory import MemoryStore
from sampletool.state.retry_policy import MIN_SERVER_SECONDS
from sampletool.state.store import Store
from tests.state import jobs
from tests.state.support.store_client import make_policy
from tests.state.support.waiting import state_of, wait_until_stopped

STDERR = 2
"""The descriptor of stderr. The errors of clients are part of the output of the test."""
_LONGEST_SECONDS = 90


@dataclass
class SharedBackend:
    """A backend that outlives a process. Another process needs only its URL."""

    name: str
    url: str
    opened: list[Store] = field(default_factory=list)
    clients: list["Client"] = field(default_factory=list)

    def open(
        self,
        *,
        patience: float = 10.0,
        min_server_seconds: float = MIN_SERVER_SECONDS,
        dry_run: bool = False,
    ) -> Store:
        policy = make_policy(
            patience=patience, min_server_seconds=min_server_seconds, dry_run=dry_run
        )
        store = open_store(self.url, None, policy)
        self.opened.append(store)
        return store

    def together(self, job: str, count: int, *args: Any) -> list[Any]:
        load_clients()
        program = ["-m", "tests.state.support.crowd", self.name, job, str(count), json.dumps(args)]
        crowd = start_python(*program, env=os.environ | {"TEST_STORE": self.url}, stderr=STDERR)
        with crowd:
            stdout, _ = crowd.communicate(timeout=_LONGEST_SECONDS)
        assert crowd.returncode == 0
        return list(json.loads(stdout))

    def start(self, job: str, number: int, *args: Any) -> "Client":
        self.clients.append(Client(self.url, job, number, args))
        return self.clients[-1]

    def close(self) -> None:
        """Kill the clients that a failed test has left running or stopped, and close the stores."""
        for client in self.clients:
            client.kill()
        for store in self.opened:
            store.close()


@cache
def load_clients() -> None:
    """Let the fork server of this worker load what the clients need, so that they start fast."""
    fork_server().load("tests.state.support.store_client", "sampletool.state.sqlite")
    for driver in ("psycopg", "redis"):
        if find_spec(driver):
            fork_server().load(driver)


class Client:
    """A process with a client of the store. It waits for `go`."""

    def __init__(self, url: str, job: str, number: int, args: tuple[Any, ...]) -> None:
        load_clients()
        program = ["-m", "tests.state.support.store_client", job, str(number), json.dumps(args)]
        environ = os.environ | {"TEST_STORE": url}
        self.process = start_python(*program, env=environ, stdin=subprocess.PIPE, stderr=STDERR)
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self._stdin = self.process.stdin
        self._stdout = self.process.stdout

    def wait_until_ready(self) -> None:
        assert self._stdout.readline() == b"ready\n"

    def go(self) -> None:
        self._stdin.close()

    def line(self) -> str:
        """Return the next line that the job prints."""
        return self._stdout.readline().decode().strip()

    def result(self) -> Any:
        output = self._stdout.read()
        assert self.process.wait(_LONGEST_SECONDS) == 0
        self._stdout.close()
        last_line = output.splitlines()[-1]
        return json.loads(last_line)

    def wait_until_stopped(self) -> bool:
        """Wait until the process is stopped. Return False if it has exited instead."""
        return wait_until_stopped(self.process.pid)

    def is_asleep(self) -> bool:
        """Return whether the process waits. It has one thread until it waits for a lock."""
        return state_of(self.process.pid) == "S"

    def resume(self) -> None:
        self.process.send_signal(signal.SIGCONT)

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()
        self._stdin.close()
        self._stdout.close()


class MemoryBackend:
    """A backend inside this process: one event loop, and one store for all clients."""

    name = "memory"

    def __init__(self) -> None:
        self._runner = asyncio.Runner()
        self._store = self._runner.run(_make_memory_store())

    def open(self, *, patience: float = 10.0, dry_run: bool = False) -> Store:
        return cast(Store, _Waiting(self._store, self._runner))

    def together(self, job: str, count: int, *args: Any) -> list[Any]:
        work = getattr(jobs, job)

        async def everybody() -> list[Any]:
            clients = [work(self._store, number, *args) for number in range(count)]
            return await asyncio.gather(*clients)

        return self._runner.run(everybody())

    def close(self) -> None:
        self._runner.close()


Backend = SharedBackend | MemoryBackend


async def _make_memory_store() -> MemoryStore:
    return MemoryStore()


class _Waiting:
    """The store in this process, with verbs that wait for their result, as tests call them."""

    def __init__(self, store: MemoryStore, runner: asyncio.Runner) -> None:
        self._store = store
        self._runner = runner

    def __getattr__(self, verb: str) -> Callable[..., Any]:
        method = getattr(self._store, verb)

        def call(*args: Any, **options: Any) -> Any:
            return self._runner.run(method(*args, **options))

        return call
