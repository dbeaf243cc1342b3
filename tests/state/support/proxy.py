"""A server's socket with a fault: the connection is cut at one chosen message, before or after the server got it."""

import contextlib
import socket
import threading
from pathlib import Path


class CuttingProxy:
    """Once armed it cuts once, when a client's message contains the marker; everything else goes through."""

    def __init__(self, path: Path, target: str, marker: bytes, *, after_the_server_answered: bool) -> None:
        self._target = target
        self._marker = marker
        self._answered = after_the_server_answered
        self.is_armed = False
        self.has_cut = False
        self._is_swallowing = False
        self._answer_came = threading.Event()
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(str(path))
        self._listener.listen()
        self._thread = threading.Thread(target=self._accept, daemon=True)
        self._thread.start()

    def close(self) -> None:
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self._thread.join(5)

    def _accept(self) -> None:
        threads = []
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                break
            thread = threading.Thread(target=self._serve, args=(client,), daemon=True)
            thread.start()
            threads.append(thread)
        for thread in threads:
            thread.join(5)

    def _serve(self, client: socket.socket) -> None:
        with client, socket.socket(socket.AF_UNIX) as server, contextlib.suppress(OSError):
            server.connect(self._target)
            back = threading.Thread(target=self._copy, args=(server, client), daemon=True)
            back.start()
            while message := client.recv(65536):
                if self._marker in message and self.is_armed and not self.has_cut:
                    self.has_cut = True
                    if self._answered:
                        self._is_swallowing = True
                        server.sendall(message)
                        self._answer_came.wait(10)
                    client.shutdown(socket.SHUT_RDWR)
                    server.shutdown(socket.SHUT_RDWR)
                    break
                server.sendall(message)
            with contextlib.suppress(OSError):
                server.shutdown(socket.SHUT_RDWR)
            back.join(5)

    def _copy(self, server: socket.socket, client: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while answer := server.recv(65536):
                if self._is_swallowing:
                    self._is_swallowing = False
                    self._answer_came.set()
                    continue
                client.sendall(answer)
            client.shutdown(socket.SHUT_RDWR)
