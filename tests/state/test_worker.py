"""sampletool/state/worker.py: how long a lease lasts, as the worker sees it, and what an outage does to it."""

import signal
import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import replace
from datetime import datetime
from functools import partial
from math import inf
from pathlib import Path
from threading import Thread
from types import SimpleNamespace
from typing import Any, cast

import pytest

from sampletool.kit.command_line import CommandLine, GlobalOptions
from sampletool.kit.context import Context
from sampletool.kit.contract.errors import ToolError
from sampletool.kit.safety import children as children_module
from sampletool.kit.safety.clock import boot_seconds
from sampletool.kit.safety.errors import Interrupted
from sampletool.kit.safety.signals import Signals
from sampletool.state import connect
from sampletool.state import worker as worker_module
from sampletool.state.commands.task.work import work
from sampletool.state.connect import open_store
from sampletool.state.errors import (
    OutcomeUnknown,
    StoreUnavailable,
    TasksFailed,
    TasksFailedElsewhere,
)
from sampletool.state.protocol import NewTask
from sampletool.state.store import Store
from sampletool.state.worker import Worker, WorkOptions
from tests.state.conftest import ThroughProxy
from tests.state.support.claims import claim_one
from tests.state.support.outcomes import outcome
from tests.state.support.servers import Server
from tests.state.support.store_client import make_policy
from tests.state.support.waiting import is_alive, wait_until

REPLY_SECONDS = 0.2
LONG = 3_600_000
STUBBORN = 'trap "" TERM; echo > "$TOOL_TASK_ID.ready"; until [ -e "$TOOL_TASK_ID.go" ]; do sleep 0.05; done'
"""A command that cannot be asked to end, says so, and ends with success when it may."""


class SlowToReply:
    """A store that does everything at once, and whose replies take a while."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def __getattr__(self, verb: str) -> Any:
        def ask(*args: Any, **options: Any) -> Any:
            answer = getattr(self._store, verb)(*args, **options)
            time.sleep(REPLY_SECONDS)
            return answer

        return ask


class Lasting:
    """A store whose leases last for an hour, whatever is asked for: they do not end because the machine is slow."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def __getattr__(self, verb: str) -> Any:
        def ask(*args: Any, **options: Any) -> Any:
            if "lease_ms" in options:
                options["lease_ms"] = LONG
            return getattr(self._store, verb)(*args, **options)

        return ask


class Away:
    """A store that does not answer: each question takes its time to fail."""

    def __init__(self, clock: SimpleNamespace, seconds: float) -> None:
        self._clock, self._seconds = clock, seconds

    def __getattr__(self, verb: str) -> Any:
        def ask(*_args: Any, **_options: Any) -> Any:
            self._clock.now += self._seconds
            raise StoreUnavailable("The store is away.", "Wait.")

        return ask


class Followed:
    """A store, and what happens right after it has answered one verb."""

    def __init__(self, store: Store, verb: str, deed: Callable[[], object]) -> None:
        self._store, self._verb, self._deed = store, verb, deed

    def __getattr__(self, verb: str) -> Any:
        def ask(*args: Any, **options: Any) -> Any:
            answer = getattr(self._store, verb)(*args, **options)
            if verb == self._verb:
                self._deed()
            return answer

        return ask


class Replaced:
    """A store with another function for one verb."""

    def __init__(self, store: Store, verb: str, function: Callable[..., Any]) -> None:
        self._store = store
        self._verb = verb
        self._function = function

    def __getattr__(self, verb: str) -> Any:
        if verb == self._verb:
            return self._function
        return getattr(self._store, verb)


def once(deed: Callable[[], object]) -> Callable[[], None]:
    """Return a function that does this when it is called for the first time."""
    deeds = [deed]

    def do() -> None:
        while deeds:
            deeds.pop()()

    return do


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    """What the worker and its children go by: only what sleeps makes it go on, and a test, but no slow machine."""
    fake = SimpleNamespace(now=1000.0)

    def sleep(seconds: float) -> None:
        time.sleep(seconds)
        fake.now += seconds

    fake.monotonic, fake.sleep = lambda: fake.now, sleep
    monkeypatch.setattr(worker_module, "boot_seconds", fake.monotonic)
    monkeypatch.setattr(children_module, "time", fake)
    return fake


@pytest.fixture
def worker(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Worker]:
    monkeypatch.chdir(tmp_path)
    context = Context(Signals())
    context.set_command_line(CommandLine(options=GlobalOptions(lock_timeout="100ms")))
    url = f"sqlite://{tmp_path}/state.db"
    with context.exit_stack:
        options = WorkOptions(
            queue="work",
            argv=["/bin/sleep", "600"],
            jobs=1,
            lease_ms=60_000,
            max_attempts=0,
            store_url=url,
        )
        worker = Worker(context, options)
        worker.store.task_add("work", [NewTask("x", "a")])
        yield worker


def change(worker: Worker, **options: Any) -> None:
    worker.options = replace(worker.options, **options)


def ready(directory: Path, count: int) -> None:
    wait_until(lambda: len([*directory.glob("*.ready")]) == count)


def test_a_lease_is_counted_from_when_it_was_asked_for(worker: Worker) -> None:
    """The store counts from before its answer: who counts from the answer works on when the task is another's."""
    worker.store = cast(Store, SlowToReply(worker.store))
    with worker.children:
        for _ in range(2):
            worker.turn()
            (task,) = worker.store.task_list("work", None, 0, 9)
            (one,) = worker.running.values()
            left = datetime.fromisoformat(str(task.lease_expires_at)).timestamp() - time.time()
            assert one.lease_ends_at - boot_seconds() <= left + REPLY_SECONDS / 4
            one.lease_ends_at -= 30  # in the second turn it is renewed


def test_a_renewal_that_meets_an_outage_is_tried_again(
    worker: Worker, clock: SimpleNamespace, tmp_path: Path
) -> None:
    with (
        worker.children,
        closing(sqlite3.connect(tmp_path / "state.db", isolation_level=None)) as outsider,
    ):
        worker.turn()
        (one,) = worker.running.values()
        before = one.lease_ends_at
        clock.now += 30
        outsider.execute("BEGIN EXCLUSIVE")
        worker.turn()
        outsider.execute("ROLLBACK")
        assert ([*worker.running.values()], one.lease_ends_at) == ([one], before)

        worker.turn()
        assert one.lease_ends_at > before


@pytest.mark.parametrize(("kind", "how"), [("postgres", "killed"), ("valkey", "paused")])
def test_a_worker_outlives_outages_of_a_server_and_reports_what_succeeded_meanwhile(
    worker: Worker,
    tmp_path: Path,
    breakable: Callable[[str], tuple[Server, str]],
    kind: str,
    how: str,
) -> None:
    """While it waits for tasks, and while one of its commands ends and another goes on."""
    server, url = breakable(kind)
    outage = getattr(server, how)
    worker.store = store = open_store(url, None, make_policy(patience=0.1, min_server_seconds=0.1))
    change(worker, jobs=2, argv=["/bin/sh", "-c", STUBBORN])
    outside = open_store(url, None, make_policy())
    with worker.children:
        worker.turn()
        with outage():
            worker.turn()
        assert worker.unreachable_since < inf
        outside.task_add("work", [NewTask("x", "quick"), NewTask("x", "slow")])
        turn_until(worker, lambda: len(worker.running) == 2)
        ready(tmp_path, 2)
        _, slow = worker.running.values()

        with outage():
            (tmp_path / "quick.go").touch()
            turn_until(worker, lambda: bool(worker.ended) and worker.unreachable_since < inf)
            assert [*worker.running.values()] == [slow]
        (tmp_path / "slow.go").touch()
        turn_until_all_is_reported(worker)

    assert (worker.finished, worker.lost, worker.given_back) == (2, 0, 0)
    assert [(task.status, task.attempts) for task in outside.task_list("work", None, 0, 9)] == [
        ("done", 1)
    ] * 2
    assert worker.unreachable_since == inf
    outside.close()
    store.close()


def test_while_the_store_is_away_no_command_outlives_its_lease_however_many_there_are(
    worker: Worker, clock: SimpleNamespace, tmp_path: Path
) -> None:
    """Each question takes its time to fail, and the commands ignore SIGTERM."""
    killed_at: list[float] = []
    send_signal = worker.children.send_signal

    def note(name: str, number: int) -> None:
        if number == signal.SIGKILL:
            killed_at.append(clock.now)
        send_signal(name, number)

    worker.children.send_signal = note  # type: ignore[method-assign]
    change(worker, jobs=8, lease_ms=4000, argv=["/bin/sh", "-c", STUBBORN])
    worker.store.task_add("work", [NewTask("x", f"{number}") for number in range(7)])
    with worker.children:
        worker.turn()
        lease_ends_at = min(one.lease_ends_at for one in worker.running.values())
        ready(tmp_path, 8)
        worker.store = cast(Store, Away(clock, seconds=0.5))

        while worker.running and clock.now < lease_ends_at + 10:
            outcome(worker.turn)
            clock.now += 0.1

        assert worker.lost == 8
        assert len(killed_at) == 8
        assert max(killed_at) < lease_ends_at


def test_a_stubborn_command_keeps_the_worker_from_renewing_no_other(
    worker: Worker, clock: SimpleNamespace, tmp_path: Path
) -> None:
    """One lease is lost, and its command ignores SIGTERM: the other one is renewed for longer than it lasts."""
    change(worker, jobs=2, lease_ms=4000, argv=["/bin/sh", "-c", STUBBORN])
    worker.store.task_add("work", [NewTask("x", "steady")])
    worker.store = cast(Store, Lasting(worker.store))
    with worker.children:
        worker.turn()
        ready(tmp_path, 2)
        lost, steady = worker.running.values()
        worker.store.task_release(*lost.claim, delay_ms=LONG)
        ends_at = clock.now + 3 * worker.options.lease_ms / 1000

        while clock.now < ends_at and steady in worker.running.values():
            worker.turn()
            clock.now += 0.2

        assert [*worker.running.values()] == [steady]
        (tmp_path / "steady.go").touch()
        turn_until_all_is_reported(worker)
    assert (worker.finished, worker.lost) == (1, 1)
    assert [task.attempts for task in worker.store.task_list("work", None, 0, 9)] == [1, 1]


def test_what_succeeded_while_the_worker_was_stopped_past_its_lease_is_kept(
    worker: Worker, clock: SimpleNamespace, tmp_path: Path
) -> None:
    """Nobody else has claimed it, so the store still takes it; nor does the worker claim what it has yet to report."""
    change(worker, jobs=2, argv=["/bin/sh", "-c", STUBBORN])
    worker.store.task_add("work", [NewTask("y", "b")])
    with worker.children:
        worker.turn()
        for task in ("a", "b"):
            (tmp_path / f"{task}.go").touch()
        wait_until(
            lambda: (
                not any(is_alive(child.process.pid) for child in worker.children._running.values())
            )
        )
        for one in worker.running.values():
            worker.store.task_renew(*one.claim, lease_ms=0)
        clock.now += 2 * worker.options.lease_ms / 1000

        turn_until_all_is_reported(worker)
    assert (worker.finished, worker.lost) == (2, 0)
    assert [task.attempts for task in worker.store.task_list("work", None, 0, 9)] == [1, 1]


def test_what_a_signal_keeps_from_being_started_is_given_back(worker: Worker) -> None:
    """It comes between the claim and the first command. Naive: nobody gets these tasks before their leases end."""
    change(worker, jobs=2)
    worker.store.task_add("work", [NewTask("y", "b")])
    stop = partial(worker.context.signals.receive, signal.SIGTERM)
    worker.store = cast(Store, Followed(worker.store, "task_claim", stop))

    with pytest.raises(ToolError) as interrupted:
        work(worker, until_empty=False)

    assert interrupted.value.code == "INTERRUPTED"
    assert interrupted.value.data.given_back == 2
    assert [task.status for task in worker.store.task_list("work", None, 0, 9)] == ["free", "free"]


def test_a_task_that_is_lost_in_its_last_attempt_has_failed(
    worker: Worker, clock: SimpleNamespace
) -> None:
    """Nobody else gets it any more, so a success would call it done."""
    store = worker.store
    change(worker, max_attempts=1)

    def lose() -> None:
        store.task_release("a", 1)
        clock.now += 30  # so that it is renewed

    worker.store = cast(Store, Followed(store, "task_claim", lose))

    with pytest.raises(TasksFailed) as failed:
        work(worker, until_empty=True)

    assert failed.value.context["failed"] == ["a"]
    assert (failed.value.data.lost, failed.value.data.finished) == (1, 0)


def test_a_success_that_comes_after_another_worker_has_the_task_counts_as_lost(
    worker: Worker, tmp_path: Path
) -> None:
    store = worker.store
    change(worker, argv=["/bin/sh", "-c", STUBBORN])
    with worker.children:
        worker.turn()
        (command,) = worker.running.values()
        store.task_release(*command.claim)
        elsewhere = claim_one(store, "elsewhere")
        (tmp_path / "a.go").touch()
        turn_until(worker, lambda: not worker.running and not worker.ended)

    assert (worker.finished, worker.lost) == (0, 1)
    assert store.task_finish("a", elsewhere.generation) == "updated"


def test_a_task_that_fails_elsewhere_meanwhile_is_counted(worker: Worker) -> None:
    """Naive: the worker says that nothing is left, and exits with success."""
    store = worker.store
    store.task_add("work", [NewTask("y", "b"), NewTask("z", "old")])
    claims = [claim_one(store, "elsewhere", max_attempts=1) for _ in range(3)]
    store.task_release("old", 1)
    change(worker, argv=["/bin/true"])
    store.task_add("work", [NewTask("x", "mine")])

    def fail_elsewhere() -> None:
        for claim in claims[:2]:
            store.task_release(claim.id, claim.generation)

    worker.store = cast(Store, Followed(store, "task_stats", once(fail_elsewhere)))

    with pytest.raises(TasksFailedElsewhere) as failed:
        work(worker, until_empty=True)

    # The task that had failed before is not counted.
    assert failed.value.context == {"count": 2, "elsewhere": 2, "failed": []}
    assert (failed.value.data.finished, failed.value.data.failed) == (1, 2)


def test_the_limit_of_a_task_decides_whether_it_has_failed(worker: Worker) -> None:
    """Naive: the limit of the worker decides, and the exit code is wrong."""
    store = worker.store
    store.task_release("a", claim_one(store, max_attempts=1).generation)
    store.task_add("work", [NewTask("x", "once")], max_attempts=1)
    change(worker, argv=["/bin/false"], max_attempts=5)

    with pytest.raises(TasksFailed) as failed:
        work(worker, until_empty=True)

    assert failed.value.context == {"count": 1, "failed": ["once"]}


def test_a_task_that_another_worker_finishes_after_our_last_attempt_has_not_failed(
    worker: Worker,
) -> None:
    """It has a higher limit than that of this worker."""
    store = worker.store
    store.task_add("work", [NewTask("x", "twice")], max_attempts=2)
    store.task_finish("a", claim_one(store).generation)
    change(worker, argv=["/bin/false"], max_attempts=1)

    def finish_elsewhere() -> None:
        store.task_finish("twice", claim_one(store, "elsewhere").generation)

    def free_at_once(*args: Any, **options: Any) -> Any:
        options["delay_ms"] = 0
        reply = store.task_release(*args, **options)
        finish_elsewhere()
        return reply

    worker.store = cast(Store, Replaced(store, "task_release", free_at_once))

    report = work(worker, until_empty=True)

    assert (report.finished, report.given_back, report.failed) == (0, 1, 0)


def test_a_worker_that_cannot_count_failures_says_so(
    worker: Worker, clock: SimpleNamespace
) -> None:
    change(worker, argv=["/bin/true"])
    gone = partial(setattr, worker, "store", Away(clock, seconds=1))
    worker.store = cast(Store, Followed(worker.store, "task_left", gone))

    report = work(worker, until_empty=True)

    assert report.failed is None
    assert [warning["code"] for warning in worker.context.warnings] == ["NOT_COUNTED"]


def test_a_store_that_is_away_at_the_start_is_waited_for(
    worker: Worker, clock: SimpleNamespace
) -> None:
    store = worker.store
    change(worker, argv=["/bin/true"])
    replies = iter([StoreUnavailable(store="s", reason="away")])

    def count_later(*args: Any) -> Any:
        for error in replies:
            raise error
        return store.task_stats(*args)

    worker.store = cast(Store, Replaced(store, "task_stats", count_later))

    report = work(worker, until_empty=True)

    assert (report.finished, report.failed) == (1, 0)


def test_a_task_that_is_removed_meanwhile_ends_no_other(
    worker: Worker, clock: SimpleNamespace
) -> None:
    change(worker, jobs=2, max_attempts=1)
    worker.store.task_add("work", [NewTask("y", "b")])
    with worker.children:
        worker.turn()
        worker.store.task_release("a", 1)
        assert worker.store.task_clean(0, ["failed"])[0] == 1
        clock.now += 30

        worker.turn()

        assert [one.task.id for one in worker.running.values()] == ["b"]
        assert worker.lost == 1


def test_what_was_done_is_told_also_if_the_store_goes_away_at_the_end(
    worker: Worker, clock: SimpleNamespace
) -> None:
    change(worker, argv=["/bin/true"])
    gone = partial(setattr, worker, "store", Away(clock, seconds=1))
    worker.store = cast(Store, Followed(worker.store, "task_left", gone))

    worked = work(worker, until_empty=True)

    assert (worked.finished, worked.left) == (1, 0)


def test_the_way_out_ends_however_many_claims_a_store_that_is_away_does_not_take_back(
    worker: Worker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connect, "_CLEANUP_SECONDS", 0.5)
    change(worker, jobs=16)
    worker.store.task_add("work", [NewTask("x") for _ in range(15)])
    with closing(sqlite3.connect(tmp_path / "state.db", isolation_level=None)) as outsider:
        with worker.children:
            worker.turn()
        assert len(worker.running) == 16
        outsider.execute("BEGIN EXCLUSIVE")
        began = time.monotonic()

        worker.give_all_back()

        assert time.monotonic() - began < 15
        outsider.execute("ROLLBACK")
    assert worker.given_back == 0


class LosesReplies:
    """A store that obeys, but loses its first replies to a verb."""

    def __init__(self, store: Store, verb: str, count: int) -> None:
        self._store, self._verb, self._count = store, verb, count

    def __getattr__(self, verb: str) -> Any:
        def ask(*args: Any, **options: Any) -> Any:
            reply = getattr(self._store, verb)(*args, **options)
            if verb == self._verb and self._count > 0:
                self._count -= 1
                raise OutcomeUnknown(store="s", reason="the reply was lost", repetition="unsafe")
            return reply

        return ask


def test_a_claim_whose_reply_is_lost_is_repeated_and_its_task_runs_although_it_was_its_last_attempt(
    worker: Worker,
) -> None:
    """Naive: the task has failed without having run, and the worker says that nothing is left."""
    store = worker.store
    change(worker, argv=["/bin/true"], max_attempts=1)
    worker.store = cast(Store, LosesReplies(store, "task_claim", 2))

    report = work(worker, until_empty=True)

    assert (report.finished, report.lost, report.left) == (1, 0, 0)
    assert worker.unfinished == set()
    assert [(task.status, task.attempts) for task in store.task_list("work", None, 0, 9)] == [
        ("done", 1)
    ]


class InterruptedInFlight:
    """A store that obeys one verb. A signal ends the wait for the reply, which never arrives."""

    def __init__(self, store: Store, verb: str) -> None:
        self._store = store
        self._verb = verb

    def __getattr__(self, verb: str) -> Any:
        def ask(*args: Any, **options: Any) -> Any:
            reply = getattr(self._store, verb)(*args, **options)
            if verb == self._verb:
                raise Interrupted(signal.SIGINT, uncertain_change="task claim work in s")
            return reply

        return ask


def test_a_claim_in_flight_when_a_signal_arrives_is_given_back_and_does_not_count(
    worker: Worker,
) -> None:
    """Naive: the task fails when its lease expires, although it was to be tried once."""
    store = worker.store
    store.task_add("work", [NewTask("y", "b")])
    change(worker, max_attempts=1)
    worker.store = cast(Store, InterruptedInFlight(store, "task_claim"))

    with pytest.raises(ToolError) as interrupted:
        work(worker, until_empty=True)

    assert interrupted.value.code == "INTERRUPTED"
    # Nothing is unknown any more.
    assert "outcome" not in interrupted.value.context
    assert interrupted.value.data.given_back == 1
    found = store.task_list("work", None, 0, 9)
    assert [(task.status, task.attempts) for task in found] == [("free", 0), ("free", 0)]


def test_a_claim_in_flight_that_finishes_a_task_counts_it_as_finished(worker: Worker) -> None:
    store = worker.store
    store.task_add("work", [NewTask("y", "b")])
    change(worker, argv=["/bin/true"], max_attempts=1)

    def interrupt_next() -> None:
        worker.store = cast(Store, InterruptedInFlight(store, "task_claim"))

    worker.store = cast(Store, Followed(store, "task_claim", interrupt_next))

    with pytest.raises(ToolError) as interrupted:
        work(worker, until_empty=True)

    assert (interrupted.value.data.finished, interrupted.value.data.given_back) == (1, 1)
    found = store.task_list("work", None, 0, 9)
    assert [(task.status, task.attempts) for task in found] == [("done", 1), ("free", 0)]


def test_the_outcome_stays_unknown_if_the_store_cannot_be_asked_again(
    worker: Worker,
    clock: SimpleNamespace,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    away = Away(clock, seconds=0)
    monkeypatch.setattr(worker_module, "connect_for_cleanup", lambda _context, _url: away)
    worker.store = cast(Store, InterruptedInFlight(worker.store, "task_claim"))

    with pytest.raises(ToolError) as interrupted:
        work(worker, until_empty=True)

    assert interrupted.value.context["outcome"] == "unknown"


def test_a_signal_while_the_reply_of_a_server_is_missing_leaves_the_task_free(
    worker: Worker,
    through_proxy: ThroughProxy,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The whole path: a server that has obeyed, a reply that never arrives, and Ctrl-C."""
    policy = replace(make_policy(patience=600), signals=worker.context.signals)
    behind_proxy, direct, proxy = through_proxy("swallow", "task_claim", policy=policy)
    direct.task_add("work", [NewTask("x", "a")])
    change(worker, max_attempts=1)
    worker.store = behind_proxy
    monkeypatch.setattr(worker_module, "connect_for_cleanup", lambda _context, _url: direct)

    def interrupt() -> None:
        wait_until(lambda: direct.task_show("a").task.status == "claimed")
        worker.context.signals.receive(signal.SIGINT)

    thread = Thread(target=interrupt)
    thread.start()
    with pytest.raises(ToolError) as interrupted:
        work(worker, until_empty=False)
    thread.join()

    assert proxy.struck.is_set()
    assert interrupted.value.code == "INTERRUPTED"
    assert interrupted.value.data.given_back == 1
    task = direct.task_show("a").task
    assert (task.status, task.attempts) == ("free", 0)


def test_a_task_that_a_signal_keeps_from_being_started_has_not_used_its_attempt(
    worker: Worker,
) -> None:
    change(worker, max_attempts=1)
    store = worker.store
    stop = partial(worker.context.signals.receive, signal.SIGTERM)
    worker.store = cast(Store, Followed(store, "task_claim", stop))

    with pytest.raises(ToolError):
        work(worker, until_empty=False)

    (task,) = store.task_list("work", None, 0, 9)
    assert (task.status, task.attempts) == ("free", 0)


def test_a_task_whose_command_was_interrupted_has_used_its_attempt(worker: Worker) -> None:
    """Half of it may have happened."""
    change(worker, max_attempts=1)
    store = worker.store
    with worker.children:
        worker.turn()

    worker.give_all_back()

    (task,) = store.task_list("work", None, 0, 9)
    assert (task.status, task.attempts) == ("failed", 1)


def test_a_task_that_is_claimed_too_late_to_be_started_is_given_back(
    worker: Worker,
    clock: SimpleNamespace,
) -> None:
    """Its reply was missing for so long that the lease is nearly over."""
    change(worker, argv=["/bin/true"], max_attempts=1)
    store = worker.store

    def wait_long() -> None:
        clock.now += 55

    worker.store = cast(Store, Followed(store, "task_claim", once(wait_long)))

    report = work(worker, until_empty=True)

    assert (report.finished, report.given_back, report.lost) == (1, 1, 0)
    assert store.task_show("a").task.attempts == 1


def test_a_reply_that_finishes_and_claims_is_lost_and_both_count_once(worker: Worker) -> None:
    store = worker.store
    store.task_add("work", [NewTask("y", "b")])
    change(worker, argv=["/bin/true"], max_attempts=1)
    with worker.children:
        worker.turn()
        worker.store = cast(Store, LosesReplies(store, "task_claim", 1))
        turn_until(worker, lambda: worker.finished == 2)

    assert [(task.status, task.attempts) for task in store.task_list("work", None, 0, 9)] == [
        ("done", 1)
    ] * 2


def test_a_cancelled_task_ends_its_command_at_the_next_renewal(
    worker: Worker, clock: SimpleNamespace
) -> None:
    with worker.children:
        worker.turn()
        worker.store.task_cancel("a")
        clock.now += 30

        worker.turn()

        assert worker.running == {}
    assert worker.lost == 1
    assert [task.status for task in worker.store.task_list("work", None, 0, 9)] == ["cancelled"]


def test_a_command_does_not_outlive_its_lease_while_the_machine_is_suspended(
    worker: Worker, monkeypatch: pytest.MonkeyPatch
) -> None:
    """CLOCK_MONOTONIC stands still meanwhile. The clock since the boot does not."""
    with worker.children:
        worker.turn()
        monkeypatch.setattr(worker_module, "boot_seconds", lambda: boot_seconds() + 120)
        worker.store = cast(Store, Away(SimpleNamespace(now=0.0), 0.0))

        worker._end_commands_in_time()

        assert worker.running == {}
    assert worker.lost == 1


def turn_until(worker: Worker, is_so: Callable[[], bool]) -> None:
    while not is_so():
        worker.turn()
        worker.wait()


def turn_until_all_is_reported(worker: Worker) -> None:
    turn_until(worker, lambda: not worker.running and not worker.ended)
