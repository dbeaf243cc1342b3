"""sampletool/state/worker.py: leases as the worker sees them, outages, and lost replies."""

import signal
import sqlite3
import stat
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import replace
from datetime import datetime
from functools import partial
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
from sampletool.state.protocol import NewTask, TaskState
from sampletool.state.report import FailedAttempt, WorkReport
from sampletool.state.store import Store
from sampletool.state.worker import Worker, WorkOptions
from tests.state.conftest import ThroughProxy
from tests.state.support.claims import LONG, claim_one
from tests.state.support.outcomes import outcome
from tests.state.support.servers import Server
from tests.state.support.store_client import make_policy
from tests.state.support.waiting import is_alive, wait_for_pid, wait_until

REPLY_SECONDS = 0.2

HALF_OF_A_LEASE_SECONDS = 30.0
"""After this time, the worker renews the lease of 60 s that it has by default in these tests."""

STUBBORN = (
    'trap "" TERM; echo > "$TOOL_TASK_ID.ready"; '
    'until [ -e "$TOOL_TASK_ID.go" ]; do sleep 0.05; done'
)
"""A command that ignores SIGTERM. It creates `ID.ready`, and succeeds when `ID.go` exists."""


# Stores that behave differently


class WrappedStore:
    """A store that passes each verb on. A subclass changes what happens."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def __getattr__(self, verb: str) -> Callable[..., Any]:
        return partial(self.call, verb)

    def call(self, verb: str, *args: Any, **options: Any) -> Any:
        return getattr(self._store, verb)(*args, **options)


class SlowToReply(WrappedStore):
    """A store that does everything at once, and whose replies take a while."""

    def call(self, verb: str, *args: Any, **options: Any) -> Any:
        reply = super().call(verb, *args, **options)
        time.sleep(REPLY_SECONDS)
        return reply


class WithLongLeases(WrappedStore):
    """A store whose leases last for an hour. So none expires because the machine is slow."""

    def call(self, verb: str, *args: Any, **options: Any) -> Any:
        if "lease_ms" in options:
            options["lease_ms"] = LONG
        return super().call(verb, *args, **options)


class Unreachable(WrappedStore):
    """A store that never replies: each request takes its time to fail."""

    def __init__(self, store: Store, clock: SimpleNamespace, seconds: float) -> None:
        super().__init__(store)
        self._clock = clock
        self._seconds = seconds

    def call(self, verb: str, *args: Any, **options: Any) -> Any:
        self._clock.now += self._seconds
        raise StoreUnavailable(store="s", reason="it is unreachable")


class Followed(WrappedStore):
    """A store, and something that happens right after each reply to one verb."""

    def __init__(self, store: Store, verb: str, action: Callable[[], object]) -> None:
        super().__init__(store)
        self._verb = verb
        self._action = action

    def call(self, verb: str, *args: Any, **options: Any) -> Any:
        reply = super().call(verb, *args, **options)
        if verb == self._verb:
            self._action()
        return reply


class Replaced(WrappedStore):
    """A store with another function for one verb."""

    def __init__(self, store: Store, verb: str, function: Callable[..., Any]) -> None:
        super().__init__(store)
        self._verb = verb
        self._function = function

    def call(self, verb: str, *args: Any, **options: Any) -> Any:
        if verb == self._verb:
            return self._function(*args, **options)
        return super().call(verb, *args, **options)


class LosesReplies(WrappedStore):
    """A store that obeys, but loses its first replies to a verb."""

    def __init__(self, store: Store, verb: str, count: int) -> None:
        super().__init__(store)
        self._verb = verb
        self._count = count

    def call(self, verb: str, *args: Any, **options: Any) -> Any:
        reply = super().call(verb, *args, **options)
        if verb == self._verb and self._count > 0:
            self._count -= 1
            raise OutcomeUnknown(store="s", reason="the reply was lost", repetition="unsafe")
        return reply


class InterruptedInFlight(WrappedStore):
    """A store that obeys one verb. A signal ends the wait for the reply, which never arrives."""

    def __init__(self, store: Store, verb: str) -> None:
        super().__init__(store)
        self._verb = verb

    def call(self, verb: str, *args: Any, **options: Any) -> Any:
        reply = super().call(verb, *args, **options)
        if verb == self._verb:
            raise Interrupted(signal.SIGINT, uncertain_change="task claim work in s")
        return reply


# A worker whose clock the tests can move


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    """Return the clock of the worker and of its commands. A slow machine does not move it.

    Only a test moves it, or a sleep of the code that is tested.
    """
    fake = SimpleNamespace(now=1000.0)

    def sleep(seconds: float) -> None:
        time.sleep(seconds)
        fake.now += seconds

    fake.monotonic = lambda: fake.now
    fake.sleep = sleep
    monkeypatch.setattr(worker_module, "boot_seconds", fake.monotonic)
    monkeypatch.setattr(children_module, "time", fake)
    return fake


@pytest.fixture
def worker(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Worker]:
    """Yield a worker that can run one command at a time, and a queue with the task `a`."""
    monkeypatch.chdir(tmp_path)
    context = Context(Signals())
    context.set_command_line(CommandLine(options=GlobalOptions(lock_timeout="100ms")))
    with context.exit_stack:
        options = WorkOptions(
            queue="work",
            argv=["/bin/sleep", "600"],
            jobs=1,
            lease_ms=60_000,
            max_attempts=0,
            store_url=f"sqlite://{tmp_path}/state.db",
        )
        worker = Worker(context, options)
        worker.store.task_add("work", [NewTask("x", "a")])
        yield worker


@pytest.fixture
def notices(worker: Worker, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return the lines that the worker prints for a person who watches. More follow."""
    lines: list[str] = []
    monkeypatch.setattr(worker.context, "progress", lines.append)
    return lines


def change_options(worker: Worker, **options: Any) -> None:
    worker.options = replace(worker.options, **options)


def use(worker: Worker, store: WrappedStore) -> None:
    """Let the worker use this store from now on."""
    worker.store = cast(Store, store)


def take_turn(worker: Worker) -> None:
    assert outcome(worker.turn) is None


def work_until_empty(worker: Worker) -> WorkReport:
    """Return the report of a worker whose tasks have all been done."""
    report = outcome(lambda: work(worker, until_empty=True))
    assert isinstance(report, WorkReport), report
    return report


def error_of_work(
    worker: Worker,
    error_class: type[ToolError],
    *,
    until_empty: bool,
) -> ToolError:
    """Return the error of a worker that was interrupted, or whose tasks have failed."""
    result: object = None
    try:
        result = work(worker, until_empty=until_empty)
    except Exception as error:
        result = error
    assert isinstance(result, error_class), result
    return result


def turn_until(worker: Worker, is_reached: Callable[[], bool]) -> None:
    while not is_reached():
        take_turn(worker)
        worker.wait()


def turn_until_all_is_reported(worker: Worker) -> None:
    turn_until(worker, lambda: not worker.running and not worker.ended)


def wait_until_ready(directory: Path, count: int) -> None:
    """Wait until this many stubborn commands ignore SIGTERM."""
    wait_until(lambda: len(list(directory.glob("*.ready"))) == count)


def is_dead_soon(pid: int) -> bool:
    """Return whether a process that was sent SIGKILL exits. The kernel needs a moment for that."""
    try:
        wait_until(lambda: not is_alive(pid), seconds=10)
    except TimeoutError:
        return False
    return True


def once(action: Callable[[], object]) -> Callable[[], None]:
    """Return a function that does this only when it is called for the first time."""
    actions = [action]

    def act() -> None:
        while actions:
            actions.pop()()

    return act


def tasks_of(store: Store) -> list[TaskState]:
    return store.task_list("work", None, 0, 9)


def statuses_and_attempts(store: Store) -> list[tuple[str, int]]:
    return [(task.status, task.attempts) for task in tasks_of(store)]


# Leases


def test_a_lease_is_counted_from_the_request_and_not_from_the_reply(worker: Worker) -> None:
    """The store counts from before its reply.

    A worker that counts from the reply runs a command when its task belongs to another worker.
    """
    use(worker, SlowToReply(worker.store))

    with worker.children:
        # The first turn claims the task, and the second one renews its lease.
        for _ in range(2):
            take_turn(worker)

            (task,) = tasks_of(worker.store)
            (command,) = worker.running.values()
            expires_at = datetime.fromisoformat(str(task.lease_expires_at)).timestamp()
            seconds_in_store = expires_at - time.time()
            seconds_in_worker = command.lease_ends_at - boot_seconds()
            assert seconds_in_worker <= seconds_in_store + REPLY_SECONDS / 4

            command.lease_ends_at -= HALF_OF_A_LEASE_SECONDS


def test_a_renewal_that_meets_an_outage_is_tried_again(
    worker: Worker,
    clock: SimpleNamespace,
    tmp_path: Path,
) -> None:
    database = sqlite3.connect(tmp_path / "state.db", isolation_level=None)
    with worker.children, closing(database) as outsider:
        first_end = clock.now + worker.options.lease_ms / 1000
        take_turn(worker)
        (command,) = worker.running.values()
        assert command.lease_ends_at == first_end
        clock.now += HALF_OF_A_LEASE_SECONDS

        outsider.execute("BEGIN EXCLUSIVE")
        take_turn(worker)
        outsider.execute("ROLLBACK")

        assert list(worker.running.values()) == [command]
        assert command.lease_ends_at == first_end

        take_turn(worker)

        assert command.lease_ends_at > first_end
        assert command.lease_ends_at <= clock.now + worker.options.lease_ms / 1000


def test_a_command_does_not_outlive_its_lease_while_the_machine_is_suspended(
    worker: Worker,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """CLOCK_MONOTONIC stands still meanwhile. The clock since the boot does not."""
    with worker.children:
        take_turn(worker)
        monkeypatch.setattr(worker_module, "boot_seconds", lambda: boot_seconds() + 120)
        use(worker, Unreachable(worker.store, SimpleNamespace(now=0.0), 0.0))

        worker._end_commands_in_time()

        assert worker.running == {}
    assert worker.lost == 1


def test_a_task_that_is_claimed_too_late_to_be_started_is_given_back(
    worker: Worker,
    clock: SimpleNamespace,
    notices: list[str],
) -> None:
    """Its reply was missing for so long that the lease is nearly over."""
    change_options(worker, argv=["/bin/true"], max_attempts=1)
    store = worker.store

    def wait_long() -> None:
        clock.now += 55

    use(worker, Followed(store, "task_claim", once(wait_long)))

    report = work_until_empty(worker)

    assert (report.finished, report.given_back, report.lost) == (1, 1, 0)
    assert store.task_show("a").task.attempts == 1
    assert notices[0] == "a: the lease is about to end. The task is given back"


def test_a_stubborn_command_keeps_the_worker_from_renewing_no_other_lease(
    worker: Worker,
    clock: SimpleNamespace,
    tmp_path: Path,
) -> None:
    """One lease is lost, and its command ignores SIGTERM. The other lease is renewed meanwhile."""
    change_options(worker, jobs=2, lease_ms=4000, argv=["/bin/sh", "-c", STUBBORN])
    worker.store.task_add("work", [NewTask("x", "steady")])
    use(worker, WithLongLeases(worker.store))
    with worker.children:
        take_turn(worker)
        wait_until_ready(tmp_path, 2)
        lost, steady = worker.running.values()
        worker.store.task_release(*lost.claim, delay_ms=LONG)
        ends_at = clock.now + 3 * worker.options.lease_ms / 1000

        while clock.now < ends_at and steady in worker.running.values():
            take_turn(worker)
            clock.now += 0.2

        assert list(worker.running.values()) == [steady]

        (tmp_path / "steady.go").touch()
        turn_until_all_is_reported(worker)

    assert (worker.finished, worker.lost) == (1, 1)
    assert [task.attempts for task in tasks_of(worker.store)] == [1, 1]


def test_a_cancelled_task_ends_its_command_at_the_next_renewal(
    worker: Worker,
    clock: SimpleNamespace,
    notices: list[str],
) -> None:
    with worker.children:
        take_turn(worker)
        (command,) = worker.running.values()
        worker.store.task_cancel("a")
        clock.now += HALF_OF_A_LEASE_SECONDS

        take_turn(worker)

        assert worker.running == {}
    assert worker.lost == 1
    assert not command.body_file.exists()
    assert notices[1:] == ["a: the lease was lost, and the command was killed"]
    assert [task.status for task in tasks_of(worker.store)] == ["cancelled"]


def test_a_task_that_is_removed_while_it_runs_ends_no_other_command(
    worker: Worker,
    clock: SimpleNamespace,
) -> None:
    change_options(worker, jobs=2, max_attempts=1)
    worker.store.task_add("work", [NewTask("y", "b")])
    with worker.children:
        take_turn(worker)
        worker.store.task_release("a", 1)
        removed, _cursor = worker.store.task_clean(0, ["failed"])
        clock.now += HALF_OF_A_LEASE_SECONDS

        take_turn(worker)

        assert removed == 1
        assert [command.task.id for command in worker.running.values()] == ["b"]
        assert worker.lost == 1


# Outages


@pytest.mark.parametrize(("kind", "how"), [("postgres", "killed"), ("valkey", "paused")])
def test_a_worker_outlives_outages_of_a_server_and_reports_what_succeeded_meanwhile(
    worker: Worker,
    tmp_path: Path,
    breakable: Callable[[str], tuple[Server, str]],
    kind: str,
    how: str,
) -> None:
    """The first outage comes while it waits for tasks, the second one while commands run."""
    server, url = breakable(kind)
    outage = getattr(server, how)
    impatient = make_policy(patience=0.1, min_server_seconds=0.1)
    worker.store = store = open_store(url, None, impatient)
    change_options(worker, jobs=2, argv=["/bin/sh", "-c", STUBBORN])
    outside = open_store(url, None, make_policy())
    with worker.children:
        take_turn(worker)

        with outage():
            take_turn(worker)

        assert not worker.is_store_reachable

        outside.task_add("work", [NewTask("x", "quick"), NewTask("x", "slow")])
        turn_until(worker, lambda: len(worker.running) == 2)
        wait_until_ready(tmp_path, 2)
        _quick, slow = worker.running.values()

        with outage():
            (tmp_path / "quick.go").touch()
            turn_until(worker, lambda: bool(worker.ended) and not worker.is_store_reachable)

            assert list(worker.running.values()) == [slow]

        (tmp_path / "slow.go").touch()
        turn_until_all_is_reported(worker)

    assert (worker.finished, worker.lost, worker.given_back) == (2, 0, 0)
    assert statuses_and_attempts(outside) == [("done", 1), ("done", 1)]
    assert worker.unreachable_since is None
    outside.close()
    store.close()


def test_while_the_store_is_away_no_command_outlives_its_lease_however_many_there_are(
    worker: Worker,
    clock: SimpleNamespace,
    tmp_path: Path,
) -> None:
    """Each request takes its time to fail, and the commands ignore SIGTERM."""
    killed_at: list[float] = []
    send_signal = worker.children.send_signal

    def note(name: str, number: int) -> None:
        if number == signal.SIGKILL:
            killed_at.append(clock.now)
        send_signal(name, number)

    worker.children.send_signal = note  # type: ignore[method-assign]
    change_options(worker, jobs=8, lease_ms=4000, argv=["/bin/sh", "-c", STUBBORN])
    worker.store.task_add("work", [NewTask("x", f"{number}") for number in range(7)])
    with worker.children:
        take_turn(worker)
        first_end = min(command.lease_ends_at for command in worker.running.values())
        wait_until_ready(tmp_path, 8)
        use(worker, Unreachable(worker.store, clock, seconds=0.5))

        while worker.running and clock.now < first_end + 10:
            outcome(worker.turn)
            clock.now += 0.1

        assert worker.lost == 8
        assert len(killed_at) == 8
        assert max(killed_at) < first_end


def test_a_success_is_kept_although_the_worker_was_stopped_past_its_lease(
    worker: Worker,
    clock: SimpleNamespace,
    tmp_path: Path,
) -> None:
    """Nobody else has claimed the tasks, so the store accepts the reports.

    Until then, the worker claims nothing: it could get the same tasks again.
    """
    change_options(worker, jobs=2, argv=["/bin/sh", "-c", STUBBORN])
    worker.store.task_add("work", [NewTask("y", "b")])
    with worker.children:
        take_turn(worker)
        (tmp_path / "a.go").touch()
        (tmp_path / "b.go").touch()
        pids = [child.process.pid for child in worker.children._running.values()]
        wait_until(lambda: not any(is_alive(pid) for pid in pids))
        for command in worker.running.values():
            worker.store.task_renew(*command.claim, lease_ms=0)
        clock.now += 2 * worker.options.lease_ms / 1000

        turn_until_all_is_reported(worker)

    assert (worker.finished, worker.lost) == (2, 0)
    assert [task.attempts for task in tasks_of(worker.store)] == [1, 1]


def test_a_store_that_is_unreachable_at_the_start_is_waited_for(
    worker: Worker,
    clock: SimpleNamespace,
) -> None:
    store = worker.store
    change_options(worker, argv=["/bin/true"])
    failures = [StoreUnavailable(store="s", reason="it is unreachable")]

    def count_later(*args: Any) -> Any:
        if failures:
            raise failures.pop()
        return store.task_stats(*args)

    use(worker, Replaced(store, "task_stats", count_later))

    report = work_until_empty(worker)

    assert (report.finished, report.failed) == (1, 0)


def test_finished_tasks_are_reported_although_the_store_becomes_unreachable_at_the_end(
    worker: Worker,
    clock: SimpleNamespace,
) -> None:
    change_options(worker, argv=["/bin/true"])
    store = worker.store
    unreachable = Unreachable(store, clock, seconds=1)
    use(worker, Followed(store, "task_left", partial(use, worker, unreachable)))

    report = work_until_empty(worker)

    assert (report.finished, report.left) == (1, 0)


def test_a_worker_that_cannot_count_failures_warns(worker: Worker, clock: SimpleNamespace) -> None:
    change_options(worker, argv=["/bin/true"])
    store = worker.store
    unreachable = Unreachable(store, clock, seconds=1)
    use(worker, Followed(store, "task_left", partial(use, worker, unreachable)))

    report = work_until_empty(worker)

    assert report.failed is None
    assert [warning["code"] for warning in worker.context.warnings] == ["NOT_COUNTED"]


def test_a_worker_exits_in_time_however_many_claims_an_unreachable_store_does_not_take_back(
    worker: Worker,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(connect, "_CLEANUP_SECONDS", 0.5)
    change_options(worker, jobs=16)
    worker.store.task_add("work", [NewTask("x") for _ in range(15)])
    with closing(sqlite3.connect(tmp_path / "state.db", isolation_level=None)) as outsider:
        with worker.children:
            take_turn(worker)
        assert len(worker.running) == 16
        outsider.execute("BEGIN EXCLUSIVE")
        started_at = time.monotonic()

        assert outcome(worker.give_all_back) is None

        assert time.monotonic() - started_at < 15
        outsider.execute("ROLLBACK")
    assert worker.given_back == 0


# Failures


def test_a_task_that_is_lost_in_its_last_attempt_has_failed(
    worker: Worker,
    clock: SimpleNamespace,
) -> None:
    """Nobody else gets it any more. A success would say that it is done."""
    store = worker.store
    change_options(worker, max_attempts=1)

    def lose() -> None:
        store.task_release("a", 1)
        # Now the worker renews the lease, and learns that it is lost.
        clock.now += HALF_OF_A_LEASE_SECONDS

    use(worker, Followed(store, "task_claim", lose))

    failed = error_of_work(worker, TasksFailed, until_empty=True)

    assert failed.context["failed"] == ["a"]
    assert (failed.data.lost, failed.data.finished) == (1, 0)


def test_a_success_that_comes_after_another_worker_has_the_task_counts_as_lost(
    worker: Worker,
    tmp_path: Path,
    notices: list[str],
) -> None:
    store = worker.store
    change_options(worker, argv=["/bin/sh", "-c", STUBBORN])
    with worker.children:
        take_turn(worker)
        (command,) = worker.running.values()
        store.task_release(*command.claim)
        elsewhere = claim_one(store, "elsewhere")

        (tmp_path / "a.go").touch()
        turn_until_all_is_reported(worker)

    assert (worker.finished, worker.lost) == (0, 1)
    assert not command.body_file.exists()
    assert notices == [
        "a: started, attempt 1",
        "a: too late: another worker may have claimed the task",
    ]
    assert store.task_finish("a", elsewhere.generation) == "updated"


def test_the_end_of_a_command_whose_task_was_removed_counts_as_lost(
    worker: Worker,
    tmp_path: Path,
) -> None:
    store = worker.store
    store.task_add("work", [NewTask("y", "b")])
    script = f'{STUBBORN}; [ "$TOOL_TASK_ID" = a ]'
    change_options(worker, jobs=2, argv=["/bin/sh", "-c", script])
    with worker.children:
        take_turn(worker)
        pids = [child.process.pid for child in worker.children._running.values()]
        for task_id in ("a", "b"):
            store.task_cancel(task_id)
            (tmp_path / f"{task_id}.go").touch()
        store.task_clean(0, ["cancelled"])
        wait_until(lambda: not any(is_alive(pid) for pid in pids))

        turn_until_all_is_reported(worker)

    assert tasks_of(store) == []
    assert (worker.finished, worker.given_back, worker.lost) == (0, 0, 2)


def test_a_worker_prints_how_each_command_ended(worker: Worker, notices: list[str]) -> None:
    store = worker.store
    store.task_add("work", [NewTask("y", "b")])
    script = 'echo oops; [ "$TOOL_TASK_ID" = a ]'
    change_options(worker, argv=["/bin/sh", "-c", script], max_attempts=1)

    error = error_of_work(worker, TasksFailed, until_empty=True)

    assert notices == [
        "a: started, attempt 1",
        "a: done",
        "b: started, attempt 1",
        "b: exit code 1, given back",
    ]
    assert error.data.logs == str(worker._logs)
    assert stat.S_IMODE(worker._logs.stat().st_mode) == 0o700
    (failure,) = error.data.failures
    log = worker._logs / "b.1.log"
    assert failure == FailedAttempt(
        id="b",
        attempts=1,
        exit_status=1,
        tail="oops\n",
        output_bytes=None,
        log=str(log),
    )
    assert list(worker._scratch.iterdir()) == []


def test_a_command_that_writes_nothing_has_no_log(worker: Worker) -> None:
    change_options(worker, argv=["/bin/false"], max_attempts=1)

    error = error_of_work(worker, TasksFailed, until_empty=True)

    assert error.data.logs is None
    assert [failure.log for failure in error.data.failures] == [None]


def test_a_program_that_cannot_be_started_fails_like_in_a_shell(
    worker: Worker,
    tmp_path: Path,
) -> None:
    change_options(worker, argv=[str(tmp_path)], max_attempts=1)

    error = error_of_work(worker, TasksFailed, until_empty=True)

    (failure,) = error.data.failures
    assert (failure.exit_status, failure.tail) == (126, f"{tmp_path}: Permission denied\n")
    assert error.data.given_back == 1


def test_a_task_that_fails_elsewhere_meanwhile_is_counted(worker: Worker) -> None:
    """Naive: the worker says that nothing is left, and exits with success."""
    store = worker.store
    store.task_add("work", [NewTask("y", "b"), NewTask("z", "old")])
    claims = [claim_one(store, "elsewhere", max_attempts=1) for _ in range(3)]
    # This task has failed before the worker starts.
    store.task_release("old", 1)
    change_options(worker, argv=["/bin/true"])
    store.task_add("work", [NewTask("x", "mine")])

    def fail_elsewhere() -> None:
        for claim in claims[:2]:
            store.task_release(claim.id, claim.generation)

    use(worker, Followed(store, "task_stats", once(fail_elsewhere)))

    failed = error_of_work(worker, TasksFailedElsewhere, until_empty=True)

    assert failed.context == {"count": 2, "elsewhere": 2, "failed": []}
    assert (failed.data.finished, failed.data.failed) == (1, 2)


def test_the_limit_of_a_task_decides_whether_it_has_failed(worker: Worker) -> None:
    """Naive: the limit of the worker decides, and the exit code is wrong."""
    store = worker.store
    store.task_release("a", claim_one(store, max_attempts=1).generation)
    store.task_add("work", [NewTask("x", "once")], max_attempts=1)
    change_options(worker, argv=["/bin/false"], max_attempts=5)

    failed = error_of_work(worker, TasksFailed, until_empty=True)

    assert failed.context == {"count": 1, "failed": ["once"]}


def test_a_task_that_another_worker_finishes_after_our_last_attempt_has_not_failed(
    worker: Worker,
) -> None:
    """It has a higher limit than that of this worker."""
    store = worker.store
    store.task_add("work", [NewTask("x", "twice")], max_attempts=2)
    store.task_finish("a", claim_one(store).generation)
    change_options(worker, argv=["/bin/false"], max_attempts=1)

    def release_and_finish_elsewhere(*args: Any, **options: Any) -> Any:
        options["delay_ms"] = 0
        reply = store.task_release(*args, **options)
        store.task_finish("twice", claim_one(store, "elsewhere").generation)
        return reply

    use(worker, Replaced(store, "task_release", release_and_finish_elsewhere))

    report = work_until_empty(worker)

    assert (report.finished, report.given_back, report.failed) == (0, 1, 0)


# Lost replies


def test_a_claim_whose_reply_is_lost_is_repeated_and_its_task_runs_although_it_was_its_last_attempt(
    worker: Worker,
) -> None:
    """Naive: the task has failed without having run, and the worker says that nothing is left."""
    store = worker.store
    change_options(worker, argv=["/bin/true"], max_attempts=1)
    use(worker, LosesReplies(store, "task_claim", 2))

    report = work_until_empty(worker)

    assert (report.finished, report.lost, report.left) == (1, 0, 0)
    assert worker.unfinished == set()
    assert statuses_and_attempts(store) == [("done", 1)]


def test_a_reply_that_finishes_and_claims_is_lost_and_both_count_once(worker: Worker) -> None:
    store = worker.store
    store.task_add("work", [NewTask("y", "b")])
    change_options(worker, argv=["/bin/true"], max_attempts=1)
    with worker.children:
        take_turn(worker)
        use(worker, LosesReplies(store, "task_claim", 1))

        turn_until(worker, lambda: worker.finished == 2)

    assert statuses_and_attempts(store) == [("done", 1), ("done", 1)]


# Signals


def test_a_worker_that_exits_kills_a_stubborn_command_itself(
    worker: Worker,
    tmp_path: Path,
) -> None:
    """The search for strays would end the command as well, but it works only on some systems."""
    change_options(worker, argv=["/bin/sh", "-c", STUBBORN])
    with worker.children as children:
        take_turn(worker)
        wait_until_ready(tmp_path, 1)
        (child,) = children._running.values()
        children._grace_seconds = 0.1

    assert not is_alive(child.process.pid)
    assert worker.children.strays == []


def test_a_command_that_loses_its_lease_is_killed_with_all_that_it_has_started(
    worker: Worker,
    clock: SimpleNamespace,
    tmp_path: Path,
) -> None:
    change_options(worker, argv=["/bin/sh", "-c", "sleep 600 & echo $! > pid; wait"])
    with worker.children as children:
        take_turn(worker)
        (child,) = children._running.values()
        pid = wait_for_pid(tmp_path / "pid")
        worker.store.task_cancel("a")
        clock.now += HALF_OF_A_LEASE_SECONDS

        take_turn(worker)

        assert is_dead_soon(child.process.pid)
        assert is_dead_soon(pid)


def test_a_worker_that_exits_prints_what_it_could_not_give_back(
    worker: Worker,
    notices: list[str],
    clock: SimpleNamespace,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    unreachable = Unreachable(worker.store, clock, seconds=0)
    monkeypatch.setattr(worker_module, "connect_for_cleanup", lambda _context, _url: unreachable)
    with worker.children:
        take_turn(worker)
    notices.clear()

    assert outcome(worker.give_all_back) is None

    reason = "Cannot reach s: it is unreachable. Nothing was changed."
    assert notices == [f"a: not given back: {reason}"]
    assert list(worker.running) == ["a:1"]
    assert not worker.is_settled


def test_tasks_that_a_signal_keeps_from_being_started_are_given_back(worker: Worker) -> None:
    """The signal comes between the claim and the first command.

    Naive: nobody gets these tasks before their leases expire.
    """
    change_options(worker, jobs=2)
    worker.store.task_add("work", [NewTask("y", "b")])
    stop = partial(worker.context.signals.receive, signal.SIGTERM)
    store = worker.store
    use(worker, Followed(store, "task_claim", stop))

    interrupted = error_of_work(worker, ToolError, until_empty=False)

    assert interrupted.code == "INTERRUPTED"
    assert interrupted.data.given_back == 2
    assert [task.status for task in tasks_of(store)] == ["free", "free"]


def test_a_task_that_a_signal_keeps_from_being_started_has_not_used_its_attempt(
    worker: Worker,
) -> None:
    change_options(worker, max_attempts=1)
    store = worker.store
    stop = partial(worker.context.signals.receive, signal.SIGTERM)
    use(worker, Followed(store, "task_claim", stop))

    error_of_work(worker, ToolError, until_empty=False)

    assert statuses_and_attempts(store) == [("free", 0)]


def test_a_task_whose_command_was_interrupted_has_used_its_attempt(worker: Worker) -> None:
    """Half of it may have happened."""
    change_options(worker, max_attempts=1)
    store = worker.store
    with worker.children:
        take_turn(worker)

    assert outcome(worker.give_all_back) is None

    assert statuses_and_attempts(store) == [("failed", 1)]


def test_a_claim_in_flight_when_a_signal_arrives_is_given_back_and_does_not_count(
    worker: Worker,
) -> None:
    """Naive: the task fails when its lease expires, although it was to be tried once."""
    store = worker.store
    store.task_add("work", [NewTask("y", "b")])
    change_options(worker, max_attempts=1)
    use(worker, InterruptedInFlight(store, "task_claim"))

    interrupted = error_of_work(worker, ToolError, until_empty=True)

    assert interrupted.code == "INTERRUPTED"
    # Nothing is unknown any more.
    assert "outcome" not in interrupted.context
    assert interrupted.data.given_back == 1
    assert statuses_and_attempts(store) == [("free", 0), ("free", 0)]


def test_a_claim_in_flight_that_finishes_a_task_counts_it_as_finished(worker: Worker) -> None:
    store = worker.store
    store.task_add("work", [NewTask("y", "b")])
    change_options(worker, argv=["/bin/true"], max_attempts=1)
    interrupted_next = InterruptedInFlight(store, "task_claim")
    use(worker, Followed(store, "task_claim", partial(use, worker, interrupted_next)))

    interrupted = error_of_work(worker, ToolError, until_empty=True)

    assert (interrupted.data.finished, interrupted.data.given_back) == (1, 1)
    assert statuses_and_attempts(store) == [("done", 1), ("free", 0)]


def test_the_outcome_stays_unknown_if_the_store_cannot_be_asked_again(
    worker: Worker,
    clock: SimpleNamespace,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    unreachable = Unreachable(worker.store, clock, seconds=0)
    monkeypatch.setattr(worker_module, "connect_for_cleanup", lambda _context, _url: unreachable)
    use(worker, InterruptedInFlight(worker.store, "task_claim"))

    interrupted = error_of_work(worker, ToolError, until_empty=True)

    assert interrupted.context["outcome"] == "unknown"


def test_a_signal_while_the_reply_of_a_server_is_missing_leaves_the_task_free(
    worker: Worker,
    through_proxy: ThroughProxy,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The whole path: a server that has obeyed, a reply that never arrives, and Ctrl-C."""
    policy = replace(make_policy(patience=600), signals=worker.context.signals)
    behind_proxy, direct, proxy = through_proxy("swallow", "task_claim", policy=policy)
    direct.task_add("work", [NewTask("x", "a")])
    change_options(worker, max_attempts=1)
    worker.store = behind_proxy
    monkeypatch.setattr(worker_module, "connect_for_cleanup", lambda _context, _url: direct)

    def interrupt() -> None:
        wait_until(lambda: direct.task_show("a").task.status == "claimed")
        worker.context.signals.receive(signal.SIGINT)

    thread = Thread(target=interrupt)
    thread.start()
    interrupted = error_of_work(worker, ToolError, until_empty=False)
    thread.join()

    assert proxy.struck.is_set()
    assert interrupted.code == "INTERRUPTED"
    assert interrupted.data.given_back == 1
    task = direct.task_show("a").task
    assert (task.status, task.attempts) == ("free", 0)
