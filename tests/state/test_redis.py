"""Each call of redis.lua keeps the server busy for a short time only. redis.py repeats safely."""

from collections.abc import Callable
from typing import Any

import pytest
from redis.exceptions import BusyLoadingError

from sampletool.kit.contract.errors import InvalidValues
from sampletool.kit.safety.signals import Signals
from sampletool.state.exchange import Request, Watch
from sampletool.state.protocol import NewTask
from sampletool.state.redis import _server_name, _WatchedSocket
from sampletool.state.store import Store
from tests.state.support.outcomes import outcome, raises, statuses
from tests.state.support.servers import Server
from tests.state.support.stores import SharedBackend

LONG = 3_600_000
MOST_COMMANDS, MOST_OF_ADDING = 6_500, 8_500
"""About 15 and 30 ms of a busy machine."""


def test_no_script_does_more_than_a_bounded_number_of_things(
    private_server: Callable[[str], Server],
) -> None:
    """However many tasks there are: the server does nothing else meanwhile."""
    import redis

    url = f"unix://{private_server('valkey').running.socket}"
    backend = SharedBackend("valkey", url)
    store = backend.open()
    for _ in range(3):
        store.task_add("work", [NewTask("x") for _ in range(1000)])
    store.task_add("late", [NewTask("x") for _ in range(1000)], delay_ms=1)
    calls: dict[str, Callable[[], Any]] = {
        "add": lambda: store.task_add("work", [NewTask("x") for _ in range(1000)]),
        "claim": lambda: store.task_claim("work", "ann", lease_ms=LONG, count=1000),
        "claim of what has become due": lambda: store.task_claim(
            "late", "ann", lease_ms=LONG, count=1000
        ),
        "claim of what expires at once": lambda: store.task_claim(
            "work", "ann", lease_ms=0, count=1000
        ),
        "list": lambda: store.task_list(None, "failed", 0, 100),
        "left": lambda: store.task_left("work"),
        "clean": lambda: store.task_clean(0, ["done", "failed"]),
    }
    with redis.Redis.from_url(url) as admin:
        done = {name: commands_for_a_script(admin, call) for name, call in calls.items()}

    assert done.pop("add") <= MOST_OF_ADDING
    assert {name: number for name, number in done.items() if number > MOST_COMMANDS} == {}
    backend.close()


def commands_for_a_script(admin: Any, call: Callable[[], Any]) -> float:
    admin.config_resetstat()
    call()
    counts: dict[str, int] = {
        name: facts["calls"] for name, facts in admin.info("commandstats").items()
    }
    scripts = counts.pop("cmdstat_evalsha", 0)
    return sum(counts.values()) / max(1, scripts)


def test_a_server_that_is_still_loading_has_done_nothing_and_is_asked_again(
    make_backend: Callable[[str], SharedBackend],
) -> None:
    store: Any = make_backend("valkey").open()
    asked = []

    def ask() -> int:
        asked.append("once more")
        if len(asked) == 1:
            raise BusyLoadingError("LOADING Valkey is loading the dataset in memory")
        return len(asked)

    assert store._send(Request("redis://h", "counter add hits", "unsafe"), lambda _: ask()) == 2


def test_more_tasks_than_a_script_may_add_are_refused(
    make_backend: Callable[[str], SharedBackend],
) -> None:
    store: Store = make_backend("valkey").open()

    with raises(InvalidValues, match="at most 1000 tasks at once") as refused:
        store.task_add("work", [NewTask("x") for _ in range(1001)])

    (mistake,) = refused.value.mistakes
    assert mistake.suggestion == "Add them with several commands."
    assert statuses(store, "work") == {}


def test_a_script_may_add_exactly_as_many_tasks(
    make_backend: Callable[[str], SharedBackend],
) -> None:
    store: Store = make_backend("valkey").open()

    added = outcome(lambda: store.task_add("work", [NewTask("x") for _ in range(1000)]))

    assert len(added.effects) == 1000


class FakeSocket:
    """A socket that records its timeouts, and whose replies the test chooses."""

    def __init__(self, *replies: object) -> None:
        self.timeouts: list[float] = []
        self.sent = b""
        self._replies = list(replies)

    def settimeout(self, seconds: float) -> None:
        self.timeouts.append(seconds)

    def recv(self, _size: int) -> object:
        reply = self._replies.pop(0)
        if isinstance(reply, Exception):
            raise reply
        return reply

    def send(self, content: memoryview) -> int:
        """Send at most three bytes."""
        part = bytes(content[:3])
        self.sent += part
        return len(part)


def watched(fake: FakeSocket, *, is_over: bool = False) -> Any:
    give_up_at = 0.0 if is_over else float("inf")
    return _WatchedSocket(fake, Watch(Signals(), give_up_at))


def test_a_watched_socket_looks_at_its_watch_again_and_again_until_the_reply_arrives() -> None:
    fake = FakeSocket(TimeoutError(), TimeoutError(), b"+OK")

    assert outcome(lambda: watched(fake).recv(9)) == b"+OK"

    assert fake.timeouts == [0.05]


def test_a_watched_socket_gives_up_when_the_exchange_is_over() -> None:
    over = watched(FakeSocket(b"+OK"), is_over=True)

    with raises(TimeoutError):
        over.recv(9)
    with raises(TimeoutError):
        over.sendall(b"PING")


def test_a_driver_that_does_not_want_to_wait_gets_what_has_arrived() -> None:
    """The driver asks in this way whether the connection is still alive."""
    fake = FakeSocket(b"+OK")
    socket = watched(fake, is_over=True)

    socket.settimeout(0)

    assert outcome(lambda: socket.recv(9)) == b"+OK"

    socket.settimeout(3600)
    socket.settimeout(None)
    assert fake.timeouts == [0.05, 0, 0.05, 0.05]


def test_a_watched_socket_sends_all_of_a_long_request() -> None:
    fake = FakeSocket()

    assert outcome(lambda: watched(fake).sendall(b"SET key value")) is None

    assert fake.sent == b"SET key value"


@pytest.mark.parametrize(
    ("info", "name"),
    [
        ({"valkey_version": "9.0", "redis_version": "7.2"}, "Valkey 9.0"),
        ({"redis_version": "7.2"}, "Redis 7.2"),
        ({}, "Redis or Valkey"),
    ],
)
def test_health_names_the_kind_of_the_server(info: dict[str, str], name: str) -> None:
    assert outcome(lambda: _server_name(info)) == name


def test_an_append_only_file_that_cannot_be_written_is_a_problem() -> None:
    from sampletool.state.redis import _find_problems

    working = {"aof_enabled": 1, "appendfsync": "always", "role": "master"}

    assert _find_problems({**working, "aof_last_write_status": "ok"}) == []
    assert len(_find_problems({**working, "aof_last_write_status": "err"})) == 1
