"""What the client of a fork server has of a process: the interface of subprocess.Popen."""

import os
import select
import selectors
import signal
import socket
import subprocess
import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from typing import IO

FILE = -4
"""Like subprocess.PIPE, for an output of any length that nobody reads before the process has exited."""

_CHUNK_BYTES = 1 << 16


class ForkedProcess:
    """A process that a fork server has started, with the interface of subprocess.Popen.

    One thread may wait while another one sends signals. The process stays a zombie until it is waited for, so its pid
    is not used again before.
    """

    def __init__(self, args: Sequence[str]) -> None:
        self.args = args
        self.pid = 0
        self.returncode: int | None = None
        self.stdin: IO[bytes] | None = None
        self.stdout: IO[bytes] | None = None
        self.stderr: IO[bytes] | None = None
        self.report: socket.socket | None = None
        self._turn = threading.Lock()
        self._files: list[IO[bytes]] = []
        self._output: dict[IO[bytes], bytearray] = {}
        self._unwritten: memoryview | None = None

    def __enter__(self) -> "ForkedProcess":
        return self

    def __exit__(self, *error: object) -> None:
        """Close the streams and wait for the process, as Popen does."""
        for stream in (self.stdout, self.stderr):
            if stream is not None:
                stream.close()
        try:
            if self.stdin is not None:
                self.stdin.close()
        finally:
            self.wait()

    def add_stream(self, name: str, stream: IO[bytes], *, is_file: bool) -> None:
        """Add our end of a standard stream."""
        if name == "0":
            self.stdin = stream
        elif name == "1":
            self.stdout = stream
        else:
            self.stderr = stream
        if is_file:
            self._files.append(stream)

    def poll(self) -> int | None:
        """Return the exit code, or None while the process runs."""
        with suppress(subprocess.TimeoutExpired):
            self.wait(0)
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        """Return the exit code, negative for a signal. Raise subprocess.TimeoutExpired while the process runs."""
        if self.returncode is None:
            assert self.report is not None
            with selectors.DefaultSelector() as selector:
                selector.register(self.report, selectors.EVENT_READ)
                if not selector.select(timeout):
                    raise subprocess.TimeoutExpired(list(self.args), timeout or 0)
            self._collect()
        assert self.returncode is not None
        return self.returncode

    def _collect(self) -> None:
        """Read the exit code, and let the server reap the zombie: afterwards the pid is nobody's."""
        with self._turn:
            if self.returncode is None:
                assert self.report is not None
                with self.report as report:
                    exit_code = report.recv(32) or str(-signal.SIGKILL).encode()  # no word: the server was killed
                    self.returncode = int(exit_code)
                    with suppress(OSError):
                        report.sendall(b"reap")
                        report.recv(1)

    def send_signal(self, number: int) -> None:
        """Send a signal. It does nothing to a process that has exited."""
        with self._turn:
            if self.returncode is None:
                with suppress(ProcessLookupError):  # where the server cannot keep zombies
                    os.kill(self.pid, number)

    def terminate(self) -> None:
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)

    def communicate(self, stdin: bytes = b"", timeout: float | None = None) -> tuple[bytes, bytes]:
        """Write to stdin, read both outputs to their end, wait for the process, and return the outputs.

        Raise subprocess.TimeoutExpired. The call may then be repeated, and nothing of the output is lost.
        """
        deadline = None if timeout is None else time.monotonic() + timeout
        if self._unwritten is None:
            self._unwritten = memoryview(stdin)
        with selectors.DefaultSelector() as selector:
            self._register(selector)
            while selector.get_map():
                ready = selector.select(_seconds_until(deadline))
                if not ready:
                    raise subprocess.TimeoutExpired(list(self.args), timeout or 0)
                for key, _ in ready:
                    if key.fileobj is self.stdin:
                        self._write_some(self.stdin, selector)
                    elif self.stdout is key.fileobj or self.stderr is key.fileobj:
                        self._read_some(key.fd, key.data, selector)
        self.wait(_seconds_until(deadline))
        return self._close(self.stdout), self._close(self.stderr)

    def _register(self, selector: selectors.BaseSelector) -> None:
        if self.stdin is not None and not self.stdin.closed:
            with suppress(BrokenPipeError):
                self.stdin.flush()
            selector.register(self.stdin, selectors.EVENT_WRITE)
        for stream in (self.stdout, self.stderr):
            if stream is not None and not stream.closed and stream not in self._files:
                output = self._output.setdefault(stream, bytearray())
                selector.register(stream, selectors.EVENT_READ, output)

    def _write_some(self, stdin: IO[bytes], selector: selectors.BaseSelector) -> None:
        assert self._unwritten is not None
        # A pipe that is ready takes this much without blocking.
        chunk = self._unwritten[: select.PIPE_BUF]
        try:
            written = os.write(stdin.fileno(), chunk) if chunk else 0
        except BrokenPipeError:
            written = len(self._unwritten)
        self._unwritten = self._unwritten[written:]
        if not self._unwritten:
            selector.unregister(stdin)
            with suppress(BrokenPipeError):
                stdin.close()

    def _read_some(self, descriptor: int, output: bytearray, selector: selectors.BaseSelector) -> None:
        data = os.read(descriptor, _CHUNK_BYTES)
        output += data
        if not data:
            selector.unregister(descriptor)

    def _close(self, stream: IO[bytes] | None) -> bytes:
        """Close one of our ends and return what the process wrote there, also if it was closed before."""
        if stream is None:
            return b""
        if stream in self._files and not stream.closed:
            stream.seek(0)
            self._output[stream] = bytearray(stream.read())
        stream.close()
        return bytes(self._output.get(stream, b""))


def _seconds_until(deadline: float | None) -> float | None:
    return None if deadline is None else max(0.0, deadline - time.monotonic())
