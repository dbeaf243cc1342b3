"""Run one queue: `_queues.py NAME STORE COUNT` prints the seconds of adding and working off."""

import sys
import time
from collections.abc import Callable
from importlib import import_module
from typing import Any

Run = tuple[Callable[[], object], Callable[[], object]]


def ours(where: str, count: int, at_once: int = 1) -> Run:
    """Finish each task in the step that claims the next one, as `task work` does."""
    from sampletool.state.connect import open_store
    from sampletool.state.protocol import Fence, NewTask
    from tests.state.support.store_client import make_policy

    store = open_store(where, None, make_policy())
    store.counter_add("warm", 1)  # makes the tables, which the others make before they are timed

    def add() -> None:
        for number in range(count):
            store.task_add("work", [NewTask(number)])

    def work() -> None:
        ended: list[Fence] = []
        while claimed := store.task_claim(
            "work", "bench", lease_ms=60_000, count=at_once, finish=ended
        ).tasks:
            ended = [Fence(task.id, task.generation) for task in claimed]

    return add, work


def ours_ten_at_once(where: str, count: int) -> Run:
    return ours(where, count, 10)


def litequeue(where: str, count: int, journal: str = "WAL") -> Run:
    queue: Any = import_module("litequeue").LiteQueue(where.removeprefix("sqlite://"))
    queue.conn.execute(f"PRAGMA journal_mode = {journal}")
    queue.conn.execute("PRAGMA synchronous = FULL")

    def work() -> None:
        for _ in range(count):
            queue.done(queue.pop().message_id)

    return lambda: [queue.put(str(number)) for number in range(count)], work


def litequeue_without_wal(where: str, count: int) -> Run:
    return litequeue(where, count, "TRUNCATE")


def huey(where: str, count: int, journal: str = "wal") -> Run:
    make: Any = import_module("huey.storage").SqliteStorage
    storage = make(
        "bench", filename=where.removeprefix("sqlite://"), fsync=True, journal_mode=journal
    )
    return (
        lambda: [storage.enqueue(b"%d" % number) for number in range(count)],
        lambda: [storage.dequeue() for _ in range(count)],
    )


def huey_without_wal(where: str, count: int) -> Run:
    return huey(where, count, "truncate")


def persistqueue(where: str, count: int) -> Run:
    directory = where.removeprefix("sqlite://").removesuffix("/state.db")
    queue: Any = import_module("persistqueue").SQLiteAckQueue(directory, auto_commit=True)
    return (
        lambda: [queue.put(number) for number in range(count)],
        lambda: [queue.ack(queue.get()) for _ in range(count)],
    )


def rq(where: str, count: int) -> Run:
    import redis

    rq = import_module("rq")
    connection = redis.Redis.from_url(where)
    queue: Any = rq.Queue(connection=connection)
    worker: Any = rq.SimpleWorker([queue], connection=connection)
    return (
        lambda: [queue.enqueue("math.sqrt", number) for number in range(count)],
        lambda: worker.work(burst=True, logging_level="ERROR"),
    )


def procrastinate(where: str, count: int) -> Run:
    procrastinate = import_module("procrastinate")
    app: Any = procrastinate.App(connector=procrastinate.SyncPsycopgConnector(conninfo=where))
    app.open()
    app.schema_manager.apply_schema()

    @app.task(name="nothing", queue="work")  # type: ignore[untyped-decorator]
    def nothing(number: int) -> None: ...

    def work() -> None:
        import asyncio

        async def run() -> None:
            connector = procrastinate.PsycopgConnector(conninfo=where)
            with app.replace_connector(connector) as running:
                async with running.open_async():
                    await running.run_worker_async(
                        wait=False, install_signal_handlers=False, listen_notify=False
                    )

        asyncio.run(run())

    return lambda: [nothing.defer(number=number) for number in range(count)], work


def main(name: str, where: str, count: str) -> None:
    add, work = globals()[name](where, int(count))
    began = time.perf_counter()
    add()
    added = time.perf_counter()
    work()
    print(added - began, time.perf_counter() - added)


if __name__ == "__main__":
    main(*sys.argv[1:])
