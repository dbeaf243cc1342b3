"""Start processes from a server that has already imported the program, and forks for each request.

A forked process is a real process that starts in a few milliseconds, because it does not import
the modules again. Start it like a process of `subprocess.Popen`, with the arguments of `python`:
`-m MODULE`, `-c SOURCE` or the path of a script.

    with ForkServer(preload=["acme.kit.app"]) as fork_server:
        with fork_server.start(["-m", "acme", "config", "list"], cwd=directory) as process:
            stdout, stderr = process.communicate()

    with SteppedProcess(program, watch=directory, fork_server=fork_server) as stepped: ...

A program sees the same things as in a fresh process: its arguments, directory, environment,
descriptors, signal handlers, threads, random numbers and time zone. No command has run in the
server before. child.py sets this up. The differences are:

* The server has imported some modules already, and the seed of `hash()` is the server's.
* The parent process is the server. The process group is the server's too, unless `new_group` or
  `new_session` is given.
* `/proc/PID/cmdline` and `/proc/PID/environ` are the server's.
* The interpreter read its own variables (PYTHON*, LC_*) when the server started. The umask and the
  resource limits are also from that time.
* The interpreter is not torn down at the end. `atexit` functions run, but destructors of global
  objects may not run, and a file that the program leaves open may lose what is in its buffer.
* After the last line of the program, `sys.modules["__main__"]` is the server's module again.
* `threading.main_thread().native_id` is the pid of the server.
* Some rare exits differ: `sys.exit()` with a number of more than 64 bits, and the message about
  output that could not be written.

A test of any of these starts `sys.executable` with `subprocess`.

The protocol
------------

This module and forked_process.py are the client's side. fork_server_main.py is the server's side,
and child.py runs in the forked process. They use three connections:

* The *request socket*, one for each server, carries requests and replies.
* The *exit sockets*, one pair for each process, carry the exit code. One end is the client's, the
  other is the server's. The forked process has neither.
* The *setup pipe*, one for each process, leads from the forked process to the server.

To start a process:

1. The client creates the pipes of the standard streams and the pair of exit sockets.
2. The client sends one byte, and with this byte the descriptors: those of the new process, and the
   server's exit socket. Then it sends a line of JSON that names them. Both go through the request
   socket.
3. The server creates the setup pipe and forks. It closes its copies of the new process's
   descriptors, and keeps its exit socket.
4. The forked process sets up its descriptors, directory and environment. Then it closes the setup
   pipe. If it fails, it first writes the error to the setup pipe, and exits.
5. The server reads the setup pipe until its end. It replies with the pid, or with the error.
6. The client closes the ends that it opened for the process and for the server. `start` returns
   the process, or raises the error.

When the process exits:

7. SIGCHLD wakes the server. It looks at the exit code without reaping the process, and sends the
   exit code through the exit socket. This is the *exit report*. The process stays a zombie, so its
   pid is not reused, and the client can send signals without hitting another process.
8. `ForkedProcess.wait` reads the exit report. It sends a message back, which means that the server
   may reap the process.
9. The server reaps the process and closes its exit socket.
10. The client reads the end of its exit socket, and closes it. Now the pid may be reused.

If the client closes its exit socket early, the server reaps the process as soon as it exits. If
the server dies, the client reads the end of the exit socket instead of an exit report.

The server exits when it reads the end of the request socket. That happens when the `with` block
of the client ends, and when the client dies. Processes that the server has forked continue to run.
"""

import json
import os
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import IO, Any

from .child import DESCRIPTOR_CARRIER, EXIT_SOCKET, GATE, TRACER, Request
from .forked_process import FILE, ForkedProcess


@dataclass(frozen=True)
class Stepping:
    """The socket of a tracer, and the directory in which it wants to see every event."""

    tracer: socket.socket
    watch: str


@dataclass(frozen=True, kw_only=True)
class _Stream:
    """A standard stream of a process that is about to start."""

    child_descriptor: int
    """The descriptor that is sent, and becomes the stream of the process."""
    client_file: IO[bytes] | None = None
    """The client's end of a pipe, or the file of an output that is FILE. None for other streams."""


@dataclass(frozen=True, kw_only=True)
class _StandardStreams:
    """The three standard streams of a process that is about to start."""

    stdin: _Stream
    stdout: _Stream
    stderr: _Stream


class ForkServer:
    """The client's side of a fork server. Several threads may use it."""

    def __init__(self, preload: Sequence[str], env: Mapping[str, str] | None = None) -> None:
        self.env = _copy_environ(env)
        client_end, server_end = socket.socketpair()
        main_module = f"{__package__}.fork_server_main"
        server_descriptor = server_end.fileno()
        self._process = subprocess.Popen(
            [sys.executable, "-m", main_module, str(server_descriptor), *preload],
            env=self.env,
            stdin=subprocess.DEVNULL,
            # In a group of its own, the server does not get the SIGINT of Ctrl-C. Only the client
            # gets it, and then ends the server and its processes.
            process_group=0,
            pass_fds=(server_descriptor,),
        )
        server_end.close()
        self._request_socket = client_end
        self._reply_lines = client_end.makefile("rb")
        # A reply does not say which request it belongs to, so there is one request at a time.
        self._request_lock = threading.Lock()
        self._loaded_modules: set[str] = set()

    @property
    def pid(self) -> int:
        """The pid of the server."""
        return self._process.pid

    def fileno(self) -> int:
        """Return the descriptor of the request socket."""
        return self._request_socket.fileno()

    def __enter__(self) -> "ForkServer":
        return self

    def __exit__(self, *error: object) -> None:
        """Close the request socket, and wait until the server has exited."""
        self._reply_lines.close()
        self._request_socket.close()
        self._process.wait()

    def load(self, *modules: str) -> None:
        """Import these modules in the server, so that its processes do not import them again.

        Skip the modules that an earlier call has loaded. Raise OSError if a module cannot be
        imported, or if it changes signal handlers.
        """
        with self._request_lock:
            for module in modules:
                if module not in self._loaded_modules:
                    self._send_request({"load": module})
                    self._loaded_modules.add(module)

    def start(
        self,
        program: Sequence[str],
        *,
        env: Mapping[str, str] | None = None,
        cwd: str | Path | None = None,
        stdin: int | IO[bytes] = subprocess.DEVNULL,
        stdout: int | IO[bytes] = subprocess.PIPE,
        stderr: int | IO[bytes] = subprocess.PIPE,
        pass_fds: Sequence[int] = (),
        new_group: bool = False,
        new_session: bool = False,
        gate: int | None = None,
        stepping: Stepping | None = None,
    ) -> ForkedProcess:
        """Start the program, and return when the process has its directory, group and environment.

        Each stream is PIPE, DEVNULL, a descriptor or a file. An output may also be FILE, and stderr
        may be STDOUT. `gate` is the reading end of a pipe: the program begins when no process has
        the writing end open any more.

        Raise OSError if the process cannot be set up, for example if the directory does not exist.
        """
        environ = _copy_environ(env)
        sys.audit("fork_server.start", program, environ)
        if not cwd:
            cwd = Path.cwd()

        # `client_ends` are closed if the start fails, `child_ends` in any case: the new process has
        # its own copies of them.
        with ExitStack() as client_ends, ExitStack() as child_ends:
            streams = _open_streams(stdin, stdout, stderr, client_ends, child_ends)
            exit_socket, server_exit_socket = socket.socketpair()
            client_ends.enter_context(exit_socket)
            child_ends.enter_context(server_exit_socket)

            descriptors_by_name = _name_descriptors(streams, pass_fds)
            descriptors_by_name[EXIT_SOCKET] = server_exit_socket.fileno()
            if gate is not None:
                descriptors_by_name[GATE] = gate
            watch = None
            if stepping is not None:
                descriptors_by_name[TRACER] = stepping.tracer.fileno()
                watch = stepping.watch

            request = Request(
                program=list(program),
                env=environ,
                cwd=str(cwd),
                descriptor_names=list(descriptors_by_name),
                new_group=new_group,
                new_session=new_session,
                watch=watch,
            )
            descriptors = list(descriptors_by_name.values())
            with self._request_lock:
                reply = self._send_request({"start": asdict(request)}, descriptors)
            # From here on, the process closes them.
            client_ends.pop_all()

        return ForkedProcess(
            program,
            pid=reply["pid"],
            exit_socket=exit_socket,
            stdin=streams.stdin.client_file,
            stdout=streams.stdout.client_file,
            stderr=streams.stderr.client_file,
            is_stdout_file=stdout == FILE,
            is_stderr_file=stderr == FILE,
        )

    def _send_request(
        self, message: dict[str, Any], descriptors: Sequence[int] = ()
    ) -> dict[str, Any]:
        """Send a request with these descriptors, and return the reply.

        The caller holds the request lock.

        Raise OSError if the server replies with an error or has died.
        """
        # Descriptors arrive with the first byte of a message, but a long message may be split on
        # its way. So a single byte carries them, and the message follows as a line of its own.
        if descriptors:
            socket.send_fds(self._request_socket, [DESCRIPTOR_CARRIER], descriptors)
        else:
            self._request_socket.sendall(DESCRIPTOR_CARRIER)
        request_line = json.dumps(message).encode() + b"\n"
        self._request_socket.sendall(request_line)

        reply_line = self._reply_lines.readline()
        if not reply_line:
            raise OSError(None, "the fork server has died")
        reply: dict[str, Any] = json.loads(reply_line)
        if "message" in reply:
            raise OSError(reply.get("errno"), reply["message"])
        return reply


def _copy_environ(env: Mapping[str, str] | None) -> dict[str, str]:
    """Return a copy of `env`, or of the environment of this process if `env` is None."""
    if env is None:
        return dict(os.environ)
    return dict(env)


def _name_descriptors(streams: _StandardStreams, pass_fds: Sequence[int]) -> dict[str, int]:
    """Return the descriptors of a new process, by the numbers that they get there."""
    descriptors_by_name = {
        "0": streams.stdin.child_descriptor,
        "1": streams.stdout.child_descriptor,
        "2": streams.stderr.child_descriptor,
    }
    # The process finds these under the numbers that they have here.
    for descriptor in pass_fds:
        descriptors_by_name[str(descriptor)] = descriptor
    return descriptors_by_name


def _open_streams(
    stdin: int | IO[bytes],
    stdout: int | IO[bytes],
    stderr: int | IO[bytes],
    client_ends: ExitStack,
    child_ends: ExitStack,
) -> _StandardStreams:
    """Return the standard streams of a new process.

    Push a callback that closes each opened descriptor onto the stack of its side.
    """
    stdin_stream = _open_input(stdin, client_ends, child_ends)
    stdout_stream = _open_output(stdout, client_ends, child_ends)
    if stderr == subprocess.STDOUT:
        # Both outputs have the same descriptor, and the client reads both from stdout.
        stderr_stream = _Stream(child_descriptor=stdout_stream.child_descriptor)
    else:
        stderr_stream = _open_output(stderr, client_ends, child_ends)
    return _StandardStreams(stdin=stdin_stream, stdout=stdout_stream, stderr=stderr_stream)


def _open_input(
    target: int | IO[bytes],
    client_ends: ExitStack,
    child_ends: ExitStack,
) -> _Stream:
    """Return the stdin of a new process. Push callbacks that close what was opened."""
    if target != subprocess.PIPE:
        return _open_target(target, client_ends, child_ends)
    child_end, client_end = os.pipe()
    child_ends.callback(os.close, child_end)
    client_file = open(client_end, "wb")  # noqa: SIM115 - the process closes it
    client_ends.enter_context(client_file)
    return _Stream(child_descriptor=child_end, client_file=client_file)


def _open_output(
    target: int | IO[bytes],
    client_ends: ExitStack,
    child_ends: ExitStack,
) -> _Stream:
    """Return the stdout or stderr of a new process. Push callbacks that close what was opened."""
    if target != subprocess.PIPE:
        return _open_target(target, client_ends, child_ends)
    client_end, child_end = os.pipe()
    child_ends.callback(os.close, child_end)
    client_file = open(client_end, "rb")  # noqa: SIM115 - the process closes it
    client_ends.enter_context(client_file)
    return _Stream(child_descriptor=child_end, client_file=client_file)


def _open_target(
    target: int | IO[bytes],
    client_ends: ExitStack,
    child_ends: ExitStack,
) -> _Stream:
    """Return a stream that is no pipe: a file, FILE, DEVNULL or a descriptor of the caller."""
    if not isinstance(target, int):
        return _Stream(child_descriptor=target.fileno())
    if target == FILE:
        # The process writes to this file, and communicate() reads it when the process has exited.
        file = tempfile.TemporaryFile()  # noqa: SIM115 - the process closes it
        client_ends.enter_context(file)
        return _Stream(child_descriptor=file.fileno(), client_file=file)
    if target == subprocess.DEVNULL:
        descriptor = os.open(os.devnull, os.O_RDWR)
        child_ends.callback(os.close, descriptor)
        return _Stream(child_descriptor=descriptor)
    return _Stream(child_descriptor=target)
