"""While one client is paused (SIGSTOP) at any step of any verb that writes, others can work."""

from collections.abc import Callable, Iterator

from sampletool.kit.safety.errors import LockTimeout
from sampletool.state.protocol import NewTask, Once
from sampletool.state.store import Store
from tests.state.support.outcomes import outcome
from tests.state.support.stores import Client, SharedBackend

VERBS = (
    "counter_add state_set state_unset task_add task_claim task_renew task_finish task_release "
    "task_retry task_clean"
)


def start(backend: SharedBackend) -> Client:
    client = backend.start("stop_at_every_step", 0, backend.name)
    client.wait_until_ready()
    client.go()
    return client


def stops(client: Client) -> Iterator[int]:
    """Each time that it has stopped, until it has ended."""
    number = 0
    while client.wait_until_stopped():
        number += 1
        yield number
        client.resume()


def work_beside_it(store: Store, number: int) -> None:
    """Each verb that writes, on other names, in the same queue."""
    store.counter_add("ours", 1, Once(f"ours {number}"))
    store.state_set(f"ours {number}", number, expires_ms=0)
    store.state_set(f"our other {number}", number)
    store.state_unset(f"our other {number}")
    ids = [f"{number} {kind}" for kind in ("renewed", "finished", "released")]
    store.task_add("work", [NewTask(number, task) for task in ids])
    store.task_add("ours", [NewTask(number, f"{number} ours")])
    (task,) = store.task_claim("ours", "us", lease_ms=60_000).tasks
    store.task_renew(task.id, task.generation, lease_ms=60_000)
    store.task_release(task.id, task.generation)
    (task,) = store.task_claim("ours", "us", lease_ms=60_000).tasks
    store.task_finish(task.id, task.generation)
    assert store.task_claim("work", "us", lease_ms=0).tasks


def test_on_postgres_it_stops_nobody_else(make_backend: Callable[[str], SharedBackend]) -> None:
    import psycopg

    backend = make_backend("postgres")
    store = backend.open()
    store.task_add("work", [NewTask(2, "there")])
    queries: list[str] = []
    with psycopg.connect(backend.url, autocommit=True) as watcher:
        inside = """
            SELECT query FROM pg_stat_activity
            WHERE state = 'idle in transaction' AND datname = %s
        """
        client = start(backend)
        for number in stops(client):
            queries += [
                query for (query,) in watcher.execute(inside, (watcher.info.dbname,)).fetchall()
            ]
            assert outcome(lambda: work_beside_it(store, number)) is None  # noqa: B023

    assert len(client.result()) > 50
    assert written(queries) >= {
        f"INSERT INTO tool_{table}" for table in ("counters", "once", "state", "tasks")
    } | {
        "UPDATE tool_state",
        "UPDATE tool_tasks",
        "DELETE FROM tool_tasks",
    }
    assert store.counter_get("mine") == 2


def test_on_redis_it_stops_nobody_else(make_backend: Callable[[str], SharedBackend]) -> None:
    backend = make_backend("valkey")
    store = backend.open()
    store.task_add("work", [NewTask(2, "there")])
    client = start(backend)

    for number in stops(client):
        assert outcome(lambda: work_beside_it(store, number)) is None  # noqa: B023

    sent = " ".join(client.result())
    assert [verb for verb in VERBS if verb not in sent] == []
    assert store.counter_get("mine") == 2


def test_on_sqlite_others_read_meanwhile_and_are_not_left_waiting_to_write(
    make_backend: Callable[[str], SharedBackend],
) -> None:
    """The file has one lock, which the paused client holds. An error names that client."""
    backend = make_backend("sqlite")
    store, impatient = backend.open(), backend.open(patience=0.0)
    store.task_add("work", [NewTask(2, "there")])
    client = start(backend)
    refused: list[int] = []

    for number in stops(client):
        assert impatient.counter_get("mine") in (0, 1, 2)
        assert impatient.task_list("work", None, 0, 9)
        try:
            impatient.counter_add(f"ours {number}", 1)
        except LockTimeout as held:
            assert held.owners.holders[0].pid == client.process.pid
            refused.append(number)

    steps = client.result()
    inside = [
        n
        for n, step in enumerate(steps, 1)
        if step.startswith(("INSERT", "UPDATE", "DELETE", "COMMIT"))
    ]
    assert set(inside) <= set(refused)
    assert len(refused) < len(steps), "who only reads is in nobody's way"
    assert written(steps) >= {
        f"INSERT INTO tool_{table}" for table in ("counters", "once", "state", "tasks")
    }
    assert store.counter_get("mine") == 2


def written(statements: list[str]) -> set[str]:
    """Return the tables that the statements write to."""
    words = [statement.split() for statement in statements]
    return {
        " ".join(said[: 2 if said[0] == "UPDATE" else 3])
        for said in words
        if said[0] in ("INSERT", "UPDATE", "DELETE")
    }
