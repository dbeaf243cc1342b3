"""A TCP port in front of a server that listens on a socket in a directory, plain or with TLS."""

import shutil
import socket
import ssl
import subprocess
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from threading import Thread

import pytest

from tests.state.support.servers import Server

_MAX_BYTES = 65536
_JOIN_SECONDS = 5.0

_POSTGRES_TLS_REQUEST_BYTES = 8
"""The length of the message that asks a PostgreSQL server whether it speaks TLS."""


@dataclass(frozen=True)
class Certificate:
    """A self-signed certificate, in two files."""

    path: Path
    key_path: Path


def make_certificate(directory: Path, subject_alt_name: str) -> Certificate:
    """Create a certificate for a host, such as `IP:127.0.0.1`. Skip the test without openssl."""
    openssl = shutil.which("openssl")
    if openssl is None:
        pytest.skip("no openssl")
    directory.mkdir(exist_ok=True)
    certificate = Certificate(directory / "certificate.pem", directory / "key.pem")
    subprocess.run(
        [
            openssl,
            "req",
            "-x509",
            *("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1"),
            *("-nodes", "-days", "2", "-subj", "/CN=test"),
            *("-addext", f"subjectAltName={subject_alt_name}"),
            *("-keyout", str(certificate.key_path), "-out", str(certificate.path)),
        ],
        check=True,
        capture_output=True,
    )
    return certificate


class TcpPort:
    """A TCP port that leads to the socket of a server. `with` yields its number.

    With a certificate, the port speaks TLS, and the server behind it does not notice.
    """

    def __init__(self, server: Server, certificate: Certificate | None = None) -> None:
        path = server.running.socket
        self._is_postgres = not path.endswith(".sock")
        self._target = f"{path}/.s.PGSQL.5432" if self._is_postgres else path
        self._tls = None
        if certificate is not None:
            self._tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            self._tls.load_cert_chain(certificate.path, certificate.key_path)

    def __enter__(self) -> int:
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._thread = Thread(target=self._accept, daemon=True)
        self._thread.start()
        return int(self._listener.getsockname()[1])

    def __exit__(self, *_error: object) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self._thread.join(_JOIN_SECONDS)

    def _accept(self) -> None:
        """Serve one client after the other, each with a thread of its own."""
        threads = []
        clients = []
        while True:
            try:
                client, _address = self._listener.accept()
            except OSError:
                break
            clients.append(client)
            thread = Thread(target=self._serve, args=(client,), daemon=True)
            thread.start()
            threads.append(thread)
        for client in clients:
            with suppress(OSError):
                client.shutdown(socket.SHUT_RDWR)
        for thread in threads:
            thread.join(_JOIN_SECONDS)

    def _serve(self, client: socket.socket) -> None:
        with client, suppress(OSError):
            if self._tls is None:
                self._connect_to_server(client)
                return
            if self._is_postgres:
                client.recv(_POSTGRES_TLS_REQUEST_BYTES)
                client.sendall(b"S")
            # A client that does not trust the certificate ends the handshake: an OSError.
            with self._tls.wrap_socket(client, server_side=True) as encrypted:
                self._connect_to_server(encrypted)

    def _connect_to_server(self, client: socket.socket) -> None:
        with socket.socket(socket.AF_UNIX) as server:
            server.connect(self._target)
            back = Thread(target=_pass_on, args=(server, client), daemon=True)
            back.start()
            _pass_on(client, server)
            # Closing the socket would not end a recv() of the other thread.
            with suppress(OSError):
                server.shutdown(socket.SHUT_RDWR)
            back.join(_JOIN_SECONDS)


def _pass_on(source: socket.socket, target: socket.socket) -> None:
    with suppress(OSError):
        while content := source.recv(_MAX_BYTES):
            target.sendall(content)
        target.shutdown(socket.SHUT_RDWR)
