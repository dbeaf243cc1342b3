"""Each test gets a store of its own. The servers are shared: each worker has a database there."""

import contextlib
import secrets
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Protocol
from urllib.parse import quote

import pytest

from sampletool.kit.testing.leaks import outlives_the_test
from sampletool.state.connect import open_store
from sampletool.state.retry_policy import RetryPolicy
from sampletool.state.store import Store
from tests.state.support.outcomes import check_errors
from tests.state.support.proxy import Fault, FaultyProxy
from tests.state.support.servers import NoServer, Server, run_directory
from tests.state.support.store_client import make_policy
from tests.state.support.stores import Backend, MemoryBackend, SharedBackend

SHARED = ("sqlite", "postgres", "valkey")


@pytest.fixture(scope="session", autouse=True)
def _checked_verbs() -> Iterator[None]:
    """Let each verb of each store fail the test if it raises an error that is not ours."""
    with pytest.MonkeyPatch.context() as patch:
        for name, verb in list(vars(Store).items()):
            if name.startswith(("counter_", "state_", "task_")):
                patch.setattr(Store, name, check_errors(verb))
        yield


@pytest.fixture(scope="session")
def server_of(testrun_uid: str) -> Iterator[Callable[[str], Server]]:
    """Yield a function that returns the server of a kind. The first call starts the server."""
    servers: dict[str, Server] = {}

    def get(kind: str) -> Server:
        if kind not in servers:
            try:
                with outlives_the_test():
                    servers[kind] = Server(kind, run_directory(testrun_uid, kind))
            except NoServer as reason:
                pytest.skip(f"no {kind} server: {reason}")
        return servers[kind]

    yield get
    for server in servers.values():
        server.leave()


@pytest.fixture(scope="session")
def breakable_servers() -> Iterator[dict[str, Server]]:
    """Yield the servers that the tests of this worker kill and pause, by their kinds."""
    servers: dict[str, Server] = {}
    yield servers
    for server in servers.values():
        server.end()


@pytest.fixture
def breakable(
    breakable_servers: dict[str, Server], worker_id: str
) -> Iterator[Callable[[str], tuple[Server, str]]]:
    """Yield a function that returns a server to kill and pause, and the URL of an empty store.

    Tests share the server: starting PostgreSQL takes half a second of processor time.
    """
    used = []

    def get(kind: str) -> tuple[Server, str]:
        if kind not in breakable_servers:
            directory = run_directory(secrets.token_hex(6), kind)
            try:
                with outlives_the_test():
                    breakable_servers[kind] = Server(kind, directory, is_durable=False)
            except NoServer as reason:
                pytest.skip(f"no {kind} server: {reason}")
        server = breakable_servers[kind]
        used.append(server)
        if kind == "postgres":
            return server, postgres_url(server, worker_id)
        return server, valkey_url(server, worker_id)

    yield get
    for server in used:
        server.resume()  # the next test needs it, also if this one failed while it was paused


@pytest.fixture
def private_server() -> Iterator[Callable[[str], Server]]:
    """One for this test alone, which may change its settings."""
    servers = []

    def get(kind: str) -> Server:
        try:
            servers.append(Server(kind, run_directory(secrets.token_hex(6), kind)))
        except NoServer as reason:
            pytest.skip(f"no {kind} server: {reason}")
        return servers[-1]

    yield get
    for server in servers:
        server.end()


@pytest.fixture
def make_backend(
    server_of: Callable[[str], Server], worker_id: str, tmp_path: Path, home: Path
) -> Iterator[Callable[[str], Backend]]:
    with contextlib.ExitStack() as stack:

        def make(kind: str) -> Backend:
            backend: Backend
            if kind == "memory":
                backend = MemoryBackend()
            elif kind == "sqlite":
                (tmp_path / "store").mkdir(mode=0o700)
                backend = SharedBackend(kind, f"sqlite://{tmp_path}/store/state.db")
            elif kind == "postgres":
                backend = SharedBackend(kind, postgres_url(server_of(kind), worker_id))
            else:
                backend = SharedBackend(kind, valkey_url(server_of(kind), worker_id))
            stack.callback(backend.close)
            return backend

        yield make


@pytest.fixture(params=["memory", *SHARED])
def backend(request: pytest.FixtureRequest, make_backend: Callable[[str], Backend]) -> Backend:
    return make_backend(request.param)


@pytest.fixture(params=SHARED)
def shared(request: pytest.FixtureRequest, make_backend: Callable[[str], Backend]) -> SharedBackend:
    """Return a backend that several processes can use."""
    made = make_backend(request.param)
    assert isinstance(made, SharedBackend)
    return made


@pytest.fixture
def store(backend: Backend) -> Store:
    return backend.open()


def postgres_url(server: Server, worker: str) -> str:
    """Return the URL of a new schema in the database of this worker."""
    import psycopg

    host = quote(server.running.socket, safe="")
    schema = f"t{secrets.token_hex(6)}"
    with psycopg.connect(f"postgresql://test@/postgres?host={host}", autocommit=True) as admin:
        if (
            admin.execute("SELECT 1 FROM pg_database WHERE datname = %s", (worker,)).fetchone()
            is None
        ):
            admin.execute(f'CREATE DATABASE "{worker}"')
    with psycopg.connect(f"postgresql://test@/{worker}?host={host}", autocommit=True) as admin:
        admin.execute(f"CREATE SCHEMA {schema}")
    return f"postgresql://test@/{worker}?host={host}&options=-csearch_path%3D{schema}"


def valkey_url(server: Server, worker: str) -> str:
    """Empty the database of this worker, and return its URL."""
    import redis

    number = int(worker.removeprefix("gw")) if worker.startswith("gw") else 63
    url = f"unix://{server.running.socket}?db={number}"
    with redis.Redis.from_url(url) as client:
        client.flushdb()
    return url


@pytest.fixture(params=["postgres", "valkey"])
def kind(request: pytest.FixtureRequest) -> str:
    """Each kind of server."""
    return str(request.param)


class ThroughProxy(Protocol):
    """Return a store behind a faulty proxy, the same store without it, and the proxy.

    The proxy strikes when the first store sends the verb: with its COMMIT on PostgreSQL, and with
    its script on Valkey. It is armed.
    """

    def __call__(
        self,
        fault: Fault,
        verb: str = "counter_add",
        *,
        policy: RetryPolicy | None = None,
    ) -> tuple[Store, Store, FaultyProxy]: ...


@pytest.fixture
def through_proxy(
    make_backend: Callable[[str], SharedBackend],
    kind: str,
) -> Iterator[ThroughProxy]:
    # Below /tmp: the path of a socket has at most 107 bytes.
    directory = Path("/tmp") / f"tt-{secrets.token_hex(4)}"
    directory.mkdir(mode=0o700)
    with contextlib.ExitStack() as stack:

        def open_through(
            fault: Fault,
            verb: str = "counter_add",
            *,
            policy: RetryPolicy | None = None,
        ) -> tuple[Store, Store, FaultyProxy]:
            backend = make_backend(kind)
            direct = backend.open()
            direct.counter_add("warm", 1)
            if kind == "postgres":
                host = backend.url.partition("host=")[2].partition("&")[0]
                target = f"{host.replace('%2F', '/')}/.s.PGSQL.5432"
                path = directory / ".s.PGSQL.5432"
                url = backend.url.replace(host, quote(str(directory), safe=""))
                marker = POSTGRES_REQUESTS if fault == "cut request" else b"COMMIT"
            else:
                target = backend.url.removeprefix("unix://").partition("?")[0]
                path = directory / "v.sock"
                url = backend.url.replace(target, str(path))
                marker = verb.encode()
            proxy = FaultyProxy(path, target, marker, fault)
            store = open_store(url, None, make_policy() if policy is None else policy)
            # Close the proxy first: closing a connection may wait for the server.
            stack.callback(store.close)
            stack.callback(proxy.close)
            store.counter_get("warm")
            proxy.is_armed = True
            return store, direct, proxy

        yield open_through
    for path in directory.iterdir():
        path.unlink()
    directory.rmdir()


POSTGRES_REQUESTS = b"INSERT INTO tool_counters"
