"""Every period of shared state at its real length: just before its end, and just after it.

A test sets the clock of the store, which then stands fake_time. SQL stores ask for the time by an
expression of their connection, and Redis by a command in its script. A number replaces both.
"""

import random
import signal
import sqlite3
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from importlib.resources import files
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from sampletool.kit.context import Context
from sampletool.kit.contract.errors import KeyNotFound, VersionConflict
from sampletool.kit.safety import children as children_module
from sampletool.kit.safety.children import ChildExit
from sampletool.kit.safety.errors import Interrupted
from sampletool.kit.safety.signals import Signals
from sampletool.state import doctor, exchange, sqlite, update, worker
from sampletool.state.connect import connect_for_cleanup
from sampletool.state.errors import LeaseLost, OutcomeUnknown, StoreBusy, StoreUnavailable
from sampletool.state.exchange import NoReply, Request, send
from sampletool.state.protocol import Claimed, Health, NewTask, Once, Value
from sampletool.state.retry_policy import RetryPolicy
from sampletool.state.store import Store
from sampletool.state.worker import Worker, WorkOptions, margin_seconds
from tests.state.support.claims import claim_one, fence
from tests.state.support.outcomes import outcome, raises, statuses
from tests.state.support.stores import Backend

START_MS = 1_800_000_000_000
DAY_MS = 24 * 60 * 60 * 1000
HOUR_MS = 60 * 60 * 1000
MOMENT = 0.001


class StoreClock:
    """The time that a store reads, as long as the test does not change it."""

    def __init__(self, backend: Backend, monkeypatch: pytest.MonkeyPatch) -> None:
        self._backend = backend
        self._monkeypatch = monkeypatch
        self.store: Any = backend.open()
        self.advance_to(0)

    def advance_to(self, milliseconds: int) -> None:
        """Set the clock to this time after the start of the test."""
        now = START_MS + milliseconds
        if self._backend.name == "valkey":
            script = (files("sampletool.state") / "redis.lua").read_text()
            fixed = f"{{{now // 1000}, {now % 1000 * 1000}}}"
            assert script.count("redis.call('TIME')") == 1
            self.store._script = self.store._client.register_script(
                script.replace("redis.call('TIME')", fixed)
            )
        elif self._backend.name == "postgres":
            from sampletool.state.postgres import Link

            self._monkeypatch.setattr(Link, "now", f"{now}::bigint")
        else:
            self._monkeypatch.setattr(sqlite.Connection, "now", str(now))


@pytest.fixture
def clock(backend: Backend, monkeypatch: pytest.MonkeyPatch) -> StoreClock:
    return StoreClock(backend, monkeypatch)


# What a store keeps for a while


def test_a_value_exists_until_it_expires_and_no_longer(clock: StoreClock) -> None:
    store: Store = clock.store
    store.state_set("leader", "ann", expires_ms=60_000)

    clock.advance_to(60_000 - 1)

    assert store.state_get("leader").value == "ann"
    assert [value.key for value in store.state_list("", "", 10)] == ["leader"]
    assert outcome(lambda: store.state_set("leader", "bob", if_version=0)) == VersionConflict.code

    clock.advance_to(60_000)

    assert outcome(lambda: store.state_get("leader")) == KeyNotFound.code
    assert store.state_list("", "", 10) == []
    assert store.state_set("leader", "bob", if_version=0) == (2, "created", False)


def test_a_value_whose_expiry_was_removed_stays(clock: StoreClock) -> None:
    """A write removes what has expired. Naive: also what had a time limit once."""
    store: Store = clock.store
    store.state_set("leader", "ann", expires_ms=60_000)
    store.state_set("leader", "ann")

    clock.advance_to(60_000)
    store.state_set("other", 1)

    assert [(value.value, value.version) for value in store.state_list("leader", "", 9)] == [
        ("ann", 2)
    ]
    assert outcome(lambda: store.state_get("leader").value) == "ann"


def test_the_age_of_a_task_is_measured_from_its_end_and_not_from_its_claim(
    clock: StoreClock,
) -> None:
    store: Store = clock.store
    store.task_add("work", [NewTask("x", "a")])
    task = claim_one(store, lease_ms=HOUR_MS)
    clock.advance_to(60_000)
    store.task_finish("a", task.generation)

    clock.advance_to(60_000 + 50_000)

    assert store.task_clean(60_000, ["done"])[0] == 0

    clock.advance_to(60_000 + 60_000)

    assert store.task_clean(60_000, ["done"])[0] == 1


def test_a_lease_lasts_until_its_end_and_then_others_can_claim_the_task(
    clock: StoreClock,
) -> None:
    store: Store = clock.store
    store.task_add("work", [NewTask("x", "a")])
    task = claim_one(store, "ann", lease_ms=60_000)

    clock.advance_to(60_000 - 1)

    assert store.task_claim("work", "bob", lease_ms=60_000).tasks == []
    assert (statuses(store), store.task_left("work")) == ({"claimed": 1}, 1)
    assert store.counter_add("hits", 1, fence(task)).value == 1

    clock.advance_to(60_000)

    assert statuses(store) == {"expired": 1}
    with raises(LeaseLost):
        store.task_renew("a", task.generation, lease_ms=60_000)
    assert claim_one(store, "bob").generation == task.generation + 1


def test_a_lease_that_is_renewed_in_its_last_millisecond_lasts_once_more(clock: StoreClock) -> None:
    store: Store = clock.store
    store.task_add("work", [NewTask("x", "a")])
    task = claim_one(store, "ann", lease_ms=60_000)
    clock.advance_to(60_000 - 1)

    store.task_renew("a", task.generation, lease_ms=60_000)

    clock.advance_to(2 * 60_000 - 2)

    assert statuses(store) == {"claimed": 1}
    assert store.task_claim("work", "bob", lease_ms=60_000).tasks == []
    clock.advance_to(2 * 60_000 - 1)

    assert statuses(store) == {"expired": 1}


def test_a_last_attempt_fails_when_its_lease_expires_and_not_before(clock: StoreClock) -> None:
    store: Store = clock.store
    store.task_add("work", [NewTask("x", "a")])
    claim_one(store, lease_ms=60_000, max_attempts=1)

    clock.advance_to(60_000 - 1)

    assert (statuses(store), store.task_left("work")) == ({"claimed": 1}, 1)

    clock.advance_to(60_000)

    assert (statuses(store), store.task_left("work")) == ({"failed": 1}, 0)
    assert store.task_claim("work", "bob", lease_ms=60_000).tasks == []


@pytest.mark.parametrize("how", ["added", "given back"])
def test_a_delayed_task_is_claimed_when_its_delay_is_over_and_not_before(
    clock: StoreClock, how: str
) -> None:
    store: Store = clock.store
    if how == "added":
        store.task_add("work", [NewTask("x", "a")], delay_ms=HOUR_MS)
    else:
        store.task_add("work", [NewTask("x", "a")])
        store.task_release("a", claim_one(store).generation, delay_ms=HOUR_MS)

    clock.advance_to(HOUR_MS - 1)

    assert store.task_claim("work", "ann", lease_ms=60_000).tasks == []

    clock.advance_to(HOUR_MS)

    assert claim_one(store).id == "a"


@pytest.mark.parametrize("how", ["done", "failed"])
def test_a_task_is_removed_a_day_after_its_end_and_not_before(clock: StoreClock, how: str) -> None:
    store: Store = clock.store
    store.task_add("work", [NewTask("x", "a")])
    task = claim_one(store, max_attempts=1)
    clock.advance_to(1000)
    if how == "done":
        store.task_finish("a", task.generation)
    else:
        store.task_release("a", task.generation)

    clock.advance_to(1000 + DAY_MS - 1)

    assert store.task_clean(DAY_MS, [how]) == (0, 0)

    clock.advance_to(1000 + DAY_MS)

    assert store.task_clean(DAY_MS, [how]) == (1, 0)
    assert statuses(store) == {}


def test_an_idempotency_key_is_remembered_for_24_hours_and_not_longer(
    clock: StoreClock, backend: Backend
) -> None:
    store: Store = clock.store
    store.counter_add("hits", 1, Once("k"))
    if backend.name == "valkey":  # the server itself forgets it, by a clock that no script can move
        left_ms = clock.store._client.pttl("{sampletool}:once:key:k")
        assert DAY_MS - 60_000 < left_ms <= DAY_MS
        return

    clock.advance_to(DAY_MS - 1)

    assert store.counter_add("hits", 1, Once("k")) == (1, "created", True)

    clock.advance_to(DAY_MS)

    assert store.counter_add("hits", 1, Once("k")) == (2, "updated", False)


def test_a_fenced_write_is_remembered_for_longer_than_24_hours(clock: StoreClock) -> None:
    store: Store = clock.store
    store.task_add("work", [NewTask("x", "a")])
    task = claim_one(store, lease_ms=10 * DAY_MS)
    store.counter_add("hits", 1, fence(task))

    clock.advance_to(DAY_MS + 1)

    assert store.counter_add("hits", 1, fence(task)).replayed


# How long a verb waits


class FakeTime:
    """A clock that moves only when somebody waits, or when a test moves it."""

    def __init__(self) -> None:
        self.now = 1000.0

    @property
    def elapsed(self) -> float:
        return round(self.now - 1000, 6)

    def monotonic(self) -> float:
        return self.now

    def advance(self, seconds: float) -> None:
        self.now += seconds

    sleep = advance


class ClockedSignals(Signals):
    """Signals of which none arrives. A wait only moves the clock."""

    def __init__(self, fake_time: FakeTime) -> None:
        super().__init__(fake_time.monotonic)
        self._fake_time = fake_time

    def wait(self, seconds: float, descriptors: Any = ()) -> list[int]:
        self._fake_time.advance(seconds)
        return []


@pytest.fixture
def fake_time(monkeypatch: pytest.MonkeyPatch) -> FakeTime:
    """Return the clock of all code in this part that waits."""
    fake_time = FakeTime()
    for module in (exchange, sqlite, update, children_module):
        monkeypatch.setattr(module, "time", fake_time)
    monkeypatch.setattr(worker, "boot_seconds", fake_time.monotonic)
    return fake_time


def make_policy(
    fake_time: FakeTime,
    patience: float | None,
    longest: float = float("inf"),
) -> RetryPolicy:
    return RetryPolicy(
        hold_lock=cast(Any, None),
        signals=ClockedSignals(fake_time),
        warn=lambda code, message: None,
        requested_wait_seconds=patience,
        max_seconds=longest,
    )


@pytest.mark.parametrize(
    ("patience", "longest", "waits"),
    [(None, 60, 10.0), (0, 60, 2.0), (1.0, 60, 2.0), (3.0, 60, 3.0), (30.0, 5, 5.0), (0, 1, 1.0)],
)
def test_an_unreachable_server_is_asked_again_for_the_requested_time_and_at_least_2_seconds(
    fake_time: FakeTime, patience: float | None, longest: float, waits: float
) -> None:
    asked_at: list[float] = []

    def ask(_deadline: float, _is_repetition: bool) -> None:
        asked_at.append(fake_time.elapsed)
        assert len(asked_at) < 10_000, "it would ask without an end"
        raise NoReply("unreachable", was_sent=False)

    with raises(StoreUnavailable):
        send(Request("redis://h"), make_policy(fake_time, patience, longest), ask)

    assert asked_at[:3] == [0, 0.05, 0.1]
    assert waits <= fake_time.elapsed < waits + 0.06


def test_a_signal_in_the_pause_before_the_next_attempt_ends_the_wait(
    fake_time: FakeTime, monkeypatch: pytest.MonkeyPatch
) -> None:
    policy = make_policy(fake_time, 600)
    attempts: list[float] = []

    def ask(_deadline: float, _is_repetition: bool) -> None:
        attempts.append(fake_time.elapsed)
        assert len(attempts) < 10_000, "it would ask without an end"
        raise NoReply("unreachable", was_sent=False)

    def wait(seconds: float, _descriptors: Any = ()) -> list[int]:
        fake_time.advance(seconds)
        policy.signals.receive(signal.SIGINT)
        return []

    monkeypatch.setattr(policy.signals, "wait", wait)

    with raises(Interrupted):
        send(Request("redis://h"), policy, ask)

    assert len(attempts) == 1


def test_a_write_whose_outcome_is_unknown_is_not_repeated(fake_time: FakeTime) -> None:
    def ask(_deadline: float, _is_repetition: bool) -> None:
        raise NoReply("cut", was_sent=True)

    with raises(OutcomeUnknown):
        send(Request("redis://h", "counter add hits", "unsafe"), make_policy(fake_time, 10), ask)

    assert fake_time.elapsed == 0


@pytest.mark.parametrize(("patience", "waits"), [(0, 0.0), (0.5, 0.5), (None, 10.0)])
def test_a_busy_file_is_tried_again_for_the_requested_time(
    fake_time: FakeTime, tmp_path: Path, patience: float | None, waits: float
) -> None:
    store = sqlite.SqliteStore(tmp_path / "state.db", make_policy(fake_time, patience))

    def busy() -> None:
        fake_time.advance(0.05)
        assert fake_time.elapsed < 60, "it would wait without an end"
        error = sqlite3.OperationalError("database is locked")
        error.sqlite_errorname = "SQLITE_BUSY_SNAPSHOT"
        raise error

    with raises(StoreBusy):
        store._retry_while_busy(busy)

    assert waits <= round(fake_time.elapsed - 0.05, 6) < waits + 0.06


def test_an_update_that_others_overtake_is_tried_ten_times_with_growing_pauses(
    fake_time: FakeTime, monkeypatch: pytest.MonkeyPatch
) -> None:
    pauses: list[float] = []

    class Overtaken:
        def state_get(self, key: str) -> Any:
            return Value(key, 1, 1)

        def state_set(self, key: str, value: object, if_version: int) -> Any:
            raise VersionConflict(key=key, expected=if_version, actual=if_version + 1)

    monkeypatch.setattr(random, "uniform", lambda _least, most: most)
    monkeypatch.setattr(fake_time, "sleep", pauses.append)

    with raises(VersionConflict):
        update.update(cast(Store, Overtaken()), "key", lambda value: value)

    assert pauses == [0.005, 0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.5, 0.5]


def test_at_its_end_a_command_waits_4_seconds_for_a_store_and_2_for_a_lock() -> None:
    context = Context(Signals())

    with context.exit_stack:
        store: Any = connect_for_cleanup(context, None)
        left = store._policy.signals.seconds_left

    assert 3.5 < left <= 4
    assert store._policy.wait_seconds == 2


@pytest.mark.parametrize(
    ("skew_ms", "is_ok"), [(2000, True), (-2000, True), (2001, False), (-2001, False)]
)
def test_a_clock_may_differ_by_two_seconds(
    skew_ms: int, is_ok: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    health = Health("server", [], skew_ms, {})
    monkeypatch.setattr(
        doctor, "connect_for_command", lambda _context: SimpleNamespace(health=lambda: health)
    )

    probe = doctor.probe(Context(Signals()))[-1]

    assert probe.ok is is_ok
    assert not probe.required


# A worker


class Recorder:
    """A store that agrees to everything, and records the verbs."""

    def __init__(self) -> None:
        self.verbs: list[str] = []
        self.delays_ms: list[int] = []

    def __getattr__(self, verb: str) -> Callable[..., Any]:
        def ask(*_args: object, **options: Any) -> Any:
            self.verbs.append(verb)
            if "delay_ms" in options:
                self.delays_ms.append(options["delay_ms"])
            return SimpleNamespace(tasks=[], replayed=False)

        return ask


@dataclass(frozen=True)
class Watched:
    """A worker with one command, which never exits. At first, its lease lasts for 60 s."""

    worker: Worker
    fake_time: FakeTime
    store: Recorder
    signals_sent: list[int]

    def set_seconds_left(self, seconds: float) -> None:
        """Move the clock to this long before the end of the lease."""
        (command,) = self.worker.running.values()
        self.fake_time.now = command.lease_ends_at - seconds


@pytest.fixture
def watched(
    fake_time: FakeTime, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Watched]:
    monkeypatch.chdir(tmp_path)
    context = Context(ClockedSignals(fake_time))
    store = Recorder()
    signals_sent: list[int] = []
    with context.exit_stack:
        options = WorkOptions(
            queue="work",
            argv=["sleep"],
            jobs=1,
            lease_ms=60_000,
            max_attempts=0,
            store_url=f"sqlite://{tmp_path}/state.db",
        )
        watched = Worker(context, options)
        watched.store = cast(Store, store)
        watched.running["a:1"] = worker._RunningCommand(
            task=Claimed("a", generation=1, body="x", attempts=1, lease_expires_at=""),
            body_file=tmp_path / "body",
            lease_ends_at=fake_time.now + 60,
            has_started=True,
        )
        monkeypatch.setattr(
            watched.children,
            "send_signal",
            lambda _name, number: signals_sent.append(number),
        )
        yield Watched(watched, fake_time, store, signals_sent)


@pytest.mark.parametrize(
    ("lease_ms", "margin"),
    [(1_000, 0.25), (4_000, 1.0), (39_999, 9.99975), (40_000, 10.0), (600_000, 10.0)],
)
def test_a_command_is_killed_a_quarter_of_its_lease_before_the_end_and_at_most_10_seconds(
    lease_ms: int, margin: float
) -> None:
    assert margin_seconds(lease_ms) == margin


@pytest.mark.parametrize(
    ("lease_ms", "grace"), [(1_000, 0.25), (4_000, 1.0), (20_000, 5.0), (600_000, 5.0)]
)
def test_a_command_has_a_quarter_of_its_lease_to_exit_and_at_most_5_seconds(
    lease_ms: int, grace: float
) -> None:
    assert worker._grace_seconds(lease_ms) == grace


@pytest.mark.parametrize(
    ("left", "sent", "lost"),
    [
        (15 + MOMENT, [], 0),
        (15 - MOMENT, [signal.SIGTERM], 0),
        (10 + MOMENT, [signal.SIGTERM], 0),
        (10 - MOMENT, [signal.SIGKILL], 1),
    ],
)
def test_a_command_is_asked_to_exit_15_seconds_before_its_lease_expires_and_killed_after_5(
    watched: Watched,
    left: float,
    sent: list[int],
    lost: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    watched.set_seconds_left(left)

    notices: list[str] = []
    monkeypatch.setattr(watched.worker.context, "progress", notices.append)

    watched.worker._end_commands_in_time()
    watched.worker._end_commands_in_time()

    assert watched.signals_sent == sent
    assert watched.worker.lost == lost
    assert len(notices) == len(sent)


@pytest.mark.parametrize(("left", "verbs"), [(40 + MOMENT, []), (40 - MOMENT, ["task_renew"])])
def test_a_lease_is_renewed_when_a_third_of_it_is_over(
    watched: Watched, left: float, verbs: list[str]
) -> None:
    watched.set_seconds_left(left)

    watched.worker.turn()

    assert watched.store.verbs == verbs


@pytest.mark.parametrize(("away_seconds", "is_given_up"), [(60 - MOMENT, False), (60.0, True)])
def test_a_store_may_be_unreachable_for_as_long_as_a_lease_lasts(
    watched: Watched, away_seconds: float, is_given_up: bool
) -> None:
    def ask() -> None:
        with watched.worker.tolerate_outage():
            raise StoreUnavailable(store="s", reason="away")

    assert outcome(ask) is None
    watched.fake_time.advance(away_seconds)

    assert (outcome(ask) == StoreUnavailable.code) is is_given_up


@pytest.mark.parametrize(("left", "sent"), [(10 + MOMENT, []), (10 - MOMENT, [signal.SIGKILL])])
def test_a_worker_that_exits_kills_commands_that_could_outlive_their_leases(
    watched: Watched, left: float, sent: list[int]
) -> None:
    watched.set_seconds_left(left)

    watched.worker.prepare_to_leave()

    assert watched.signals_sent == sent


def test_a_worker_asks_an_empty_queue_again_after_half_a_second(watched: Watched) -> None:
    watched.worker.running.clear()
    started_at = watched.fake_time.now

    watched.worker.wait()

    assert watched.fake_time.now - started_at == 0.5


@pytest.mark.parametrize(
    ("lease_ms", "has_ended", "is_reachable", "seconds"),
    [
        (60_000, False, True, 0.5),
        (4_000, False, True, 0.2),
        (4_000, True, True, 0.0),
        (60_000, True, False, 0.5),
        (4_000, True, False, 0.2),
    ],
)
def test_a_worker_looks_at_its_commands_twice_a_second_and_20_times_per_lease(
    watched: Watched,
    lease_ms: int,
    has_ended: bool,
    is_reachable: bool,
    seconds: float,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """If a command has ended, it is reported at once, unless the store is unreachable."""
    (command,) = watched.worker.running.values()
    waits: list[float] = []
    monkeypatch.setattr(watched.worker.children, "next_exit", waits.append)
    watched.worker.options = replace(watched.worker.options, lease_ms=lease_ms)
    if has_ended:
        watched.worker.ended.append(cast(Any, command))
    if not is_reachable:
        watched.worker.unreachable_since = watched.fake_time.now

    watched.worker.wait()

    assert waits == [seconds]


def report_failure(
    watched: Worker,
    command: worker._RunningCommand,
    exit_code: int,
) -> None:
    """Let the worker report that this command has failed."""
    child_exit = ChildExit(
        name="a:1",
        exit_code=exit_code,
        output_tail="",
        log_path=None,
        survivors=(),
    )
    ended = worker._EndedCommand(command, child_exit)
    watched.ended.append(ended)
    watched._report(ended)


@pytest.mark.parametrize(
    ("attempts", "longest_ms"),
    [
        (1, 1_000),
        (2, 2_000),
        (3, 4_000),
        (4, 8_000),
        (5, 16_000),
        (6, 32_000),
        (7, 60_000),
        (8, 60_000),
        (10_000, 60_000),
    ],
)
def test_a_failed_task_is_delayed_twice_as_long_each_time_and_at_most_a_minute(
    watched: Watched, attempts: int, longest_ms: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    (command,) = watched.worker.running.values()
    command.task = replace(command.task, attempts=attempts)

    monkeypatch.setattr(random, "uniform", lambda least, _most: least)
    report_failure(watched.worker, command, exit_code=1)
    monkeypatch.setattr(random, "uniform", lambda _least, most: most)
    report_failure(watched.worker, command, exit_code=1)

    assert watched.store.delays_ms == [longest_ms // 2, longest_ms]


@pytest.mark.parametrize(("failures", "remembered"), [(100, 100), (101, 100)])
def test_the_last_hundred_failures_are_remembered(
    watched: Watched, failures: int, remembered: int
) -> None:
    (command,) = watched.worker.running.values()

    for number in range(failures):
        report_failure(watched.worker, command, exit_code=number + 1)

    kept = [failure.exit_status for failure in watched.worker.failures]
    assert kept == list(range(failures - remembered + 1, failures + 1))
