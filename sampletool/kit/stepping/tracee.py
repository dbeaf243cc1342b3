"""The tracee's side: runs a program and stops before every watched event until the tracer says how to go on.

Forked by fork_server.py. If the tracer dies, the tracee reads the end of its socket and ends too. A lock that the
program would wait for in the kernel is asked for without waiting first: while it cannot be had, the tracer hears
`blocked` and decides when to ask again.
"""

import base64
import fcntl
import json
import os
import runpy
import socket
import sqlite3
import sys
import threading
import types
from collections.abc import Callable
from typing import Any

_PATHS_OF: dict[str, int] = {
    "open": 1,
    "os.chmod": 1,
    "os.link": 2,
    "os.listdir": 1,
    "os.mkdir": 1,
    "os.remove": 1,
    "os.rename": 2,
    "os.rmdir": 1,
    "os.symlink": 2,
    "os.truncate": 1,
    "fcntl.flock": 1,
    "sqlite3.connect": 1,
    "stepping.verb": 0,
}
"""The events that are seen, and how many paths each begins with."""

_FACTS_OF = {
    "open": {"flags": 2},
    "fcntl.flock": {"descriptor": 0, "operation": 1},
    "stepping.verb": {"statement": 0},
}
"""What else goes to the tracer: name and position among the event's arguments."""

describe: Callable[[], dict[str, Any]] = dict
"""What else goes to the tracer with each event. The program that runs may put a function of its own here."""


class Tracee:
    def __init__(self, spec: dict[str, Any]) -> None:
        self._socket = socket.socket(fileno=spec["socket"])
        self._lines = self._socket.makefile("rb")
        self._watch = spec["watch"]
        self._pid = os.getpid()
        self._busy = False

    def see(self, event: str, args: tuple[Any, ...]) -> None:
        """The audit hook."""
        if event in _PATHS_OF:
            paths = [_path_of(argument) for argument in args[: _PATHS_OF[event]]]
            self.tell(
                event, paths, {name: args[at] for name, at in _FACTS_OF.get(event, {}).items()}
            )

    def tell_statements(self) -> None:
        """SQLite tells of each statement before it begins, once it is asked to: on every connection that is made."""
        original = sqlite3.connect

        def connect(database: Any, *args: Any, **named: Any) -> Any:
            connection = original(database, *args, **named)
            path = _path_of(str(database).removeprefix("file://").partition("?")[0])

            connection.set_trace_callback(
                lambda statement: self.tell("sql", [path], {"statement": statement})
            )
            return connection

        sqlite3.connect = connect

    def _wait_visibly(self, paths: list[str], descriptor: int, operation: int) -> None:
        while not operation & (fcntl.LOCK_NB | fcntl.LOCK_UN):
            try:
                fcntl.flock(descriptor, operation | fcntl.LOCK_NB)
                return
            except BlockingIOError:
                if not self._stop("blocked", paths, {"operation": operation}):
                    return

    def wrap(self, name: str, describe: Callable[..., dict[str, Any]]) -> None:
        """What has no event of its own is seen by wrapping it, here, in the tracee's process."""
        original = getattr(os, name)

        def seen(descriptor: int, *args: Any) -> Any:
            self.tell(f"os.{name}", [_path_of(descriptor)], describe(*args))
            return original(descriptor, *args)

        setattr(os, name, seen)

    def tell(self, event: str, paths: list[str], facts: dict[str, Any]) -> None:
        """Only of this process: children run on their own."""
        if not self._busy and os.getpid() == self._pid:
            self._busy = True
            try:
                if self._stop(event, paths, facts) and event == "fcntl.flock":
                    self._wait_visibly(paths, **facts)
            finally:
                self._busy = False

    def _stop(self, event: str, paths: list[str], facts: dict[str, Any]) -> bool:
        """Whether the tracer was asked."""
        if self._watch is None or (
            paths and not any(path.startswith(self._watch) for path in paths)
        ):
            return False
        self._socket.sendall(
            json.dumps({"event": event, "paths": paths, **describe(), **facts}).encode() + b"\n"
        )
        word, _, number = self._lines.readline().decode().strip().partition(" ")
        if word == "raise":
            raise OSError(int(number), os.strerror(int(number)), paths[0])
        if word == "signal":
            os.kill(self._pid, int(number))
            if threading.current_thread() is not threading.main_thread():
                return False  # it waits for a lock; what the signal changes is seen where the main thread goes on
            return self._stop(event, paths, facts)
        if word == "free":
            self._watch = None
        elif word != "go":
            os._exit(1)
        return True


def _path_of(argument: Any) -> str:
    if isinstance(argument, int):
        try:
            return os.readlink(f"/proc/self/fd/{argument}")
        except OSError:
            return f"descriptor {argument}"
    return os.path.abspath(os.fsdecode(argument)) if argument is not None else ""


def run(spec: dict[str, Any] | None) -> None:
    """Run the program that `sys.argv` names, in this process; with a spec it stops before every event."""
    if spec is not None:
        tracee = Tracee(spec)
        tracee.wrap("fsync", lambda: {})
        tracee.wrap("write", lambda data: {"data": base64.b64encode(bytes(data)).decode()})
        tracee.wrap(
            "pwrite",
            lambda data, offset: {"data": base64.b64encode(bytes(data)).decode(), "offset": offset},
        )
        tracee.tell_statements()
        sys.addaudithook(tracee.see)
    # A stepped process would be seen listing that directory when it imports something.
    if spec is None and not sys.flags.safe_path:
        sys.path[0] = _first_place_of_modules()
    run_program()


def _first_place_of_modules() -> str:
    """Return where `python` looks first. What is there in a forked process belongs to the server."""
    if sys.argv[0] == "-m":
        return os.getcwd()
    if sys.argv[0] == "-c":
        return ""
    return os.path.dirname(os.path.realpath(sys.argv[0]))


def run_program() -> None:
    """Run the program that `sys.argv` names, as `python` would with these words."""
    if sys.argv[0] == "-m":
        sys.argv.pop(0)
        # The server may have loaded it under its own name, of which runpy would warn.
        sys.modules.pop(sys.argv[0], None)
        runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)
    elif sys.argv[0] == "-c":
        source = sys.argv.pop(1)
        module = types.ModuleType("__main__")
        sys.modules["__main__"] = module
        exec(compile(source, "<string>", "exec"), module.__dict__)  # noqa: S102 - what `python -c` does
    else:
        runpy.run_path(sys.argv[0], run_name="__main__")
