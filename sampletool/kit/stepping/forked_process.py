"""The client's view of a forked process, with the interface of subprocess.Popen.

The docstring of fork_server.py explains the protocol. The numbers of steps in this file are those
of that docstring.
"""

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
"""Like subprocess.PIPE, but the process writes its output to a temporary file.

The output may have any length, and the process never waits for a reader. A child that keeps the
output open does not delay communicate(). The values -1 to -3 are those of subprocess.
"""

_CHUNK_BYTES = 1 << 16
"""The maximum number of bytes to read from a pipe at once: the size of its buffer on Linux."""

_EXIT_REPORT_BYTES = 32
"""The maximum size of an exit report, which is a number such as `0` or `-15`."""

_REAP = b"reap"
"""The message that lets the server reap the process. The server ignores its content."""


class ForkedProcess:
    """A process that a fork server has started, with the interface of subprocess.Popen.

    One thread may wait for the process while another one sends signals. The process stays a zombie
    until a thread has waited for it, so its pid is not reused before.
    """

    def __init__(
        self,
        args: Sequence[str],
        *,
        pid: int,
        exit_socket: socket.socket,
        stdin: IO[bytes] | None,
        stdout: IO[bytes] | None,
        stderr: IO[bytes] | None,
        is_stdout_file: bool,
        is_stderr_file: bool,
    ) -> None:
        self.args = args
        self.pid = pid
        self.exit_socket = exit_socket
        self.stdin = stdin
        self.stdout = stdout
        self.stderr = stderr
        self.returncode: int | None = None
        # Held while the pid is used or given back. Otherwise one thread could send a signal just
        # after another one had waited, and hit a new process with the same pid.
        self._pid_lock = threading.Lock()
        # The outputs that are temporary files (FILE). All others are pipes.
        self._output_files: list[IO[bytes]] = []
        if stdout is not None and is_stdout_file:
            self._output_files.append(stdout)
        if stderr is not None and is_stderr_file:
            self._output_files.append(stderr)
        # communicate() keeps its progress here, so that it can continue after a timeout.
        self._collected_output: dict[IO[bytes], bytearray] = {}
        self._remaining_input: memoryview | None = None

    def __enter__(self) -> "ForkedProcess":
        return self

    def __exit__(self, *error: object) -> None:
        """Close the streams and wait for the process, as Popen does."""
        for stream in (self.stdout, self.stderr):
            if stream is not None:
                stream.close()
        try:
            if self.stdin is not None:
                # close() writes the rest of the buffer, which may raise BrokenPipeError.
                self.stdin.close()
        finally:
            self.wait()

    def poll(self) -> int | None:
        """Return the exit code, or None while the process runs."""
        with suppress(subprocess.TimeoutExpired):
            self.wait(0)
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        """Wait until the process exits. Return its exit code, negative for a signal.

        Raise subprocess.TimeoutExpired if the process still runs after `timeout` seconds.
        """
        if self.returncode is None:
            with selectors.DefaultSelector() as selector:
                selector.register(self.exit_socket, selectors.EVENT_READ)
                if not selector.select(timeout):
                    # Without a timeout, select() returns only when the socket is ready.
                    assert timeout is not None
                    raise subprocess.TimeoutExpired(list(self.args), timeout)
            self._read_exit_report()
        assert self.returncode is not None
        return self.returncode

    def _read_exit_report(self) -> None:
        """Set the exit code, and wait until the server has reaped the zombie (steps 8 to 10)."""
        with self._pid_lock:
            # Another thread may have read the report while this one waited for the lock.
            if self.returncode is not None:
                return
            with self.exit_socket:
                exit_report = self.exit_socket.recv(_EXIT_REPORT_BYTES)
                if exit_report:
                    self.returncode = int(exit_report)
                else:
                    # The server died before it could report, so the real exit code is unknown.
                    self.returncode = -signal.SIGKILL
                # The server may die meanwhile. Then the kernel reaps the zombie.
                with suppress(OSError):
                    self.exit_socket.sendall(_REAP)
                    # The server sends nothing more: this returns when it closes its exit socket.
                    self.exit_socket.recv(1)

    def send_signal(self, number: int) -> None:
        """Send a signal to the process. Do nothing if it has exited."""
        with self._pid_lock:
            if self.returncode is None:
                # The process is a zombie at least, except on macOS, where the server reaps it
                # when it exits, and if the server has died.
                with suppress(ProcessLookupError):
                    os.kill(self.pid, number)

    def terminate(self) -> None:
        """Send SIGTERM."""
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        """Send SIGKILL."""
        self.send_signal(signal.SIGKILL)

    def communicate(self, stdin: bytes = b"", timeout: float | None = None) -> tuple[bytes, bytes]:
        """Write to stdin, read both outputs to their end, and wait for the process.

        Return stdout and stderr. Raise subprocess.TimeoutExpired if this takes longer than
        `timeout` seconds. Then the caller may repeat the call, and no output is lost.
        """
        deadline = None
        if timeout is not None:
            deadline = time.monotonic() + timeout
        if self._remaining_input is None:
            self._remaining_input = memoryview(stdin)
        with selectors.DefaultSelector() as selector:
            self._register_pipes(selector)
            # A pipe is unregistered at its end.
            while selector.get_map():
                ready = selector.select(_seconds_until(deadline))
                if not ready:
                    assert timeout is not None
                    raise subprocess.TimeoutExpired(list(self.args), timeout)
                for key, _ in ready:
                    if self.stdin is not None and key.fileobj is self.stdin:
                        self._write_chunk(self.stdin, selector)
                    else:
                        collected_output = key.data
                        _read_chunk(key.fd, collected_output, selector)
        self.wait(_seconds_until(deadline))
        return self._close_output(self.stdout), self._close_output(self.stderr)

    def _register_pipes(self, selector: selectors.BaseSelector) -> None:
        """Register the pipes that are still open, so that select() waits for them.

        With each output pipe, register the bytes that were collected from it: _read_chunk() adds
        the next ones to them.
        """
        if self.stdin is not None and not self.stdin.closed:
            # The caller may have written to stdin before. What is still in its buffer must come
            # before the chunks that _write_chunk() writes directly to the descriptor.
            with suppress(BrokenPipeError):
                self.stdin.flush()
            selector.register(self.stdin, selectors.EVENT_WRITE)
        for stream in (self.stdout, self.stderr):
            if stream is None or stream.closed:
                continue
            if stream in self._output_files:
                continue
            collected_output = self._collected_output.setdefault(stream, bytearray())
            selector.register(stream, selectors.EVENT_READ, data=collected_output)

    def _write_chunk(self, stdin: IO[bytes], selector: selectors.BaseSelector) -> None:
        """Write part of the input. After the last part, close stdin and unregister it."""
        if self._remaining_input:
            # A pipe that is ready takes PIPE_BUF bytes without blocking.
            chunk = self._remaining_input[: select.PIPE_BUF]
            try:
                written = os.write(stdin.fileno(), chunk)
            except BrokenPipeError:
                # The process has closed its stdin, so drop the rest, as Popen does.
                written = len(self._remaining_input)
            self._remaining_input = self._remaining_input[written:]
        if not self._remaining_input:
            selector.unregister(stdin)
            with suppress(BrokenPipeError):
                stdin.close()

    def _close_output(self, stream: IO[bytes] | None) -> bytes:
        """Close an output and return all that the process wrote to it.

        A second call returns the same. Return b"" if the output is not ours, or if the caller
        closed it before communicate().
        """
        if stream is None:
            return b""
        if stream in self._output_files and not stream.closed:
            # The process has the same file position, so it is at the end of the output.
            stream.seek(0)
            self._collected_output[stream] = bytearray(stream.read())
        stream.close()
        return bytes(self._collected_output.get(stream, b""))


def _read_chunk(
    descriptor: int, collected_output: bytearray, selector: selectors.BaseSelector
) -> None:
    """Append the next part of a pipe to its collected output. Unregister the pipe at its end."""
    data = os.read(descriptor, _CHUNK_BYTES)
    if data:
        collected_output += data
    else:
        selector.unregister(descriptor)


def _seconds_until(deadline: float | None) -> float | None:
    """Return how long to wait for the deadline: 0 if it has passed, None if there is none."""
    if deadline is None:
        return None
    return max(0.0, deadline - time.monotonic())
