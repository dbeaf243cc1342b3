"""A socket in front of a server, with a fault: it strikes once, at one chosen message of a client.

The faults:

* "cut request": the server never gets the message. The connection is cut.
* "cut reply": the server obeys, the reply is lost, and the connection is cut.
* "cut half": the same, but the first half of the reply arrives.
* "swallow": the server obeys, but from then on no reply arrives on any connection.
* "trickle": from then on, replies arrive on every connection as one byte every 0.4 s.
"""

import contextlib
import socket
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Literal

Fault = Literal["cut request", "cut reply", "cut half", "swallow", "trickle"]

TRICKLE_SECONDS = 0.4
_MAX_BYTES = 65536
_JOIN_SECONDS = 5.0


class FaultyProxy:
    """The proxy. Set `is_armed` to let it strike at the next message that contains the marker."""

    def __init__(self, path: Path, target: str, marker: bytes, fault: Fault) -> None:
        self._target = target
        self._marker = marker
        self._fault = fault
        self.is_armed = False
        self.struck = threading.Event()
        """Set once the server has got the message, or once a request was cut off."""

        self.is_trickling = threading.Event()
        """Set once the first byte of a reply has trickled."""

        self.on_strike: Callable[[], object] = lambda: None
        """Called when a reply is about to be cut off: the server has obeyed by then."""

        self._clients: list[socket.socket] = []
        self._closing = threading.Event()
        self._cut = threading.Event()
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(str(path))
        self._listener.listen()
        self._thread = threading.Thread(target=self._accept, daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Close all connections."""
        self._closing.set()
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        for client in list(self._clients):
            with contextlib.suppress(OSError):
                client.shutdown(socket.SHUT_RDWR)
        self._thread.join(_JOIN_SECONDS)

    def _accept(self) -> None:
        threads = []
        while True:
            try:
                client, _address = self._listener.accept()
            except OSError:
                break
            self._clients.append(client)
            thread = threading.Thread(target=self._serve, args=(client,), daemon=True)
            thread.start()
            threads.append(thread)
        for thread in threads:
            thread.join(_JOIN_SECONDS)

    def _serve(self, client: socket.socket) -> None:
        """Pass messages of one client on to the server, until one of them closes."""
        with client, socket.socket(socket.AF_UNIX) as server, contextlib.suppress(OSError):
            server.connect(self._target)
            back = threading.Thread(target=self._pass_replies, args=(server, client), daemon=True)
            back.start()
            self._pass_requests(client, server)
            with contextlib.suppress(OSError):
                server.shutdown(socket.SHUT_RDWR)
            back.join(_JOIN_SECONDS)

    def _pass_requests(self, client: socket.socket, server: socket.socket) -> None:
        while message := client.recv(_MAX_BYTES):
            is_chosen = self.is_armed and self._marker in message and not self.struck.is_set()
            if is_chosen and self._fault == "cut request":
                self.struck.set()
                client.shutdown(socket.SHUT_RDWR)
                return
            if is_chosen:
                # Before the message is sent, so that its reply meets the fault.
                self.struck.set()
            server.sendall(message)

    def _pass_replies(self, server: socket.socket, client: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while reply := server.recv(_MAX_BYTES):
                if not self.struck.is_set():
                    client.sendall(reply)
                elif self._fault == "swallow":
                    continue
                elif self._fault == "trickle":
                    self._trickle(reply, client)
                elif self._cut.is_set():
                    # It strikes once: later connections work.
                    client.sendall(reply)
                else:
                    self._cut.set()
                    if self._fault == "cut half":
                        client.sendall(reply[: len(reply) // 2])
                    self.on_strike()
                    client.shutdown(socket.SHUT_RDWR)
                    return
            client.shutdown(socket.SHUT_RDWR)

    def _trickle(self, reply: bytes, client: socket.socket) -> None:
        for position in range(len(reply)):
            client.sendall(reply[position : position + 1])
            self.is_trickling.set()
            if self._closing.wait(TRICKLE_SECONDS):
                return
