"""Adding and working off tasks, one by one, beside queues that others made: on the same disk and server, in one run.

Durability is made equal: SQLite flushes every commit, the server of Redis every write, PostgreSQL waits for its log.
The others are installed into an environment of their own, which is removed again. What they do for a task differs:
huey keeps none that was taken, so nothing is acknowledged; rq and procrastinate are run with their own workers. Ours
finishes a task in the step that claims the next, as its worker does; ten at once is what a worker of ten jobs can do.
On SQLite all use a WAL, which flushes once for a commit where a rollback journal takes five; two of the others are run
without it too, to tell that apart.
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
            print(
                "state: the other queues could not be installed, so there is nothing to compare with\n"
            )
            return
        print(f"{_TASKS} tasks, median of {_ROUNDS}            {'added/s':>8} {'worked off/s':>13}")
        for group, names in _GROUPS.items():
            try:
                _compare(group, names, others, Path(scratch))
            except NoServer as reason:
                print(f"{group}: {reason}")
        print()


def _compare(group: str, names: tuple[str, ...], python: Path, scratch: Path) -> None:
    server = None
    if group != "SQLite":
        kind = "valkey" if group == "Redis" else "postgres"
        server = Server(kind, run_directory(secrets.token_hex(6), kind))
    taken: dict[str, list[tuple[float, float]]] = {name: [] for name in names}
    for number in range(_ROUNDS):
        for name in names:
            where = _place(group, server, scratch / f"{group}-{name}-{number}")
            runner = Path(sys.executable) if name.startswith("ours") else python
            said = subprocess.run(
                [str(runner), str(_CANDIDATES), name, where, str(_TASKS)],
                env={**os.environ, "PYTHONPATH": str(_CANDIDATES.parents[2])},
                capture_output=True,
                text=True,
                check=False,
            )
            if said.returncode != 0:
                print(f"{group:<12} {name:<22} failed: {said.stderr.strip().splitlines()[-1:]}")
                continue
            added, worked = map(float, said.stdout.split()[-2:])
            taken[name].append((_TASKS / added, _TASKS / worked))
    if server is not None:
        server.leave()
    for name, speeds in taken.items():
        if speeds:
            added, worked = (statistics.median(column) for column in zip(*speeds, strict=True))
            print(f"{group:<12} {name:<22} {added:>8.0f} {worked:>13.0f}")


def _place(group: str, server: Server | None, directory: Path) -> str:
    """A store for one run: a file, or a server that has been emptied."""
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
    python = scratch / "others" / "bin" / "python"
    uv = shutil.which("uv")
    made = [
        [sys.executable, "-m", "venv", *(["--without-pip"] if uv else []), str(scratch / "others")]
    ]
    made.append(
        [uv, "pip", "install", "--quiet", "--python", str(python), *_OTHERS]
        if uv
        else [
            str(python),
            "-m",
            "pip",
            "install",
            "--quiet",
            "--disable-pip-version-check",
            *_OTHERS,
        ]
    )
    for command in made:
        if subprocess.run(command, check=False, stdin=subprocess.DEVNULL).returncode != 0:
            return None
    return python
