"""`make soak`, the part about the store: clients and servers are killed with -9, again and again, and nothing is lost.

Several clients add, count, set, claim and finish without a pause; each writes down what was acknowledged. One after the
other is killed at a random moment and starts again where its notes end, with the same idempotency key. Now and then
the server is killed too. In the end every acknowledged write has to be there, and none may have happened twice.

`python -m tests.state.soak [--kills N] [--server-kills N] [--only BACKEND] [--page FILE.md]`. The status is 1 if
anything is lost. With --careless each client acknowledges before it writes, and is killed between: there are losses, or
this would prove nothing.
"""

import argparse
import mmap
import os
import random
import secrets
import signal
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from sampletool.state.errors import LeaseLost, StoreUnavailable
from sampletool.state.opening import open_store
from sampletool.state.promises import Fence, NewTask, Once
from sampletool.state.store import Store
from tests.state.support.servers import Server, run_directory
from tests.state.support.store_client import make_terms

BACKENDS = ("sqlite", "postgres", "valkey")
KILLS, SERVER_KILLS = 7700, 100
_CLIENTS = 4
_LEASE_MS = 3000
_LONGEST_LIFE_SECONDS = 0.1
_PATIENCE_SECONDS = 120.0
"""On a busy machine too a server is back by then."""


@dataclass(frozen=True)
class Row:
    """What a run on one backend came to."""

    backend: str
    kills: int
    server_kills: int
    acknowledged: int
    lost: int
    twice: int
    seconds: float


class Notes:
    """What a client knows to have happened, a line for each write. What is written to a file survives kill -9."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)

    def add(self, kind: str, what: object) -> None:
        os.write(self._descriptor, f"{kind} {what}\n".encode())

    def read(self) -> list[tuple[str, str]]:
        return [(kind, what) for kind, _, what in (line.partition(" ") for line in self._path.read_text().splitlines())]


def work(store: Store, number: int, notes: Notes, progress: mmap.mmap, *, is_careless: bool) -> None:
    """For ever. Where the notes end, the same is asked again with the same key."""
    turn = sum(kind == "counted" for kind, _ in notes.read())
    while True:
        try:
            for kind, write in writes(store, number, turn):
                if is_careless and kind == "counted":
                    notes.add(kind, turn)
                    os.kill(os.getpid(), signal.SIGSTOP)  # here it is killed
                write()
                notes.add(kind, turn)
                progress[number] = 1
            turn += 1
            finish_one(store, number, notes)
        except (StoreUnavailable, LeaseLost):
            continue


def writes(store: Store, number: int, turn: int) -> list[tuple[str, Callable[[], object]]]:
    """All of one turn, by the names that they have in the notes."""
    name = f"{number}-{turn}"
    return [
        ("added", partial(store.task_add, "work", [NewTask(turn, name)])),
        ("set", partial(store.state_set, f"value-{number}", turn)),
        ("counted", partial(store.counter_add, f"count-{number}", 1, Once(name))),
    ]


def finish_one(store: Store, number: int, notes: Notes) -> None:
    for task in store.task_claim("work", f"client-{number}", lease_ms=_LEASE_MS).tasks:
        store.counter_add(f"effect-{task.id}", 1, Once(fence=Fence(task.id, task.generation)))
        notes.add("effect", task.id)
        store.task_finish(task.id, task.generation)
        notes.add("finished", task.id)


def judge(store: Store, all_notes: list[list[tuple[str, str]]]) -> tuple[int, int]:
    """How many acknowledged writes are not there, and how many happened twice."""
    statuses, after = {}, 0
    while page := store.task_list("work", None, after, 1000):
        statuses.update({task.id: task.status for task in page})
        after = page[-1].position
    finished = Counter(what for notes in all_notes for kind, what in notes if kind == "finished")
    lost, twice = 0, sum(times - 1 for times in finished.values())
    for number, notes in enumerate(all_notes):
        noted = Counter(kind for kind, _ in notes)
        counted = store.counter_get(f"count-{number}")
        lost += max(0, noted["counted"] - counted)
        twice += max(0, counted - noted["counted"] - 1)  # one may have happened without an answer
        last = max((int(what) for kind, what in notes if kind == "set"), default=-1)
        lost += last >= 0 and store.state_get(f"value-{number}").value < last
        for kind, what in notes:
            if kind == "added":
                lost += f"{number}-{what}" not in statuses
            elif kind == "finished":
                lost += statuses.get(what) != "done"
            elif kind == "effect":
                effects = store.counter_get(f"effect-{what}")
                lost, twice = lost + (effects == 0), twice + (effects > 1)
    return lost, twice


def run(backend: str, kills: int, server_kills: int, *, is_careless: bool = False) -> Row:
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="soak-") as scratch, _store(backend, Path(scratch)) as (url, server):
        progress = mmap.mmap(-1, _CLIENTS)
        all_notes = [Notes(Path(scratch, f"notes-{number}")) for number in range(_CLIENTS)]

        def start(number: int) -> int:
            progress[number] = 0
            if child := os.fork():
                return child
            try:
                store = open_store(url, None, make_terms(patience=_PATIENCE_SECONDS))
                work(store, number, all_notes[number], progress, is_careless=is_careless)
            except BaseException:
                traceback.print_exc()
            finally:
                os._exit(1)

        clients = [start(number) for number in range(_CLIENTS)]
        try:
            for killed in range(kills):
                number = random.randrange(_CLIENTS)
                if is_careless:
                    _wait_until_stopped(number, clients[number])
                else:
                    _wait_for_progress(progress, number, clients[number])
                    time.sleep(random.uniform(0, _LONGEST_LIFE_SECONDS))
                os.kill(clients[number], signal.SIGKILL)
                os.waitpid(clients[number], 0)
                clients[number] = start(number)
                if server and (killed + 1) * server_kills // kills > killed * server_kills // kills:
                    server.kill()
        finally:
            for client in clients:
                os.kill(client, signal.SIGKILL)
                os.waitpid(client, 0)
        store = open_store(url, None, make_terms(patience=_PATIENCE_SECONDS))
        notes = [one.read() for one in all_notes]
        lost, twice = judge(store, notes)
        store.close()
    seconds = time.monotonic() - began
    return Row(backend, kills, server_kills if server else 0, sum(map(len, notes)), lost, twice, seconds)


def _wait_for_progress(progress: mmap.mmap, number: int, client: int) -> None:
    """That it is killed before its first write shows nothing."""
    deadline = time.monotonic() + 2 * _PATIENCE_SECONDS
    while not progress[number]:
        if os.waitpid(client, os.WNOHANG) != (0, 0) or time.monotonic() > deadline:
            raise SystemExit(f"client {number} ended by itself, or acknowledges nothing")
        time.sleep(0.001)


def _wait_until_stopped(number: int, client: int) -> None:
    _, status = os.waitpid(client, os.WUNTRACED)
    if not os.WIFSTOPPED(status):
        raise SystemExit(f"client {number} ended by itself, and was not stopped")


@contextmanager
def _store(backend: str, scratch: Path) -> Iterator[tuple[str, Server | None]]:
    if backend == "sqlite":
        yield f"sqlite://{scratch}/state.db", None
        return
    server = Server(backend, run_directory(secrets.token_hex(6), backend), is_durable=False)
    yield server.url, server
    server.leave()


def page(rows: list[Row], processors: int | None) -> str:
    kills, server_kills = sum(row.kills for row in rows), sum(row.server_kills for row in rows)
    is_whole = (kills, server_kills) == (KILLS, SERVER_KILLS)
    part = f"a part of it: `make soak` kills {KILLS:,} clients and {SERVER_KILLS} servers"
    lines = []
    for row in rows:
        found = row.acknowledged - row.lost
        counts = (row.kills, row.server_kills or "-", row.acknowledged, found, row.lost, row.twice, round(row.seconds))
        lines.append(" | ".join(map(str, (f"| {row.backend}", *counts))) + " |")
    what = f"{kills:,} clients and {server_kills} servers, on {processors} processors"
    return f"""# What kill -9 loses

<!-- Written by `make soak` (tests/state/soak.py) from the numbers of its own run; do not edit. -->

{_CLIENTS} clients at once add tasks, set values, count, claim and finish without a pause, and write down each answer
that they get. One after the other is killed at a random moment, and starts again where its notes end; servers are
killed too. Then every acknowledged write has to be there, and none may have happened twice.

This run killed {what}: {"all of it" if is_whole else part}.

| backend | clients killed | servers killed | acknowledged | found | lost | twice | seconds |
| --- | --- | --- | --- | --- | --- | --- | --- |
{chr(10).join(lines)}
"""


def main() -> int:
    parser = argparse.ArgumentParser(prog="make soak", description=__doc__)
    parser.add_argument("--kills", type=int, default=KILLS, metavar="N", help="of clients, on all backends together")
    parser.add_argument("--server-kills", type=int, default=SERVER_KILLS, metavar="N")
    parser.add_argument("--only", choices=BACKENDS, action="append", help="default: all of them")
    parser.add_argument("--page", type=Path, metavar="FILE.md", help="where the table is written")
    parser.add_argument("--careless", action="store_true", help="acknowledge before writing")
    chosen = parser.parse_args()

    backends = chosen.only or BACKENDS
    servers = [backend for backend in backends if backend != "sqlite"]
    rows = []
    for number, backend in enumerate(backends):
        kills = chosen.kills * (number + 1) // len(backends) - chosen.kills * number // len(backends)
        server_kills = chosen.server_kills // max(1, len(servers)) if backend in servers else 0
        rows.append(run(backend, kills, server_kills, is_careless=chosen.careless))
        sys.stdout.write(f"{rows[-1]}\n")
        sys.stdout.flush()
    if chosen.page:
        chosen.page.write_text(page(rows, os.cpu_count()))
    return int(any(row.lost or row.twice for row in rows))


if __name__ == "__main__":
    sys.exit(main())
