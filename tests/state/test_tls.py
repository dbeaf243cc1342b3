"""TLS: a certificate that is not trusted, one of another host, and a server without TLS."""

import socket
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from sampletool.state.connect import open_store
from sampletool.state.errors import StoreMisconfigured, StoreUnavailable
from sampletool.state.store import Store
from tests.state.conftest import valkey_url
from tests.state.support.outcomes import raises
from tests.state.support.servers import Server
from tests.state.support.store_client import make_policy
from tests.state.support.tcp_port import TcpPort, make_certificate

THIS_HOST = "IP:127.0.0.1"
OTHER_HOST = "DNS:db.example"

GetServer = Callable[[str], Server]


def opened(url: str, *, patience: float = 30.0) -> closing[Store]:
    return closing(open_store(url, None, make_policy(patience=patience)))


def url_of(kind: str, port: int, trusted: Path | None) -> str:
    """Return a URL that requires a valid certificate, and trusts the one in this file."""
    if kind == "valkey":
        url = f"rediss://127.0.0.1:{port}/9"
        return url if trusted is None else f"{url}?ssl_ca_certs={trusted}"
    url = f"postgresql://test@127.0.0.1:{port}/postgres?sslmode=verify-full"
    return f"{url}&sslrootcert={'system' if trusted is None else trusted}"


def test_a_trusted_certificate_is_accepted(
    kind: str,
    server_of: GetServer,
    tmp_path: Path,
    worker_id: str,
) -> None:
    certificate = make_certificate(tmp_path / "tls", THIS_HOST)
    server = server_of(kind)
    if kind == "valkey":
        valkey_url(server, worker_id)
    with (
        TcpPort(server, certificate) as port,
        opened(url_of(kind, port, certificate.path)) as store,
    ):
        assert store.counter_get("never") == 0


def test_a_self_signed_certificate_fails_at_once_with_its_reason(
    kind: str,
    server_of: GetServer,
    tmp_path: Path,
) -> None:
    """Naive: "cannot be reached", after all attempts, as if it could pass."""
    certificate = make_certificate(tmp_path / "tls", THIS_HOST)
    other = make_certificate(tmp_path / "other", THIS_HOST)
    with (
        TcpPort(server_of(kind), certificate) as port,
        opened(url_of(kind, port, other.path)) as store,
        raises(StoreMisconfigured, match="certificate of the server is not trusted") as wrong,
    ):
        store.counter_get("hits")

    assert not wrong.value.describe()["retryable"]


def test_a_self_signed_certificate_is_not_trusted_by_default(
    server_of: GetServer,
    tmp_path: Path,
) -> None:
    certificate = make_certificate(tmp_path / "tls", THIS_HOST)
    with (
        TcpPort(server_of("valkey"), certificate) as port,
        opened(url_of("valkey", port, None)) as store,
        raises(StoreMisconfigured, match="not trusted"),
    ):
        store.counter_get("hits")


def test_the_certificate_of_another_host_fails_at_once_with_its_reason(
    kind: str,
    server_of: GetServer,
    tmp_path: Path,
) -> None:
    certificate = make_certificate(tmp_path / "tls", OTHER_HOST)
    with (
        TcpPort(server_of(kind), certificate) as port,
        opened(url_of(kind, port, certificate.path)) as store,
        raises(StoreMisconfigured, match="belongs to another host"),
    ):
        store.counter_get("hits")


def test_a_file_of_certificates_that_is_missing_fails_at_once_with_its_reason(
    kind: str,
    server_of: GetServer,
    tmp_path: Path,
) -> None:
    certificate = make_certificate(tmp_path / "tls", THIS_HOST)
    with (
        TcpPort(server_of(kind), certificate) as port,
        opened(url_of(kind, port, tmp_path / "none.pem")) as store,
        raises(StoreMisconfigured, match=r"cannot be read|does not exist"),
    ):
        store.counter_get("hits")


def test_a_real_redis_server_without_tls_fails_soon_with_its_reason(server_of: GetServer) -> None:
    """The server waits for the rest of a command. Naive: so does the client, until its deadline."""
    with (
        TcpPort(server_of("valkey")) as port,
        opened(f"rediss://127.0.0.1:{port}/0", patience=600) as store,
        raises(StoreMisconfigured, match="does not speak TLS") as wrong,
    ):
        store.counter_get("hits")

    assert "rediss://" in wrong.value.message


def test_a_server_that_never_answers_a_handshake_is_unreachable_at_the_deadline() -> None:
    """It may be overloaded, so nothing says that it does not speak TLS."""
    pytest.importorskip("redis")
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        with (
            opened(f"rediss://127.0.0.1:{port}/0", patience=3.0) as store,
            raises(StoreUnavailable, match="did not reply in time"),
        ):
            store.counter_get("hits")
