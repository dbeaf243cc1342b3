"""A process that has the program loaded already, and forks one for each request: a real process, started quickly.

with ForkServer(preload=["acme.kit.app"]) as fork_server:
    with SteppedProcess(program, watch=directory, fork_server=fork_server) as stepped: ...

Exploring thousands of schedules would otherwise spend nine tenths of its time importing. It ends when its `with` block
ends, or when the process that started it dies: it then reads the end of its socket.
"""

import json
import os
import select
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any


class ForkServer:
    """The tracer's side. May be used by several threads."""

    def __init__(self, preload: Sequence[str], env: Mapping[str, str] | None = None) -> None:
        ours, theirs = socket.socketpair()
        self._process = subprocess.Popen(
            [sys.executable, "-m", f"{__package__}.fork_server", str(theirs.fileno()), *preload],
            env=env,
            stdin=subprocess.DEVNULL,
            process_group=0,  # Ctrl-C is for the tracer, which ends them
            pass_fds=(theirs.fileno(),),
        )
        theirs.close()
        self._socket = ours
        self._turn = threading.Lock()

    def __enter__(self) -> "ForkServer":
        return self

    def __exit__(self, *error: object) -> None:
        self._socket.close()
        self._process.wait()

    def start(
        self, spec: dict[str, Any] | None, program: Sequence[str], env: Mapping[str, str], cwd: Path | None
    ) -> "Forked":
        """Start the program. `spec` names the descriptor of the tracer's socket; without it nothing is stepped."""
        output, errors = tempfile.TemporaryFile(), tempfile.TemporaryFile()  # noqa: SIM115 - Forked closes them
        status, theirs = os.pipe()
        request = {"spec": spec, "program": list(program), "env": dict(env), "cwd": str(cwd or Path.cwd())}
        handed = [spec["socket"] if spec else output.fileno(), output.fileno(), errors.fileno(), theirs]
        with self._turn:
            socket.send_fds(self._socket, [b"+"], handed)
            self._socket.sendall(json.dumps(request).encode() + b"\n")
            pid = int(self._socket.recv(32))
        os.close(theirs)
        return Forked(pid, status, output, errors)


class Forked:
    """The part of subprocess.Popen that the tracer uses."""

    def __init__(self, pid: int, status: int, output: Any, errors: Any) -> None:
        self.pid = pid
        self.returncode: int | None = None
        self._status = status
        self._output, self._errors = output, errors

    def send_signal(self, number: int) -> None:
        """To a process that has ended since it does nothing."""
        if self.wait(0) is None:
            with suppress(ProcessLookupError):
                os.kill(self.pid, number)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)

    def communicate(self, _stdin: bytes = b"", timeout: float | None = None) -> tuple[bytes, bytes]:
        if self.wait(timeout) is None:
            raise subprocess.TimeoutExpired("stepped", timeout or 0)
        with self._output as output, self._errors as errors:
            output.seek(0)
            errors.seek(0)
            return output.read(), errors.read()

    def wait(self, timeout: float | None = None) -> int | None:
        if self.returncode is None and select.select([self._status], [], [], timeout)[0]:
            self.returncode = int(os.read(self._status, 32) or b"-9")
            os.close(self._status)
        return self.returncode

    def __exit__(self, *error: object) -> None:
        self.wait()
        self._output.close()
        self._errors.close()


def main() -> None:
    """The helper's side: fork on request, report each end."""
    from importlib import import_module

    requests = socket.socket(fileno=int(sys.argv[1]))
    lines = requests.makefile("rb")
    for module in [f"{__package__}.tracee", *sys.argv[2:]]:
        import_module(module)
    wake, woken = os.pipe()
    os.set_blocking(woken, False)
    signal.set_wakeup_fd(woken, warn_on_full_buffer=False)
    signal.signal(signal.SIGCHLD, lambda number, frame: None)
    living: dict[int, int] = {}
    while True:
        ready, _, _ = select.select([requests.fileno(), wake], [], [])
        if wake in ready:
            os.read(wake, 4096)
            _report_ends(living)
        if requests.fileno() in ready:
            _, descriptors, _, _ = socket.recv_fds(requests, 1, 4)
            message = lines.readline()
            if not message.endswith(b"\n"):
                return
            status = descriptors.pop()
            pid = os.fork()
            if pid == 0:
                os.close(status)
                _run(json.loads(message), descriptors, [requests.fileno(), wake, woken, *living.values()])
            for descriptor in descriptors:
                os.close(descriptor)
            living[pid] = status
            requests.send(str(pid).encode())


def _report_ends(living: dict[int, int]) -> None:
    for pid in list(living):
        ended, status = os.waitpid(pid, os.WNOHANG)
        if ended:
            descriptor = living.pop(pid)
            os.write(descriptor, str(os.waitstatus_to_exitcode(status)).encode())
            os.close(descriptor)


def _run(request: dict[str, Any], descriptors: list[int], foreign: list[int]) -> None:
    """In the child: run the program, as if started by its command line."""
    from . import tracee

    signal.set_wakeup_fd(-1)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    for descriptor in foreign:
        os.close(descriptor)
    os.dup2(descriptors[1], 1)
    os.dup2(descriptors[2], 2)
    os.chdir(request["cwd"])
    os.environ.clear()
    os.environ.update(request["env"])
    sys.argv[:] = request["program"]
    status = 1
    try:
        tracee.run(request["spec"] and {**request["spec"], "socket": descriptors[0]})
        status = 0
    except SystemExit as end:
        status = end.code if isinstance(end.code, int) else int(end.code is not None)
    except BaseException as error:
        sys.excepthook(type(error), error, error.__traceback__)
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)


if __name__ == "__main__":
    main()
