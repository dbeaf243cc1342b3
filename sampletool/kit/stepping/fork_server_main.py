"""The fork server's own side: fork on request, report each exit, reap when the client has heard of it."""

import json
import os
import selectors
import signal
import socket
import sys
from contextlib import suppress
from dataclasses import dataclass
from importlib import import_module
from typing import Any, NoReturn

from .child import Request, become

_MAX_DESCRIPTORS = 32


@dataclass
class _Child:
    """A process that the server has forked, and the socket to the client that asked for it."""

    pid: int
    report: socket.socket
    has_exited: bool = False


class _Server:
    """Answers the requests of one client."""

    def __init__(self, requests: socket.socket) -> None:
        self._requests = requests
        self._lines = requests.makefile("rb")
        self._children: dict[int, _Child] = {}
        self._woken, self._wake = os.pipe()
        os.set_blocking(self._wake, False)
        self._selector = selectors.DefaultSelector()
        self._selector.register(self._requests, selectors.EVENT_READ)
        self._selector.register(self._woken, selectors.EVENT_READ)

    def serve(self) -> None:
        """Serve until the client closes its socket."""
        signal.set_wakeup_fd(self._wake, warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda number, frame: None)
        while True:
            for key, _ in self._selector.select():
                if key.fileobj is self._requests:
                    if not self._answer():
                        return
                elif key.fileobj == self._woken:
                    os.read(self._woken, 4096)
                    self._report_exits()
                else:
                    self._forget(key.data)

    def _answer(self) -> bool:
        """Answer one request, and return whether there was one."""
        _, received, _, _ = socket.recv_fds(self._requests, 1, _MAX_DESCRIPTORS)
        line = self._lines.readline()
        if not line.endswith(b"\n"):
            return False
        message = json.loads(line)
        reply = self._reply(message, received)
        self._requests.sendall(json.dumps(reply).encode() + b"\n")
        return True

    def _reply(self, message: dict[str, Any], received: list[int]) -> dict[str, object]:
        if "load" in message:
            return _load(message["load"])
        return self._start(Request(**message["start"]), received)

    def _start(self, request: Request, received: list[int]) -> dict[str, object]:
        descriptors = dict(zip(request.descriptors, received, strict=True))
        report = socket.socket(fileno=descriptors.pop("report"))
        ready, told = os.pipe()
        pid = os.fork()
        if pid == 0:
            self._run(request, descriptors, told)
        os.close(told)
        for descriptor in descriptors.values():
            os.close(descriptor)
        child = _Child(pid=pid, report=report)
        self._children[pid] = child
        self._selector.register(report, selectors.EVENT_READ, child)
        # The child closes its end when it has all that it needs, or says first why it cannot have it.
        with open(ready, "rb") as failure:
            told_failure = failure.read()
        if told_failure:
            return dict(json.loads(told_failure))
        return {"pid": pid}

    def _run(self, request: Request, descriptors: dict[str, int], told: int) -> NoReturn:
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        become(request, descriptors, told)

    def _report_exits(self) -> None:
        for child in list(self._children.values()):
            if child.has_exited:
                continue
            exit_code = _exit_code_of(child.pid)
            if exit_code is not None:
                child.has_exited = True
                with suppress(OSError):  # nobody waits for it
                    child.report.sendall(str(exit_code).encode())
                if child.report.fileno() < 0:
                    self._reap(child)

    def _forget(self, child: _Child) -> None:
        """Reap what the client has waited for. What it has abandoned is reaped when it exits."""
        self._selector.unregister(child.report)
        if child.has_exited:
            self._reap(child)
        child.report.close()

    def _reap(self, child: _Child) -> None:
        with suppress(ChildProcessError):
            os.waitpid(child.pid, 0)
        del self._children[child.pid]


def _exit_code_of(pid: int) -> int | None:
    """Return how the child exited, None while it runs. It stays a zombie, as that of a Popen until somebody waits."""
    if sys.platform == "darwin":  # os.waitid is new there in Python 3.13
        ended, status = os.waitpid(pid, os.WNOHANG)
        return os.waitstatus_to_exitcode(status) if ended else None
    found = os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    if found is None:
        return None
    return found.si_status if found.si_code == os.CLD_EXITED else -found.si_status


def _load(module: str) -> dict[str, object]:
    """Import a module. It must not change what a fresh process would not have changed yet."""
    before = [signal.getsignal(number) for number in signal.valid_signals()]
    try:
        import_module(module)
    except Exception as error:
        return {"message": f"{module} cannot be imported: {error!r}"}
    if [signal.getsignal(number) for number in signal.valid_signals()] != before:
        return {"message": f"{module} changes signal handlers, so a process has to import it itself"}
    return {"pid": 0}


def main() -> None:
    """Load the modules that the command line names, then serve."""
    requests = socket.socket(fileno=int(sys.argv[1]))
    for module in [f"{__package__}.tracee", *sys.argv[2:]]:
        import_module(module)
    _Server(requests).serve()


if __name__ == "__main__":
    main()
