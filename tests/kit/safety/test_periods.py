"""Test each period at its real length: what happens just before its end, and just after it.

No test waits for one. A clock stands still unless what waits moves it, so these tests are exact on
a machine of any speed.
"""

import fcntl
import logging
import math
import os
import signal
import subprocess
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from sampletool.kit.call_log import append
from sampletool.kit.commands import log as log_command
from sampletool.kit.context import PATIENT_WAIT_SECONDS, Context
from sampletool.kit.contract.lock_held import estimate_retry_ms
from sampletool.kit.places import state_directory
from sampletool.kit.safety import children as children_module
from sampletool.kit.safety import lock as lock_module
from sampletool.kit.safety import lock_owners, lock_record, orphans
from sampletool.kit.safety import signals as signals_module
from sampletool.kit.safety.children import Children
from sampletool.kit.safety.clock import utc
from sampletool.kit.safety.errors import DeadlineExceeded, LockTimeout
from sampletool.kit.safety.holder import Owners
from sampletool.kit.safety.lock import Lock
from sampletool.kit.safety.lock_record import describe_me, read_record, write_record
from sampletool.kit.safety.orphans import end_all
from sampletool.kit.safety.signals import Signals
from sampletool.kit.testing.failing import failure_in

WEEK = 7 * 24 * 3600
MOMENT = 0.001
NOW = 1_800_000_000.0


class Clock:
    """Goes on only when somebody sleeps, or a test says so."""

    def __init__(self) -> None:
        self.now = 1000.0
        self.began = self.now

    @property
    def elapsed(self) -> float:
        return round(self.now - self.began, 6)

    def monotonic(self) -> float:
        return self.now

    def advance(self, seconds: float) -> None:
        self.now += seconds

    sleep = advance


class ClockedSignals(Signals):
    """A wait during which nothing comes: it takes all of its time, by the clock."""

    def __init__(self, clock: Clock) -> None:
        super().__init__(clock.monotonic)
        self.clock = clock

    def wait(self, seconds: float, descriptors: Sequence[int] = ()) -> list[int]:
        assert seconds > 0, (
            "poll() waits without end if the time is negative, and not at all if it is 0"
        )
        self.clock.advance(seconds)
        return []


@pytest.fixture
def clock() -> Clock:
    return Clock()


# Signals


@pytest.mark.parametrize(("after_seconds", "is_repeated"), [(0.5 - MOMENT, False), (0.5, True)])
def test_a_second_signal_counts_from_half_a_second_on(
    clock: Clock, after_seconds: float, is_repeated: bool
) -> None:
    signals = Signals(clock.monotonic)
    signals.receive(signal.SIGINT)
    clock.advance(after_seconds)

    signals.receive(signal.SIGINT)

    assert signals.is_repeated == is_repeated


@pytest.mark.parametrize(("after_seconds", "is_over"), [(5 - MOMENT, False), (5.0, True)])
def test_a_call_is_over_when_its_time_is_up_and_not_before(
    clock: Clock, after_seconds: float, is_over: bool
) -> None:
    signals = Signals(clock.monotonic)
    signals.limit(5)
    clock.advance(after_seconds)

    assert signals.is_over() == is_over


class Stalled:
    """What poll answers of something for which nothing happens for so long."""

    def __init__(self, clock: Clock, seconds: float) -> None:
        self._clock, self._ready_at = clock, clock.now + seconds

    def register(self, _descriptor: int, _events: int) -> None:
        """There is only one."""

    def poll(self, milliseconds: float) -> list[tuple[int, int]]:
        if self._clock.now >= self._ready_at:
            return [(1, 0)]
        self._clock.advance(min(milliseconds / 1000, self._ready_at - self._clock.now))
        return [(1, 0)] if self._clock.now >= self._ready_at else []


@pytest.mark.parametrize(
    ("stalls_seconds", "is_written"), [(0.5 - MOMENT, True), (0.5 + MOMENT, False)]
)
def test_a_reader_that_stalls_gets_a_quarter_of_a_second_after_it_is_seen_that_the_call_is_over(
    clock: Clock,
    stalls_seconds: float,
    is_written: bool,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """One quarter passes before it is looked whether the call is over."""
    signals = Signals(clock.monotonic)
    signals.receive(signal.SIGTERM)
    monkeypatch.setattr(signals_module, "poll", lambda: Stalled(clock, stalls_seconds))

    with (tmp_path / "out").open("wb", buffering=0) as out:
        assert signals.write(out.fileno(), b"content") == is_written

    assert (tmp_path / "out").read_bytes() == (b"content" if is_written else b"")


def test_a_reader_may_stall_for_an_hour_while_the_call_is_not_over(
    clock: Clock, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(signals_module, "poll", lambda: Stalled(clock, 3600))

    with (tmp_path / "out").open("wb", buffering=0) as out:
        assert Signals(clock.monotonic).write(out.fileno(), b"content")

    assert clock.elapsed == 3600


# Locks


@pytest.fixture
def make_lock(clock: Clock, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[], Lock]:
    """Return a function that makes a lock whose waits take all of their time, by the clock.

    To look for its holder takes longer than the test.
    """
    monkeypatch.setattr(lock_module, "time", clock)
    monkeypatch.setattr(lock_module, "find_owners", lambda _path: Owners([]))
    return lambda: Lock(
        tmp_path / "lock", "build", describe_me("s-1", "build"), ClockedSignals(clock)
    )


@pytest.fixture
def hold() -> Iterator[Callable[[Path], None]]:
    """Yield a function that holds any file, as another process would."""
    descriptors: list[int] = []

    def take(path: Path) -> None:
        descriptors.append(os.open(path, os.O_RDWR | os.O_CREAT, 0o600))
        fcntl.flock(descriptors[-1], fcntl.LOCK_EX)

    yield take
    for descriptor in descriptors:
        os.close(descriptor)


@pytest.mark.parametrize("mode", ["exclusively", "shared"])
@pytest.mark.parametrize("timeout_seconds", [0.0, 0.2, 10.0])
def test_a_lock_is_waited_for_as_long_as_was_said(
    clock: Clock,
    make_lock: Callable[[], Lock],
    hold: Callable[[Path], None],
    tmp_path: Path,
    mode: str,
    timeout_seconds: float,
) -> None:
    hold(tmp_path / "lock")

    error = failure_in(getattr(make_lock(), mode)(timeout_seconds))

    assert isinstance(error, LockTimeout)
    assert clock.elapsed == timeout_seconds
    assert error.timeout_seconds == timeout_seconds
    assert error.waited_seconds == pytest.approx(timeout_seconds)


@pytest.mark.parametrize("mode", ["exclusively", "shared"])
def test_a_lock_is_waited_for_ten_seconds_where_nobody_says_how_long(
    clock: Clock,
    make_lock: Callable[[], Lock],
    hold: Callable[[Path], None],
    tmp_path: Path,
    mode: str,
) -> None:
    hold(tmp_path / "lock")

    assert isinstance(failure_in(getattr(make_lock(), mode)()), LockTimeout)

    assert clock.elapsed == PATIENT_WAIT_SECONDS == 10


@pytest.mark.parametrize(
    ("timeout_seconds", "waits_seconds"), [(0.0, 0.25), (0.1, 0.25), (0.3, 0.3)]
)
def test_the_gate_is_waited_for_a_quarter_of_a_second_at_least(
    clock: Clock,
    make_lock: Callable[[], Lock],
    hold: Callable[[Path], None],
    tmp_path: Path,
    timeout_seconds: float,
    waits_seconds: float,
) -> None:
    hold(tmp_path / "lock.gate")

    assert isinstance(failure_in(make_lock().shared(timeout_seconds)), LockTimeout)

    assert clock.elapsed == waits_seconds


def test_a_caller_that_does_not_wait_starts_no_thread(
    make_lock: Callable[[], Lock],
    hold: Callable[[Path], None],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The clock stands still, so the deadline is now."""
    started: list[object] = []
    monkeypatch.setattr(lock_module, "Waiter", lambda *facts: started.append(facts))
    hold(tmp_path / "lock")

    error = failure_in(make_lock().exclusively(0))

    assert started == []
    assert isinstance(error, LockTimeout)


@pytest.mark.parametrize(
    ("timeout_seconds", "waits_seconds"), [(0.0, 0.25), (0.1, 0.25), (0.3, 0.3)]
)
def test_a_lock_file_with_several_names_is_waited_for_a_quarter_of_a_second_at_least(
    clock: Clock,
    make_lock: Callable[[], Lock],
    hold: Callable[[Path], None],
    tmp_path: Path,
    timeout_seconds: float,
    waits_seconds: float,
) -> None:
    """Usually, the process that holds it is replacing it at this moment."""
    hold(tmp_path / "lock")
    (tmp_path / "copy.lock").hardlink_to(tmp_path / "lock")

    assert isinstance(failure_in(make_lock().exclusively(timeout_seconds)), LockTimeout)

    assert clock.elapsed == waits_seconds


@pytest.mark.parametrize(
    ("timeout_seconds", "notices"), [(0.5 - MOMENT, []), (0.5 + MOMENT, [0.5]), (60, [0.5])]
)
def test_a_wait_is_reported_once_after_half_a_second(
    clock: Clock,
    make_lock: Callable[[], Lock],
    hold: Callable[[Path], None],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    timeout_seconds: float,
    notices: list[float],
) -> None:
    reported: list[float] = []

    class Reports(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            reported.append(clock.elapsed)

    monkeypatch.setattr(lock_module.log, "handlers", [Reports()])
    monkeypatch.setattr(lock_module.log, "level", logging.INFO)
    monkeypatch.setattr(lock_module.log, "_cache", {})
    hold(tmp_path / "lock")

    failure_in(make_lock().exclusively(timeout_seconds))

    assert reported == notices


@pytest.mark.parametrize(
    ("limit_seconds", "kind"), [(10 - MOMENT, DeadlineExceeded), (10.0, LockTimeout)]
)
def test_the_limit_of_the_call_ends_a_wait_only_if_it_is_the_shorter_one(
    clock: Clock,
    make_lock: Callable[[], Lock],
    hold: Callable[[Path], None],
    tmp_path: Path,
    limit_seconds: float,
    kind: type[Exception],
) -> None:
    lock = make_lock()
    lock._signals.limit(limit_seconds)
    hold(tmp_path / "lock")

    error = failure_in(lock.exclusively(10))

    assert type(error) is kind
    assert clock.elapsed == round(limit_seconds, 6)


def test_a_lock_remembers_how_long_it_was_held_and_the_next_hint_comes_after_that(
    clock: Clock, make_lock: Callable[[], Lock]
) -> None:
    with make_lock().exclusively(0):
        clock.advance(7)
    with make_lock().exclusively(0) as idle:
        clock.advance(3600)
        idle.ignore_duration()

    with make_lock().exclusively(0) as last:
        assert last.usual_ms == 7000
        assert 1.2 * 7000 <= estimate_retry_ms(0, last.usual_ms) <= 1.25 * 1.2 * 7000


@pytest.mark.parametrize(("seconds", "age_ms"), [(0.0, 0), (90.5, 90_500), (-5.0, 0)])
def test_the_age_of_a_hold_grows_with_the_clock_and_is_never_negative(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seconds: float, age_ms: int
) -> None:
    boot_seconds = 1000.0
    monkeypatch.setattr(lock_record, "boot_seconds", lambda: boot_seconds)
    descriptor = os.open(tmp_path / "record", os.O_RDWR | os.O_CREAT, 0o600)
    write_record(descriptor, describe_me())
    boot_seconds += seconds
    record = read_record(descriptor)
    os.close(descriptor)

    assert record is not None
    assert record.as_holder("running", verified=True).age_ms == age_ms


def test_an_owner_that_cannot_be_confirmed_is_looked_for_three_times_five_milliseconds_apart(
    tmp_path: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    looks: list[float] = []

    def look(_path: Path) -> Owners:
        looks.append(clock.elapsed)
        return Owners([])

    monkeypatch.setattr(lock_owners, "time", clock)
    monkeypatch.setattr(lock_owners, "_find_owners_once", look)

    lock_owners.find_owners(tmp_path / "lock")

    assert looks == [0, 0.005, 0.01]


# Processes


@pytest.fixture
def signalled(clock: Clock, monkeypatch: pytest.MonkeyPatch) -> list[tuple[float, int]]:
    """When a child was sent which signal;

    none is really sent before SIGKILL, so it never ends by itself.
    """
    sent: list[tuple[float, int]] = []
    really_signal = children_module._signal_group

    def record(group: int, number: int) -> None:
        sent.append((clock.elapsed, number))
        if number == signal.SIGKILL:
            really_signal(group, number)
            os.waitid(os.P_PID, group, os.WEXITED | os.WNOWAIT)

    monkeypatch.setattr(children_module, "time", clock)
    monkeypatch.setattr(children_module, "_signal_group", record)
    return sent


def test_a_child_has_five_seconds_to_end_before_it_is_killed(
    signals: Signals, signalled: list[tuple[float, int]], tmp_path: Path
) -> None:
    with Children(signals) as children:
        children.start("child", ["sleep", "600"], cwd=tmp_path, env=os.environ)

    (asked_at, asked), (killed_at, killed) = signalled
    assert (asked_at, asked, killed) == (0, signal.SIGTERM, signal.SIGKILL)
    assert 5 <= killed_at < 5.03


def test_a_child_has_no_time_after_a_second_signal(
    signals: Signals, signalled: list[tuple[float, int]], tmp_path: Path
) -> None:
    with Children(signals) as children:
        children.start("child", ["sleep", "600"], cwd=tmp_path, env=os.environ)
        signals.is_repeated = True

    assert signalled == [(0, signal.SIGTERM), (0, signal.SIGKILL)]


@pytest.mark.parametrize(("dies_after_seconds", "survives"), [(2 - MOMENT, False), (2.1, True)])
def test_a_child_that_was_killed_has_two_seconds_to_die_before_it_is_named(
    signals: Signals,
    clock: Clock,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    dies_after_seconds: float,
    survives: bool,
) -> None:
    really_reap = children_module._reap
    is_dead = False

    def has_exited(process: "subprocess.Popen[bytes]") -> bool:
        nonlocal is_dead
        is_dead = clock.elapsed >= dies_after_seconds
        return is_dead

    monkeypatch.setattr(children_module, "time", clock)
    with Children(signals) as children:
        children.start("child", ["sleep", "600"], cwd=tmp_path, env=os.environ)
        child = children._running["child"]
        with monkeypatch.context() as patched:
            patched.setattr(children_module, "_has_exited", has_exited)
            patched.setattr(
                children_module, "_reap", lambda process: -signal.SIGKILL if is_dead else None
            )
            patched.setattr(children_module, "_wait_for_group", lambda group, deadline: ())
            child_exit = children._kill_and_reap(child)
    child.process.returncode = None
    os.waitid(os.P_PID, child.process.pid, os.WEXITED | os.WNOWAIT)
    really_reap(child.process)

    assert bool(child_exit.survivors) == survives


@pytest.fixture
def orphan_signals(clock: Clock, monkeypatch: pytest.MonkeyPatch) -> list[tuple[float, int]]:
    """When an orphan that never exits was sent which signal. No signal is really sent."""
    sent: list[tuple[float, int]] = []

    def record(_descriptor: int, number: int) -> None:
        sent.append((clock.elapsed, number))

    monkeypatch.setattr(signal, "pidfd_send_signal", record)
    monkeypatch.setattr(orphans, "time", clock)
    monkeypatch.setattr(orphans, "poll", lambda: Stalled(clock, math.inf))
    return sent


def test_an_orphan_has_two_seconds_between_being_asked_and_being_killed(
    signals: Signals, orphan_signals: list[tuple[float, int]]
) -> None:
    """This process stands in for the orphan."""
    ended = end_all(lambda: [os.getpid()], signals)

    seconds, numbers = zip(*orphan_signals, strict=True)
    assert ended == [os.getpid()]
    assert numbers == (signal.SIGTERM, signal.SIGKILL, signal.SIGKILL)
    assert seconds == pytest.approx((0, 2, 4), abs=0.05)


def test_an_orphan_is_killed_at_once_after_a_second_signal(
    signals: Signals, orphan_signals: list[tuple[float, int]]
) -> None:
    """After SIGKILL it still has two seconds: a process that is killed needs a moment to exit."""
    signals.is_repeated = True

    end_all(lambda: [os.getpid()], signals)

    seconds, numbers = zip(*orphan_signals, strict=True)
    assert numbers == (signal.SIGTERM, signal.SIGKILL, signal.SIGKILL)
    assert seconds == pytest.approx((0, 0, 2), abs=0.05)


# Files


@pytest.mark.parametrize(("too_many_bytes", "is_put_away"), [(0, False), (1, True)])
def test_a_log_is_put_away_when_it_is_larger_than_4_mib(
    tmp_path: Path, too_many_bytes: int, is_put_away: bool
) -> None:
    line_bytes = len(b'{"n":1}\n')
    state = tmp_path / "state"
    state.mkdir(mode=0o700)
    with (state / "calls.jsonl").open("wb") as log:
        log.truncate((4 << 20) - line_bytes - 1 + too_many_bytes)
        log.seek(0, os.SEEK_END)
        log.write(b"\n")

    append(state, {"n": 1})

    assert (state / "calls.before.jsonl").exists() == is_put_away


@pytest.mark.parametrize(("age_seconds", "is_listed"), [(WEEK, True), (WEEK + 1, False)])
def test_a_call_is_listed_for_a_week_where_nobody_says_how_far_back(
    age_seconds: int, is_listed: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    call = {
        "at": utc(NOW - age_seconds),
        "command": "x",
        "exit_code": 0,
        "duration_ms": 1,
        "request_id": "1",
    }
    append(state_directory(), call)
    monkeypatch.setattr(log_command, "time", SimpleNamespace(time=lambda: NOW))

    typer_context: Any = SimpleNamespace(obj=Context(Signals()))
    calls = log_command.command(typer_context).calls

    assert bool(calls) == is_listed
