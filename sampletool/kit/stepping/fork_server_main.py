"""The server's side of the fork server: fork on request, report each exit code, reap the processes.

The docstring of fork_server.py explains the protocol. The numbers of steps in this file are those
of that docstring.
"""

import json
import os
import selectors
import signal
import socket
import sys
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from importlib import import_module
from typing import Any, NoReturn

from .child import DESCRIPTOR_CARRIER, EXIT_SOCKET, Request, become

_MAX_DESCRIPTORS = 32
"""The maximum number of descriptors in a request. The kernel drops further ones."""

_WAKEUP_BYTES = 4096
"""The maximum number of bytes to read from the wakeup pipe at once. Each signal is one byte.

If there are more bytes, the pipe stays readable, and the server looks for exits again.
"""


@dataclass
class _Child:
    """A process that the server has forked."""

    pid: int
    exit_socket: socket.socket
    """The server's end of the pair. The exit report goes to the client through this socket."""
    has_exited: bool = False
    is_abandoned: bool = False
    """Whether the client has closed its exit socket before the process exited."""


class _Server:
    """The fork server of one client. Everything happens in one thread, in `serve`."""

    def __init__(self, request_socket: socket.socket) -> None:
        self._request_socket = request_socket
        self._request_lines = request_socket.makefile("rb")
        self._children_by_pid: dict[int, _Child] = {}
        # serve() makes Python write a byte to this pipe for each signal, such as SIGCHLD. The byte
        # stays in the pipe, so select() also notices a child that exits just before it waits.
        self._wakeup_reader, self._wakeup_writer = os.pipe()
        os.set_blocking(self._wakeup_writer, False)
        self._selector = selectors.DefaultSelector()
        self._selector.register(self._request_socket, selectors.EVENT_READ)
        self._selector.register(self._wakeup_reader, selectors.EVENT_READ)

    def serve(self) -> None:
        """Serve requests until the client closes the request socket."""
        signal.set_wakeup_fd(self._wakeup_writer, warn_on_full_buffer=False)
        # A signal without a handler writes no byte, so install a handler that does nothing.
        signal.signal(signal.SIGCHLD, lambda number, frame: None)
        while True:
            for key, _ in self._selector.select():
                if key.fileobj is self._request_socket:
                    has_replied = self._serve_request()
                    if not has_replied:
                        return
                elif key.fileobj == self._wakeup_reader:
                    os.read(self._wakeup_reader, _WAKEUP_BYTES)
                    self._report_exits()
                else:
                    self._release(key.data)

    def _serve_request(self) -> bool:
        """Read a request and reply. Return False if the client has closed the request socket."""
        # Read only the byte that carries the descriptors: what follows belongs to the line.
        carrier_bytes = len(DESCRIPTOR_CARRIER)
        _, descriptors, _, _ = socket.recv_fds(
            self._request_socket,
            carrier_bytes,
            _MAX_DESCRIPTORS,
        )
        # The buffered reader cannot swallow the next request by reading ahead, because the client
        # sends it only after the reply to this one.
        line = self._request_lines.readline()
        if not line.endswith(b"\n"):
            return False
        message = json.loads(line)
        if "load" in message:
            reply = _load(message["load"])
        else:
            request = Request(**message["start"])
            reply = self._start(request, descriptors)
        reply_line = json.dumps(reply).encode() + b"\n"
        self._request_socket.sendall(reply_line)
        return True

    def _start(self, request: Request, descriptors: list[int]) -> dict[str, Any]:
        """Fork a process (steps 3 to 5). Return the reply: its pid, or the error of its setup."""
        descriptors_by_name = dict(zip(request.descriptor_names, descriptors, strict=True))
        exit_socket = socket.socket(fileno=descriptors_by_name.pop(EXIT_SOCKET))
        setup_reader, setup_writer = os.pipe()
        pid = os.fork()
        is_child = pid == 0
        if is_child:
            _become_child(request, descriptors_by_name, setup_writer)
        # While the server has the writing end open, it would not read the end of the setup pipe.
        os.close(setup_writer)
        for descriptor in descriptors_by_name.values():
            os.close(descriptor)

        # A process whose setup fails is a child as well, and has to be reaped like the others.
        child = _Child(pid=pid, exit_socket=exit_socket)
        self._children_by_pid[pid] = child
        self._selector.register(exit_socket, selectors.EVENT_READ, child)

        with open(setup_reader, "rb") as setup_pipe:
            error_text = setup_pipe.read()
        if error_text:
            error: dict[str, Any] = json.loads(error_text)
            return error
        return {"pid": pid}

    def _report_exits(self) -> None:
        """Send the exit code of each child that has exited to its client (step 7)."""
        # Several children may exit with a single SIGCHLD, so check all of them.
        for child in list(self._children_by_pid.values()):
            if not child.has_exited:
                self._report_exit(child)

    def _report_exit(self, child: _Child) -> None:
        """Send the exit code of a child to its client if the child has exited by now."""
        exit_code = _peek_exit_code(child.pid)
        if exit_code is None:
            return
        child.has_exited = True
        if child.is_abandoned:
            # No client reads the exit code any more.
            self._reap(child)
            return
        exit_report = str(exit_code).encode()
        # If the client has just closed its end, the exit socket is readable, and serve() will
        # release the child.
        with suppress(OSError):
            child.exit_socket.sendall(exit_report)

    def _release(self, child: _Child) -> None:
        """Reap a child that its client does not need any more (step 9).

        The exit socket of the child is readable. There are two reasons, and the server does not
        have to read which one it is:

        * The child has exited, and the client has read the exit report.
        * The client has closed its exit socket. A child that still runs is reaped when it exits.
        """
        self._selector.unregister(child.exit_socket)
        if child.has_exited:
            self._reap(child)
        else:
            child.is_abandoned = True
        # Close last: this tells the client that the process has been reaped.
        child.exit_socket.close()

    def _reap(self, child: _Child) -> None:
        """Remove the zombie, so that the kernel may reuse the pid."""
        # On macOS, _peek_exit_code() has reaped it already.
        with suppress(ChildProcessError):
            os.waitpid(child.pid, 0)
        del self._children_by_pid[child.pid]


def _become_child(
    request: Request,
    descriptors_by_name: Mapping[str, int],
    setup_writer: int,
) -> NoReturn:
    """Undo the signal handling of the server in the forked process, then become the program."""
    signal.set_wakeup_fd(-1)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    become(request, descriptors_by_name, setup_writer)


def _peek_exit_code(pid: int) -> int | None:
    """Return the exit code of a child without reaping it, or None while the child runs.

    The exit code is negative if a signal has killed the child. On macOS, the child is reaped.
    """
    if sys.platform == "darwin":
        # Python has no os.waitid there before version 3.13, and os.waitpid always reaps.
        waited_pid, wait_status = os.waitpid(pid, os.WNOHANG)
        if waited_pid == 0:
            return None
        return os.waitstatus_to_exitcode(wait_status)

    # WNOWAIT leaves the zombie for _reap().
    result = os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    if result is None:
        return None
    if result.si_code == os.CLD_EXITED:
        return result.si_status
    # For a child that was killed, the kernel reports the number of the signal.
    return -result.si_status


def _load(module: str) -> dict[str, Any]:
    """Import a module in the server. Return the reply, which has a message if this failed.

    A module that changes signal handlers when it is imported is refused. All later processes
    would start with these handlers, whether they import the module or not.
    """
    handlers_before = _signal_handlers()
    try:
        import_module(module)
    except Exception as error:
        return {"message": f"{module} cannot be imported: {error!r}"}
    if _signal_handlers() != handlers_before:
        message = f"{module} changes signal handlers, so a process has to import it itself"
        return {"message": message}
    return {"loaded": module}


def _signal_handlers() -> list[object]:
    """Return the handler of each signal."""
    return [signal.getsignal(number) for number in signal.valid_signals()]


def main() -> None:
    """Import the modules that the command line names, then serve."""
    request_socket = socket.socket(fileno=int(sys.argv[1]))
    # Every forked process needs these two modules to run its program.
    own_modules = [f"{__package__}.python_program", f"{__package__}.tracee"]
    requested_modules = sys.argv[2:]
    for module in own_modules + requested_modules:
        import_module(module)
    _Server(request_socket).serve()


if __name__ == "__main__":
    main()
