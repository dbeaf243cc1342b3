"""Jobs that many clients do at once: in other processes, or as coroutines in this one."""

import os
import random
import signal
from collections import Counter
from collections.abc import Callable
from typing import Any

from sampletool.kit.contract.errors import VersionConflict
from sampletool.state.errors import LeaseLost
from sampletool.state.protocol import Fence, NewTask, Once


async def count(store: Any, _number: int, times: int) -> list[int]:
    """Add 1 so often, and return the value after each addition."""
    return [(await store.counter_add("hits", 1)).value for _ in range(times)]


async def count_once(store: Any, _number: int, keys: int) -> list[int]:
    return [
        int((await store.counter_add(f"hits {key}", 1, Once(f"{key}"))).value)
        for key in range(keys)
    ]


async def add_tasks(store: Any, number: int, times: int) -> int:
    for index in range(times):
        await store.task_add("work", [NewTask(index, f"{number}-{index}")])
    return times


async def add_same_task(store: Any, _number: int) -> str:
    return str((await store.task_add("work", [NewTask("body", "one")])).effects[0][1])


async def drain(store: Any, number: int) -> list[str]:
    """Everything that this worker claimed and finished; each has one fenced effect."""
    finished = []
    while tasks := (await store.task_claim("work", f"worker-{number}", lease_ms=60_000)).tasks:
        for task in tasks:
            await store.counter_add("effects", 1, Once(fence=_fence(task)))
            await store.task_finish(task.id, task.generation)
            finished.append(task.id)
    return finished


async def drain_briefly(store: Any, number: int) -> list[str]:
    """Work off all tasks, with leases so short that claims are lost all the time.

    Return the ids of the tasks that were finished. A task that is finished twice, or that has two
    effects, is a bug.
    """
    finished = []
    while await store.task_left("work"):
        claimed = (
            await store.task_claim("work", f"worker-{number}", lease_ms=random.choice([0, 1, 500]))
        ).tasks
        for task in claimed:
            try:
                await store.counter_add(f"effect-{task.id}", 1, Once(fence=_fence(task)))
                if await store.task_finish(task.id, task.generation) == "updated":
                    finished.append(task.id)
            except LeaseLost:
                continue
    return finished


async def stop_before_the_effect(store: Any, number: int, lease_ms: int) -> str:
    """Claim, be stopped, and go on as if nothing had happened: how the write is answered."""
    (task,) = (await store.task_claim("work", f"worker-{number}", lease_ms=lease_ms)).tasks
    os.kill(os.getpid(), signal.SIGSTOP)
    try:
        await store.counter_add("effects", 1, Once(fence=_fence(task)))
    except LeaseLost as lost:
        return lost.code
    return "done"


async def every_write(store: Any, _number: int) -> None:
    """Each verb that writes, on names of its own, and one that reads."""
    await store.counter_add("mine", 1, Once("mine"))
    await store.state_set("mine", 1, expires_ms=0)
    await store.state_set("my other", 1)
    await store.state_unset("my other")
    await store.task_add("work", [NewTask(1, "mine"), NewTask(2, "there")])
    first, second = (
        await store.task_claim("work", "me", lease_ms=60_000, count=2, max_attempts=1)
    ).tasks
    await store.counter_add("mine", 1, Once(fence=_fence(first)))
    await store.task_renew(first.id, first.generation, lease_ms=60_000)
    await store.task_finish(first.id, first.generation)
    await store.task_release(second.id, second.generation)
    await store.task_retry(second.id)
    await store.task_clean(0, ["done"])
    await store.counter_get("mine")


async def stop_at_every_step(store: Any, number: int, backend: str) -> list[str]:
    """Be stopped at each statement of SQLite, or each message to and from a server.

    Return the steps at which the process was stopped.
    """
    steps: list[str] = []

    def stop(step: str) -> None:
        steps.append(step)
        os.kill(os.getpid(), signal.SIGSTOP)

    {"sqlite": _stop_sqlite, "postgres": _stop_postgres, "valkey": _stop_redis}[backend](stop)
    await every_write(store, number)
    return steps


def _stop_sqlite(stop: Callable[[str], None]) -> None:
    """Before each statement."""
    import sqlite3

    connect = sqlite3.connect

    def traced(*args: Any, **options: Any) -> Any:
        connection = connect(*args, **options)
        connection.set_trace_callback(stop)
        return connection

    sqlite3.connect = traced


def _stop_postgres(stop: Callable[[str], None]) -> None:
    """After each answer, with whatever is locked by then, for longer than the test takes."""
    import psycopg

    from sampletool.state import postgres

    connection: Any = psycopg.Connection
    wait, postgres._IDLE_MS = connection.wait, 60_000

    def wait_and_stop(link: Any, *args: Any, **options: Any) -> Any:
        answer = wait(link, *args, **options)
        stop("an answer")
        return answer

    connection.wait = wait_and_stop


def _stop_redis(stop: Callable[[str], None]) -> None:
    """After each request, and after each answer."""
    from redis import connection

    talking: Any = connection.AbstractConnection
    send, read = talking.send_packed_command, talking.read_response

    def send_and_stop(connection: Any, command: Any, *args: Any, **options: Any) -> Any:
        send(connection, command, *args, **options)
        stop(
            b" ".join(command).decode(errors="replace")
            if isinstance(command, list)
            else str(command)
        )

    def read_and_stop(connection: Any, *args: Any, **options: Any) -> Any:
        answer = read(connection, *args, **options)
        stop("an answer")
        return answer

    talking.send_packed_command, talking.read_response = send_and_stop, read_and_stop


async def stop_before_the_commit(store: Any, number: int, factor: float) -> int:
    """By this factor longer than usual a server of PostgreSQL waits for such a client."""
    from sampletool.state import postgres

    commit = postgres.Link.commit
    postgres._IDLE_MS = round(postgres._IDLE_MS * factor)

    def stop_and_commit(link: Any) -> None:
        postgres.Link.commit = commit  # type: ignore[method-assign]
        os.kill(os.getpid(), signal.SIGSTOP)
        commit(link)

    postgres.Link.commit = stop_and_commit  # type: ignore[method-assign, assignment]
    return int((await store.counter_add("hits", 1)).value)


async def renew(store: Any, _number: int, task: str, generation: int) -> str:
    try:
        return str(await store.task_renew(task, generation, lease_ms=60_000))
    except LeaseLost as lost:
        return lost.code


async def stop_before_finishing(store: Any, number: int, lease_ms: int) -> None:
    (task,) = (await store.task_claim("work", f"worker-{number}", lease_ms=lease_ms)).tasks
    await store.counter_add("effects", 1, Once(fence=_fence(task)))
    os.kill(os.getpid(), signal.SIGSTOP)


async def count_with_keys(store: Any, number: int, times: int) -> int:
    for index in range(times):
        await store.counter_add("hits", 1, Once(f"{number}-{index}"))
    return times


async def count_until_others_did(store: Any, _number: int, others: int, most: int) -> int:
    """Count until each of the others has added 1. Return how many additions that took, or `most`.

    The first addition is interrupted by SIGSTOP, so that the others have to wait.
    """
    await store.counter_add("hits", 1)
    _stop_before_commit(1)
    for turn in range(1, most + 1):
        value = (await store.counter_add("hits", 1)).value
        if value == 1 + turn + others:
            return turn
    return most


async def say_so_and_count(store: Any, _number: int) -> int:
    print("asking", flush=True)
    return int((await store.counter_add("hits", 1)).value)


async def fork_and_count(store: Any, _number: int) -> tuple[list[int], int]:
    """Add 1 before a fork, in the child, and after it.

    Return the values, and how many connections the child has opened. It sends them through a pipe.
    """
    values = [(await store.counter_add("hits", 1)).value]
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        before = _open_descriptors()
        value = (await store.counter_add("hits", 1)).value
        os.write(writing, f"{value} {(_open_descriptors() - before).total()}".encode())
        os._exit(0)
    os.waitpid(child, 0)
    value, opened = map(int, os.read(reading, 9).split())
    return [*values, value, (await store.counter_add("hits", 1)).value], opened


def _open_descriptors() -> Counter[str]:
    """Count the open descriptors by path. Leave out the logs of SQLite files."""
    names = [f"/proc/self/fd/{number}" for number in os.listdir("/proc/self/fd")]
    opened = [os.readlink(name) for name in names if os.path.exists(name) or os.path.islink(name)]
    return Counter(name for name in opened if not name.endswith(("-wal", "-shm")))


async def append(store: Any, number: int, times: int) -> int:
    """Append to a list that all clients share, by compare-and-set."""
    for index in range(times):
        while True:
            found = await store.state_get("list")
            try:
                await store.state_set(
                    "list", [*found.value, f"{number}-{index}"], if_version=found.version
                )
                break
            except VersionConflict:
                continue
    return times


async def create(store: Any, number: int) -> bool:
    """Whether this one was the first."""
    try:
        await store.state_set("leader", number, if_version=0)
    except VersionConflict:
        return False
    return True


def _fence(task: Any) -> Fence:
    return Fence(task.id, task.generation)


async def stop_before_the_second_commit(store: Any, _number: int) -> int:
    await store.counter_add("hits", 1)
    _stop_before_commit(0)
    return int((await store.counter_add("hits", 1)).value)


def _stop_before_commit(statements: int) -> None:
    """Stop this process in its next transaction on SQLite, before its first or second statement.

    The statements that count are BEGIN and COMMIT.
    """
    from sampletool.state.sqlite import SqliteStore

    patiently, left = SqliteStore._retry_while_busy, statements

    def stop_and_go_on(database: SqliteStore, attempt: Any) -> Any:
        nonlocal left
        if left == 0:
            SqliteStore._retry_while_busy = patiently  # type: ignore[method-assign]
            os.kill(os.getpid(), signal.SIGSTOP)
        left -= 1
        return patiently(database, attempt)

    SqliteStore._retry_while_busy = stop_and_go_on  # type: ignore[method-assign, assignment]
