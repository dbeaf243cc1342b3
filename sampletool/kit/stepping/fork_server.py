"""A process that has the program loaded already, and forks a process for each request.

A forked process is a real process that starts in a few milliseconds, because it imports nothing again. Start one as
with `subprocess.Popen`, with the words of Python's own command line: `-m MODULE`, `-c SOURCE` or the path of a script.

    with ForkServer(preload=["acme.kit.app"]) as fork_server:
        with fork_server.start(["-m", "acme", "config", "list"], cwd=directory) as process:
            stdout, stderr = process.communicate()

    with SteppedProcess(program, watch=directory, fork_server=fork_server) as stepped: ...

What the program can see is as in a fresh process: its words, directory, environment, descriptors, signal handlers,
threads, random numbers and time zone, and no command ran in the server before. child.py makes it so. These differ:

* modules of the server are imported already, and the seed of `hash()` is the server's;
* its parent is the server, and so is its process group, unless `new_group` or `new_session` is given;
* `/proc/PID/cmdline` and `/proc/PID/environ` are the server's;
* the server read Python's own variables (PYTHON*, LC_*) when it started, and has umask and limits from that time;
* the interpreter is not torn down at the end: `atexit` runs, destructors of global objects may not.

For a test of any of these, start `sys.executable` with `subprocess`.

The server exits when its `with` block ends, or when the process that started it dies: it then reads the end of its
socket. Processes that it has forked live on.
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
from typing import IO

from .child import TRACER, Request
from .forked_process import FILE, ForkedProcess


@dataclass(frozen=True)
class Stepping:
    """The socket of a tracer, and the directory in which it wants to see every event."""

    tracer: socket.socket
    watch: str


class ForkServer:
    """The client's side. May be used by several threads."""

    def __init__(self, preload: Sequence[str], env: Mapping[str, str] | None = None) -> None:
        self.env = dict(os.environ if env is None else env)
        ours, theirs = socket.socketpair()
        self._process = subprocess.Popen(
            [sys.executable, "-m", f"{__package__}.fork_server_main", str(theirs.fileno()), *preload],
            env=self.env,
            stdin=subprocess.DEVNULL,
            process_group=0,  # Ctrl-C is for the client, which ends them
            pass_fds=(theirs.fileno(),),
        )
        theirs.close()
        self._socket = ours
        self._replies = ours.makefile("rb")
        self._turn = threading.Lock()
        self._loaded: set[str] = set()

    @property
    def pid(self) -> int:
        return self._process.pid

    def fileno(self) -> int:
        """Return the descriptor of the socket that requests are written to."""
        return self._socket.fileno()

    def __enter__(self) -> "ForkServer":
        return self

    def __exit__(self, *error: object) -> None:
        self._replies.close()
        self._socket.close()
        self._process.wait()

    def load(self, *modules: str) -> None:
        """Import these modules in the server, so that no process imports them again.

        A module that an earlier call has loaded is not loaded again.
        """
        with self._turn:
            for module in modules:
                if module not in self._loaded:
                    self._ask({"load": module}, [])
                    self._loaded.add(module)

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
    ) -> "ForkedProcess":
        """Start the program, and return when the process is in its directory, group and environment.

        Each stream is PIPE, DEVNULL, a descriptor or a file; an output may be FILE, and stderr STDOUT.
        The program begins when the pipe whose reading end is `gate` has no writer any more.
        Raise OSError where the process cannot be set up, as for a directory that does not exist.
        """
        environ = dict(os.environ if env is None else env)
        sys.audit("fork_server.start", program, environ)
        with ExitStack() as ours, ExitStack() as theirs:
            descriptors: dict[str, int] = {}
            process = ForkedProcess(program)
            for name, target, file in [("0", stdin, None), ("1", stdout, None), ("2", stderr, stdout)]:
                descriptor, stream = _open_stream(name, target, file, descriptors, theirs)
                descriptors[name] = descriptor
                if stream is not None:
                    process.add_stream(name, ours.enter_context(stream), is_file=target == FILE)
            for descriptor in pass_fds:
                descriptors[str(descriptor)] = descriptor
            if stepping is not None:
                descriptors[TRACER] = stepping.tracer.fileno()
            if gate is not None:
                descriptors["gate"] = gate
            report, their_report = socket.socketpair()
            process.report = ours.enter_context(report)
            descriptors["report"] = theirs.enter_context(their_report).fileno()
            request = Request(
                program=list(program),
                env=environ,
                cwd=str(cwd or Path.cwd()),
                descriptors=list(descriptors),
                new_group=new_group,
                new_session=new_session,
                watch=None if stepping is None else stepping.watch,
            )
            with self._turn:
                process.pid = self._ask({"start": asdict(request)}, list(descriptors.values()))
            ours.pop_all()  # from here on they are closed with the process
        return process

    def _ask(self, message: dict[str, object], descriptors: list[int]) -> int:
        # They come with the first byte of what is sent. The rest may be split, so it is a line of its own.
        if descriptors:
            socket.send_fds(self._socket, [b"+"], descriptors)
        else:
            self._socket.sendall(b"-")
        self._socket.sendall(json.dumps(message).encode() + b"\n")
        reply = json.loads(self._replies.readline() or b'{"message": "the fork server has died"}')
        if "message" in reply:
            raise OSError(reply.get("errno"), reply["message"])
        return int(reply["pid"])


def _open_stream(
    name: str, target: int | IO[bytes], stdout: int | IO[bytes] | None, opened: dict[str, int], theirs: ExitStack
) -> tuple[int, IO[bytes] | None]:
    """Return the child's descriptor, and our end where there is one. `theirs` closes what was opened for the child."""
    if not isinstance(target, int):
        return target.fileno(), None
    if target == subprocess.STDOUT and stdout is not None:
        return opened["1"], None
    if target == FILE:
        file = tempfile.TemporaryFile()  # noqa: SIM115 - the process closes it
        return file.fileno(), file
    if target == subprocess.DEVNULL:
        descriptor = os.open(os.devnull, os.O_RDWR)
        theirs.callback(os.close, descriptor)
        return descriptor, None
    if target == subprocess.PIPE:
        reading, writing = os.pipe()
        is_input = name == "0"
        theirs.callback(os.close, reading if is_input else writing)
        if is_input:
            return reading, open(writing, "wb")
        return writing, open(reading, "rb")
    return target, None
