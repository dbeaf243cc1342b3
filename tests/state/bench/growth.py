"""How the cost of a verb grows with the number of stored tasks: 100, 10,000 and 200,000.

Half of the stored tasks have failed, and nearly all of the others are done. Each verb is timed 100
times. The table shows the 20th percentile: other work on the machine only makes a verb slower. The
stores take turns, so that such work concerns all of them.

The lists that are compared have 20 tasks. The last figure of each backend is for the first page of
100 failed tasks out of 200,000.
"""

import secrets
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager

from sampletool.state.connect import open_store
from sampletool.state.postgres import PostgresStore
from sampletool.state.protocol import Fence, NewTask
from sampletool.state.store import Store
from tests.state.conftest import postgres_url, valkey_url
from tests.state.support.servers import NoServer, Server, run_directory
from tests.state.support.store_client import make_policy

SIZES = (100, 10_000, 200_000)
MAX_GROWTH = 1.5
MAX_PAGE_MS = 50.0

_BACKENDS = ("sqlite", "postgres", "valkey")
_REPETITIONS = 100
_FREE_TASKS = 40
"""How many tasks are free while verbs are timed."""

_ADDED_AT_ONCE = 1000
_CLAIMED_AT_ONCE = 500
_QUEUE = "work"
_LONG_MS = 3_600_000


def main() -> None:
    """Print a table for each backend."""
    print(
        f"{'':<10} {'tasks':>8} {'add':>9} {'claim':>9} {'list failed':>12} {'list free':>10}   ms"
    )
    for backend in _BACKENDS:
        try:
            _measure_backend(backend)
        except NoServer as reason:
            print(f"{backend}: {reason}")
    print(f"Each column should grow by a factor of at most {MAX_GROWTH}.")
    print(f"The page should take at most {MAX_PAGE_MS:.0f} ms.\n")


def _measure_backend(backend: str) -> None:
    with empty_stores(backend) as stores:
        for size, store in zip(SIZES, stores, strict=True):
            fill(store, size)
        rows = _time_in_turns([verbs(store) for store in stores])
        ((page_ms,),) = _time_in_turns([[lambda: list_failed(stores[-1], 100)]])
    for size, row in zip(SIZES, rows, strict=True):
        growth = [later / first for later, first in zip(row, rows[0], strict=True)]
        cells = "".join(f"{ms:>10.2f}" for ms in row)
        factors = ", ".join(f"{factor:.2f}" for factor in growth)
        print(f"{backend:<10} {size:>8,}{cells}   growth {factors}")
    print(f"{backend:<10} 100 failed tasks of {SIZES[-1]:,}: {page_ms:.2f} ms", flush=True)


@contextmanager
def empty_stores(backend: str) -> Iterator[list[Store]]:
    """Yield a store without tasks for each size: in files, or on one server."""
    with tempfile.TemporaryDirectory(prefix="growth-") as directory, ExitStack() as stack:
        urls = [f"sqlite://{directory}/{size}.db" for size in SIZES]
        if backend != "sqlite":
            server = Server(backend, run_directory(secrets.token_hex(6), backend))
            stack.callback(server.end)
            make_url = postgres_url if backend == "postgres" else valkey_url
            urls = [make_url(server, f"gw{number}") for number in range(len(SIZES))]
        stores = []
        for url in urls:
            store = open_store(url, None, make_policy(patience=60))
            stores.append(stack.enter_context(closing(store)))
        yield stores


def fill(store: Store, count: int) -> None:
    """Add this many tasks: half of them have failed, and nearly all others are done."""
    for first in range(0, count, _ADDED_AT_ONCE):
        added = min(_ADDED_AT_ONCE, count - first)
        store.task_add(_QUEUE, [NewTask({"n": first + number}) for number in range(added)])
    _end_tasks(store, count // 2, fail=True)
    _end_tasks(store, count // 2 - _FREE_TASKS, fail=False)


def _end_tasks(store: Store, count: int, *, fail: bool) -> None:
    ended = 0
    while ended < count:
        claimed = store.task_claim(
            _QUEUE,
            "bench",
            # A last attempt whose lease has expired has failed.
            lease_ms=0 if fail else _LONG_MS,
            count=min(_CLAIMED_AT_ONCE, count - ended),
            max_attempts=1,
        ).tasks
        if not fail:
            fences = [Fence(task.id, task.generation) for task in claimed]
            store.task_claim("none", "bench", lease_ms=0, finish=fences)
        ended += len(claimed)
    # Let a claim notice the leases that have expired.
    store.task_claim(_QUEUE, "bench", lease_ms=_LONG_MS, count=0)
    if isinstance(store, PostgresStore):
        # As autovacuum does, which would need a minute to notice.
        store.current_connection().execute("VACUUM ANALYZE tool_tasks")


def verbs(store: Store) -> list[Callable[[], object]]:
    """Return functions that add, claim (and finish), list failed tasks, and list free ones."""
    to_finish: list[Fence] = []

    def add() -> None:
        store.task_add(_QUEUE, [NewTask("x")])

    def claim() -> None:
        claimed = store.task_claim(_QUEUE, "bench", lease_ms=_LONG_MS, finish=to_finish).tasks
        to_finish[:] = [Fence(task.id, task.generation) for task in claimed]

    def list_free() -> None:
        assert len(store.task_list(_QUEUE, "free", 0, 20)) == 20

    return [add, claim, lambda: list_failed(store, 20), list_free]


def list_failed(store: Store, limit: int) -> None:
    assert len(store.task_list(None, "failed", 0, limit)) == limit


def _time_in_turns(verbs_of_stores: list[list[Callable[[], object]]]) -> list[list[float]]:
    """Return how many milliseconds each verb takes, without the interference of other programs."""
    durations_ms: list[list[list[float]]] = []
    for store_verbs in verbs_of_stores:
        durations_ms.append([[] for _ in store_verbs])
    for _ in range(_REPETITIONS):
        for store_verbs, store_durations in zip(verbs_of_stores, durations_ms, strict=True):
            for verb, durations in zip(store_verbs, store_durations, strict=True):
                started_at = time.perf_counter()
                verb()
                durations.append((time.perf_counter() - started_at) * 1000)
    rows = []
    for store_durations in durations_ms:
        rows.append([statistics.quantiles(durations, n=5)[0] for durations in store_durations])
    return rows


if __name__ == "__main__":
    main()
