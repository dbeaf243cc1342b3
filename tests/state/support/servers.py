"""Real servers for tests: private, started once for a run, shared by its workers.

Every user of a server holds a shared lock on one file. A *supervisor*, a process of its own, starts
the server (see server_supervisor.py). It starts the server again when a test has killed it, and
stops it when it can take the lock alone: then nobody uses the server any more. The kernel releases
the locks of a process however it ends. So nothing is left behind, even by kill -9 of the test run.
"""

import fcntl
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

START_SECONDS = 30
POLL_SECONDS = 0.02

_SUPERVISOR = Path(__file__).with_name("server_supervisor.py")

_SHORT_DIRECTORY = "/tmp"
"""The path of a socket has at most 107 bytes, and TMPDIR may be longer than that."""


class NoServer(Exception):
    """There is no such server on this machine. The text says why."""


@dataclass(frozen=True)
class Running:
    """Where a server listens, and which process it is."""

    kind: str
    pid: int
    socket: str


class Server:
    """One server, used by this process until it leaves."""

    def __init__(self, kind: str, directory: Path, *, is_durable: bool = True) -> None:
        """Join the server of that directory, or start it.

        With `is_durable=False`, it does not flush (see server_supervisor.py).
        """
        self._kind = kind
        self._directory = directory
        self._is_durable = is_durable
        self._supervisor: subprocess.Popen[bytes] | None = None
        self._users_descriptor = self._join()
        with _exclusive_lock(directory / "starting"):
            if not self._record().exists():
                self._start()

    @property
    def running(self) -> Running:
        """The server as of now: after a kill, it is another process."""
        return Running(**json.loads(self._record().read_text()))

    @property
    def url(self) -> str:
        """The URL of the server as a store."""
        if self._kind == "postgres":
            host = quote(self.running.socket, safe="")
            return f"postgresql://test@/postgres?host={host}"
        return f"unix://{self.running.socket}"

    def kill(self) -> None:
        """Kill the server with SIGKILL, and wait until the supervisor has started it again."""
        with self.killed():
            pass

    @contextmanager
    def killed(self) -> Iterator[None]:
        """Keep the server away during the block.

        When the block begins, the processes of the server are gone, with their connections. When
        this returns, the server runs again.
        """
        killed_pid = self.running.pid
        serving_pids = [killed_pid, *_children_of(killed_pid)]
        # The supervisor waits as long as this file exists.
        down = self._directory / "down"
        down.touch()
        try:
            os.kill(killed_pid, signal.SIGKILL)
            wait_until(lambda: not any(_is_alive(pid) for pid in serving_pids))
            yield
        finally:
            down.unlink()
        wait_until(lambda: self.running.pid != killed_pid)

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Stop the server with SIGSTOP during the block. Its connections stay open."""
        self.pause()
        try:
            yield
        finally:
            self.resume()

    def pause(self) -> None:
        """Stop the server and the processes that serve its connections."""
        self._signal_all(signal.SIGSTOP)

    def resume(self) -> None:
        """Let the server continue."""
        self._signal_all(signal.SIGCONT)

    def leave(self) -> None:
        """Stop using the server. When nobody uses it any more, the supervisor stops it.

        This may be after the end of this process.
        """
        os.close(self._users_descriptor)
        if self._supervisor is not None:
            # Popen would warn that the supervisor still runs.
            self._supervisor.returncode = 0

    def end(self) -> None:
        """Stop using the server, and wait until it has stopped. No other process may use it."""
        os.close(self._users_descriptor)
        if self._supervisor is not None:
            self._supervisor.wait(START_SECONDS)

    def _join(self) -> int:
        """Return a descriptor of the file of the users, with a shared lock."""
        while True:
            self._directory.mkdir(mode=0o700, exist_ok=True)
            is_foreign = self._directory.stat().st_uid != os.geteuid()
            if self._directory.is_symlink() or is_foreign:
                raise NoServer(f"{self._directory} belongs to another user")
            path = self._directory / "users"
            descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
            fcntl.flock(descriptor, fcntl.LOCK_SH)
            # A supervisor that is about to stop holds the lock until it has removed the files. Then
            # this is the lock of a file that is gone.
            with suppress(FileNotFoundError):
                if os.path.samestat(path.stat(), os.fstat(descriptor)):
                    return descriptor
            os.close(descriptor)

    def _signal_all(self, number: int) -> None:
        for pid in (self.running.pid, *_children_of(self.running.pid)):
            # A process may have exited, because its client has just left.
            with suppress(ProcessLookupError):
                os.kill(pid, number)

    def _record(self) -> Path:
        return self._directory / "running.json"

    def _start(self) -> None:
        """Start a supervisor, and wait until its server runs."""
        # The server outlives the test that needs it first. So it gets nothing of its environment.
        command = [
            "env",
            "-i",
            f"PATH={os.environ['PATH']}",
            sys.executable,
            str(_SUPERVISOR),
            self._kind,
            str(self._directory),
            str(int(self._is_durable)),
        ]
        with (self._directory / "log").open("ab") as log:
            supervisor = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        self._supervisor = supervisor
        try:
            wait_until(lambda: self._record().exists() or supervisor.poll() is not None)
        except TimeoutError:
            supervisor.terminate()
        if not self._record().exists():
            log_text = (self._directory / "log").read_text(errors="replace").strip()
            shutil.rmtree(self._directory, ignore_errors=True)
            raise NoServer(f"{self._kind} did not start: {log_text[-500:]}")


def run_directory(run: str, kind: str) -> Path:
    """Return the directory of a server. It is the same for all workers of one run, and short."""
    base = _SHORT_DIRECTORY
    if not os.access(base, os.W_OK):
        base = tempfile.gettempdir()
    return Path(base) / f"tt-{run[:12]}-{kind[:2]}"


def wait_until(is_so: Callable[[], bool]) -> None:
    """Wait until this is true. Raise TimeoutError after START_SECONDS."""
    deadline = time.monotonic() + START_SECONDS
    while not is_so():
        if time.monotonic() > deadline:
            raise TimeoutError
        time.sleep(POLL_SECONDS)


@contextmanager
def _exclusive_lock(path: Path) -> Iterator[None]:
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def _stat_fields(pid: int | str) -> list[str]:
    """Return the fields of /proc/PID/stat, from the state on."""
    text = Path(f"/proc/{pid}/stat").read_text()
    # The name of the program is in parentheses, and may contain parentheses and spaces.
    return text.rpartition(")")[2].split()


def _is_alive(pid: int) -> bool:
    """Return whether the process still has its connections open.

    A zombie whose other threads still run has.
    """
    try:
        state, *other_fields = _stat_fields(pid)
    except OSError:
        return False
    thread_count = int(other_fields[16])
    return state != "Z" or thread_count > 1


def _children_of(parent: int) -> list[int]:
    children = []
    for name in os.listdir("/proc"):
        if not name.isdigit():
            continue
        with suppress(OSError):
            _state, its_parent, *_other_fields = _stat_fields(name)
            if int(its_parent) == parent:
                children.append(int(name))
    return children
