"""Many clients at once lose nothing, on every backend.

The clients are processes, or coroutines where the store is in memory."""

from sampletool.kit.testing.scale import scale
from sampletool.state.protocol import NewTask
from tests.state.support.outcomes import statuses
from tests.state.support.stores import Backend, SharedBackend


def test_100_increments_by_10_clients_are_100(backend: Backend) -> None:
    each = scale(10, 1000)

    made = backend.together("count", 10, each)

    assert sorted(value for values in made for value in values) == list(range(1, 10 * each + 1))
    assert backend.open().counter_get("hits") == 10 * each


def test_calls_with_one_key_at_the_same_time_have_one_effect(backend: Backend) -> None:
    answers = backend.together("count_once", 5, 10)

    assert answers == [[1] * 10] * 5
    assert [value for _, value in backend.open().counter_list("", 99)] == [1] * 10


def test_concurrent_additions_of_tasks_lose_none(backend: Backend) -> None:
    each = scale(10, 25)

    backend.together("add_tasks", 8, each)

    store = backend.open()
    assert statuses(store, "work") == {"free": 8 * each}
    assert len(store.task_list("work", None, 0, 1000)) == 8 * each


def test_one_task_added_by_many_is_there_once(backend: Backend) -> None:
    effects = backend.together("add_same_task", 4)

    assert sorted(effects) == ["created", *["unchanged"] * 3]
    assert statuses(backend.open(), "work") == {"free": 1}


def test_each_of_many_tasks_is_done_by_one_of_many_workers(backend: Backend) -> None:
    many = scale(40, 10_000)
    store = backend.open()
    store.task_add("work", [NewTask(n, str(n)) for n in range(many)])

    done = backend.together("drain", 8)

    assert sorted((task for tasks in done for task in tasks), key=int) == [
        str(n) for n in range(many)
    ]
    assert statuses(store, "work") == {"done": many}
    assert store.counter_get("effects") == many


def test_lost_leases_neither_repeat_an_effect_nor_lose_a_task(backend: Backend) -> None:
    many = scale(20, 500)
    store = backend.open()
    store.task_add("work", [NewTask(n, str(n)) for n in range(many)])

    done = backend.together("drain_briefly", 4)

    assert sorted((task for tasks in done for task in tasks), key=int) == [
        str(n) for n in range(many)
    ]
    assert [value for name, value in store.counter_list("effect-", 10_000)] == [1] * many


def test_compare_and_set_loops_lose_nothing(backend: Backend) -> None:
    store = backend.open()
    store.state_set("list", [])

    backend.together("append", 3, 10)

    assert sorted(store.state_get("list").value) == sorted(
        f"{n}-{i}" for n in range(3) for i in range(10)
    )


def test_one_of_many_creates_a_value(backend: Backend) -> None:
    firsts = backend.together("create", 4)

    assert sorted(firsts) == [False] * 3 + [True]


def test_clients_that_create_the_store_at_once_all_succeed(shared: SharedBackend) -> None:
    made = shared.together("count", 8, 1)

    assert sorted(value for values in made for value in values) == list(range(1, 9))
