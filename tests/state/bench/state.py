"""Add and work off tasks one by one, next to other queues, on the same disk and servers.

Everything is measured in one run. All are equally durable: SQLite flushes every commit, Redis every
write, and PostgreSQL waits for its log. On SQLite, all use a WAL, which flushes once for a commit
where a rollback journal takes five. Two of the other queues are run without a WAL, too, to show
what it contributes.

The other queues are installed into a temporary environment. They do different things for a task:

* huey forgets a task as soon as it is taken, so nothing is acknowledged.
* rq and procrastinate run with their own workers.
* This store finishes a task in the step that claims the next one, as its worker does. "Ten at once"
  is what a worker of ten jobs can do.
"""

import os
import secrets
import shutil
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from urllib.parse import quote

from tests.state.support.servers import NoServer, Server, run_directory

_TASKS = 300
_ROUNDS = 3
_OTHERS = ("litequeue", "huey", "persist-queue", "rq", "procrastinate", "psycopg[binary]", "redis")
_GROUPS = {
    "SQLite": (
        "ours",
        "ours_ten_at_once",
        "litequeue_without_wal",
        "huey_without_wal",
        "litequeue",
        "huey",
        "persistqueue",
    ),
    "Redis": ("ours", "rq"),
    "PostgreSQL": ("ours", "procrastinate"),
}
_CANDIDATES = Path(__file__).with_name("_queues.py")


def main() -> None:
    with tempfile.TemporaryDirectory(prefix="bench-") as scratch:
        others = _install(Path(scratch))
        if others is None:
            print("state: the other queues could not be installed, so nothing was compared\n")
            return
        print(f"{_TASKS} tasks, median of {_ROUNDS}            {'added/s':>8} {'worked off/s':>13}")
        for group, names in _GROUPS.items():
            try:
                _compare(group, names, others, Path(scratch))
            except NoServer as reason:
                print(f"{group}: {reason}")
        print()


Speeds = tuple[float, float]
"""How many tasks were added in a second, and how many were worked off."""


def _compare(group: str, names: tuple[str, ...], python: Path, scratch: Path) -> None:
    """Run the queues of a group in turns, and print the median speeds of each."""
    server = None
    if group != "SQLite":
        kind = "valkey" if group == "Redis" else "postgres"
        server = Server(kind, run_directory(secrets.token_hex(6), kind))
    speeds_by_name: dict[str, list[Speeds]] = {name: [] for name in names}
    for number in range(_ROUNDS):
        for name, speeds in speeds_by_name.items():
            store = _empty_store(group, server, scratch / f"{group}-{name}-{number}")
            runner = Path(sys.executable) if name.startswith("ours") else python
            try:
                speeds.append(_run(runner, name, store))
            except RuntimeError as error:
                print(f"{group:<12} {name:<22} failed: {error}")
    if server is not None:
        server.leave()
    for name, speeds in speeds_by_name.items():
        _print_medians(group, name, speeds)


def _run(python: Path, name: str, store: str) -> Speeds:
    """Run one queue. Raise RuntimeError with its last line if it fails."""
    ran = subprocess.run(
        [str(python), str(_CANDIDATES), name, store, str(_TASKS)],
        env={**os.environ, "PYTHONPATH": str(_CANDIDATES.parents[2])},
        capture_output=True,
        text=True,
        check=False,
    )
    if ran.returncode != 0:
        raise RuntimeError(f"{ran.stderr.strip().splitlines()[-1:]}")
    adding_seconds, working_seconds = map(float, ran.stdout.split()[-2:])
    return _TASKS / adding_seconds, _TASKS / working_seconds


def _print_medians(group: str, name: str, speeds: list[Speeds]) -> None:
    if speeds:
        added = statistics.median(added for added, _worked_off in speeds)
        worked_off = statistics.median(worked_off for _added, worked_off in speeds)
        print(f"{group:<12} {name:<22} {added:>8.0f} {worked_off:>13.0f}", flush=True)


def _empty_store(group: str, server: Server | None, directory: Path) -> str:
    """Return the URL of a store for one run: a new file or database, or an emptied server."""
    if server is None:
        directory.mkdir()
        return f"sqlite://{directory}/state.db"
    socket = server.running.socket
    if group == "Redis":
        import redis

        with redis.Redis.from_url(f"unix://{socket}") as client:
            client.flushall()
        return f"unix://{socket}"
    import psycopg

    name = f"b{secrets.token_hex(6)}"
    with psycopg.connect(
        f"postgresql://test@/postgres?host={quote(socket, safe='')}", autocommit=True
    ) as admin:
        admin.execute(f"CREATE DATABASE {name}")
    return f"postgresql://test@/{name}?host={quote(socket, safe='')}"


def _install(scratch: Path) -> Path | None:
    """Install the other queues. Return their interpreter, or None if that fails."""
    environment = scratch / "others"
    python = environment / "bin" / "python"
    uv = shutil.which("uv")
    if uv is not None:
        create = [sys.executable, "-m", "venv", "--without-pip", str(environment)]
        install = [uv, "pip", "install", "--quiet", "--python", str(python), *_OTHERS]
    else:
        create = [sys.executable, "-m", "venv", str(environment)]
        install = [str(python), "-m", "pip", "install", "--quiet", *_OTHERS]
    for command in (create, install):
        if subprocess.run(command, check=False, stdin=subprocess.DEVNULL).returncode != 0:
            return None
    return python
