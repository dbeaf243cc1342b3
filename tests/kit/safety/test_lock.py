"""A named lock: exclusive or shared, with a deadline, fair, and freed by any death."""

import errno
import fcntl
import json
import logging
import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from itertools import pairwise
from pathlib import Path
from types import FrameType, SimpleNamespace
from typing import Any

import pytest
from filelock import FileLock, Timeout

from sampletool.kit.contract.errors import ToolError
from sampletool.kit.contract.expected import EXPECTED, to_tool_error
from sampletool.kit.safety import lock as lock_module
from sampletool.kit.safety.atomic_file import opened
from sampletool.kit.safety.errors import (
    DeadlineExceeded,
    Deadlock,
    Interrupted,
    LocksUnsupported,
    LockTimeout,
    UnsafePath,
)
from sampletool.kit.safety.lock import Lock, log
from sampletool.kit.safety.lock_record import read_record
from sampletool.kit.safety.signals import Signals
from sampletool.kit.stepping.tracer import SteppedProcess
from sampletool.kit.testing.forked import fork_server
from sampletool.kit.testing.holding import Holding, holding, make_lock
from sampletool.kit.testing.scale import scale
from tests.kit.failing import failure_in, failure_of
from tests.kit.waiting import wait_until


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "build.lock"


def refusal(path: Path, timeout_seconds: float = 0.0, mode: str = "exclusive") -> ToolError:
    lock = make_lock(path)
    with (
        pytest.raises(LockTimeout) as caught,
        lock.exclusively(timeout_seconds) if mode == "exclusive" else lock.shared(timeout_seconds),
    ):
        pass
    return to_tool_error(caught.value)


def test_a_release_leaves_the_processor_to_whom_it_has_woken(path: Path) -> None:
    """Whether a loop takes its lock back before a waiter gets a processor is up to the machine; this is what we do."""
    called: list[str] = []

    def record(_frame: FrameType, event: str, function: Any) -> None:
        called.extend([function.__name__] if event == "c_call" else [])

    sys.setprofile(record)
    try:
        with make_lock(path).exclusively(0):
            pass
    finally:
        sys.setprofile(None)

    assert [name for name in called if name in ("flock", "sched_yield")] == ["flock", "flock", "sched_yield"]


def test_a_free_lock_is_had_at_once_and_left_empty_handed(path: Path) -> None:
    with make_lock(path).exclusively(0) as hold:
        assert hold.crashed is None
        assert path.stat().st_mode & 0o777 == 0o600

    with make_lock(path).exclusively(0) as again:
        assert again.crashed is None


def test_the_holder_is_named_and_confirmed(path: Path) -> None:
    with holding(path) as other:
        error = refusal(path)

    holder = error.context["holder"]
    assert (holder.pid, holder.state, holder.verified) == (other.pid, "running", True)
    assert (holder.command, holder.session_id) == ("build", "s-1")
    assert str(other.pid) in error.message
    assert (error.retry_after_ms or 0) >= 4_000


@pytest.mark.parametrize("mode", ["exclusive", "shared"])
def test_a_wait_ends_at_its_deadline(path: Path, mode: str) -> None:
    with holding(path):
        error = refusal(path, 0.3, mode)

    assert 300 <= error.context["waited_ms"] < 20_000
    assert error.context["timeout_ms"] == 300


def test_without_patience_nobody_waits(path: Path) -> None:
    with holding(path):
        error = refusal(path, 0.0)

    assert error.context["waited_ms"] < 20_000
    assert error.context["timeout_ms"] == 0


def test_a_lock_is_free_after_kill_9_and_the_next_holder_knows(path: Path) -> None:
    with holding(path) as other:
        other.kill()

    with make_lock(path).exclusively(0) as hold:
        assert hold.crashed is not None
        assert hold.crashed.pid == other.pid
    with make_lock(path).exclusively(0) as after:
        assert after.crashed is None


def test_a_reader_too_learns_of_a_crash_and_clears_it(path: Path) -> None:
    with holding(path) as other:
        other.kill()

    with make_lock(path).shared(0) as hold:
        assert hold.crashed is not None
    with make_lock(path).shared(0) as after:
        assert after.crashed is None


@pytest.mark.leaves_litter
def test_readers_share_and_keep_a_writer_out_by_name(path: Path) -> None:
    with holding(path, "shared") as one, holding(path, "shared") as two:
        error = refusal(path)
        with make_lock(path).shared(0):
            pass

    assert {holder.pid for holder in error.context["holders"]} == {one.pid, two.pid}
    assert 'The lock "build" is shared by processes' in error.message


def test_a_writer_keeps_readers_out(path: Path) -> None:
    with holding(path) as other:
        error = refusal(path, mode="shared")

    assert error.context["holder"].pid == other.pid


def test_fifty_readers_at_once_all_get_in(path: Path) -> None:
    readers = [Holding(path, "shared") for _ in range(scale(12, 50))]

    answers = [reader.hear()["got"] for reader in readers]
    for reader in readers:
        reader.leave()

    assert answers == ["held"] * len(readers)
    assert os.listdir(path.with_name("build.lock.readers")) == []


@contextmanager
def waiting(path: Path, mode: str = "exclusive", seconds: float = 600) -> Iterator[Holding]:
    """A process that waits for the lock from the moment when the block begins."""
    waiter = Holding(path, mode, seconds)
    with waiter.process:
        try:
            wait_until(waiter.is_waiting)
            yield waiter
        finally:
            waiter.process.kill()


def test_a_reader_does_not_pass_by_a_waiting_writer(path: Path) -> None:
    """Naive: readers come and go, one of them is always there, and the writer waits for ever."""
    with holding(path, "shared") as reader, waiting(path) as writer:
        refusal(path, mode="shared")

        reader.leave()
        assert writer.hear()["got"] == "held"


def test_a_gate_that_is_taken_for_a_moment_refuses_nobody(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lock_module, "_GATE_SECONDS", 60)
    gate = os.open(path.with_name("build.lock.gate"), os.O_RDWR | os.O_CREAT, 0o600)
    fcntl.flock(gate, fcntl.LOCK_EX)
    is_over, threads = threading.Event(), len(os.listdir("/proc/self/task")) + 1

    def leave_when_another_thread_waits() -> None:
        while not is_over.wait(0.005) and len(os.listdir("/proc/self/task")) <= threads:
            pass
        os.close(gate)

    leaving = threading.Thread(target=leave_when_another_thread_waits)
    leaving.start()
    failure = failure_in(make_lock(path).shared(0))
    is_over.set()
    leaving.join()

    assert failure is None


def test_what_is_won_after_its_caller_has_given_up_is_released_at_once(path: Path) -> None:
    with holding(path):
        threads = len(os.listdir("/proc/self/task"))
        refusal(path, 0.05)
        assert len(os.listdir("/proc/self/task")) == threads + 1

    wait_until(lambda: len(os.listdir("/proc/self/task")) == threads)
    assert failure_in(make_lock(path).exclusively(0)) is None


def test_a_waiting_call_asks_the_kernel_once(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Naive: to ask again every 10 ms costs more processor time the less of it there is."""
    asked, flock = [], fcntl.flock

    def counted(descriptor: int, operation: int) -> None:
        asked.append(operation)
        flock(descriptor, operation)

    monkeypatch.setattr(fcntl, "flock", counted)
    with holding(path):
        refusal(path, 0.5)

    assert asked == [fcntl.LOCK_EX | fcntl.LOCK_NB, fcntl.LOCK_EX]


def test_holds_never_overlap_also_when_a_holder_is_killed(path: Path) -> None:
    stretches = []
    for turn in range(scale(2, 20)):
        contenders = [Holding(path, timeout_seconds=20) for _ in range(4)]
        for contender in contenders[1:]:
            assert contender.process.stdin is not None
            contender.process.stdin.close()
            contender.process.stdin = None
        if turn % 2 == 0:
            contenders[0].kill()
        else:
            contenders[0].leave()
        for contender in contenders[1:]:
            output, _ = contender.process.communicate(timeout=60)
            stretches.append(json.loads(output.splitlines()[-1]))

    stretches.sort(key=lambda stretch: stretch["got"])
    for one, other in pairwise(stretches):
        assert one["releasing"] <= other["got"]


def test_a_lock_file_that_was_replaced_during_the_wait_is_noticed_and_the_new_one_is_taken(path: Path) -> None:
    """Naive: whoever locked the old file believes to be alone beside the holder of the new one."""
    with holding(path) as holder, waiting(path) as waiter:
        path.unlink()
        path.touch(mode=0o600)
        holder.leave()
        assert waiter.hear()["got"] == "held"

        error = refusal(path)

        assert error.context["holder"].pid == waiter.pid


@pytest.mark.parametrize("kind", ["symlink", "fifo", "directory", "writable by others"])
def test_what_is_no_lock_file_of_ours_is_refused(path: Path, kind: str) -> None:
    if kind == "symlink":
        path.symlink_to("/etc/passwd")
    elif kind == "fifo":
        os.mkfifo(path, 0o600)
    elif kind == "directory":
        path.mkdir()
    else:
        path.touch()
        path.chmod(0o666)

    for mode in ("exclusively", "shared"):
        error = failure_in(getattr(make_lock(path), mode)(0))
        assert isinstance(error, EXPECTED)
        refused = to_tool_error(error)
        assert refused.code == "UNSAFE_PATH"
        assert "build" in refused.message


@pytest.mark.parametrize("mode", ["exclusively", "shared"])
def test_a_lock_file_of_another_user_is_refused(path: Path, mode: str, monkeypatch: pytest.MonkeyPatch) -> None:
    path.touch(mode=0o600)
    monkeypatch.setattr(os, "geteuid", lambda: path.stat().st_uid + 1)

    with pytest.raises(UnsafePath, match="another user"), getattr(make_lock(path), mode)(0):
        pass


@pytest.mark.parametrize("mode", ["exclusively", "shared"])
def test_a_file_of_ours_that_was_planted_as_a_lock_file_is_not_overwritten(path: Path, mode: str) -> None:
    victim = path.with_name("victim")
    victim.write_text("mine")
    victim.chmod(0o600)
    path.hardlink_to(victim)

    with pytest.raises(UnsafePath, match="hard link"), getattr(make_lock(path), mode)(0):
        pass

    assert victim.read_text() == "mine"


@pytest.mark.parametrize("number", [errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP])
def test_a_file_system_without_locks_is_named_and_never_papered_over(
    path: Path, number: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(_descriptor: int, _operation: int) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(fcntl, "flock", refuse)

    for mode in ("exclusively", "shared"):
        assert isinstance(failure_in(getattr(make_lock(path), mode)(0)), LocksUnsupported)


@pytest.mark.parametrize("mode", ["exclusive", "shared"])
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_the_wait_and_leaves_nothing_held(path: Path, mode: str, number: int) -> None:
    with holding(path), waiting(path, mode) as waiter:
        waiter.process.send_signal(number)

        assert waiter.hear()["got"] == "INTERRUPTED"

    with make_lock(path).exclusively(0):
        pass


def test_a_signal_that_comes_while_it_waits_is_seen_in_time(path: Path) -> None:
    """Naive: the wait goes on to its own end, and only then is the signal looked at."""
    with holding(path), waiting(path, seconds=20) as waiter:
        waiter.process.send_signal(signal.SIGTERM)
        answer = waiter.hear()

    assert answer["got"] == "INTERRUPTED"
    assert answer["waited"] < 10


def test_a_signal_that_came_before_is_obeyed_although_the_lock_is_free(path: Path) -> None:
    signals = Signals()
    signals.received = signal.SIGTERM

    with pytest.raises(Interrupted), make_lock(path, signals).exclusively(10):
        pass


@pytest.mark.parametrize("limit", [0.0, 0.1])
def test_the_end_of_the_whole_call_s_time_is_reported_as_such_with_who_was_waited_for(path: Path, limit: float) -> None:
    signals = Signals()

    with holding(path) as other:
        signals.limit(limit)
        error = failure_in(make_lock(path, signals).exclusively(10))

    assert isinstance(error, DeadlineExceeded)
    assert error.seconds == limit
    assert error.waiting_for is not None
    assert error.waiting_for.owners.holders[0].pid == other.pid


def test_a_wait_that_ends_by_its_own_patience_is_lock_held_also_where_the_call_has_a_limit(path: Path) -> None:
    for patience, limit in ((0.1, 5.0), (0.0, 0.0)):
        signals = Signals()

        with holding(path):
            signals.limit(limit)
            with pytest.raises(LockTimeout) as caught, make_lock(path, signals).exclusively(patience):
                pass

        assert caught.value.timeout_seconds == patience


def test_a_nested_call_for_an_ancestor_s_lock_fails_at_once(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SAFETY_HELD_LOCKS", f"/other\n{path}")

    with pytest.raises(Deadlock), make_lock(path).exclusively(10):
        pass


def test_an_orphan_keeps_the_lock_and_is_named(path: Path) -> None:
    """Kill -9 of the holder: the child that inherited the lock still works, so nobody may work beside it."""
    other = Holding(path, child="sleep")
    orphan = other.hear()["child"]
    other.kill()
    try:
        error = refusal(path)
        holder = error.context["holder"]
        assert (holder.pid, holder.state, holder.children) == (other.pid, "orphaned", (orphan,))
        assert "has exited" in error.message
    finally:
        os.kill(orphan, signal.SIGKILL)

    with make_lock(path).exclusively(5) as hold:
        assert hold.crashed is not None


def test_a_reader_that_leaves_leaves_its_share_to_a_child_that_still_works(path: Path) -> None:
    reader = Holding(path, "shared", child="sleep")
    child = reader.hear()["child"]
    reader.leave()
    try:
        refusal(path)
    finally:
        os.kill(child, signal.SIGKILL)

    with make_lock(path).exclusively(60):
        pass


@pytest.mark.leaves_litter
def test_the_child_of_a_reader_that_was_killed_is_named_as_what_it_is(path: Path) -> None:
    reader = Holding(path, "shared", child="sleep")
    child = reader.hear()["child"]
    reader.kill()
    try:
        holder = refusal(path).context["holder"]
        assert (holder.pid, holder.command, holder.state) == (reader.pid, "build", "orphaned")
        assert holder.children == (child,)
    finally:
        os.kill(child, signal.SIGKILL)


def usual_ms(path: Path) -> int | None:
    with make_lock(path).exclusively(0) as hold:
        hold.did_work = False
        return hold.usual_ms


def test_only_a_hold_that_did_work_says_how_long_one_usually_takes(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Naive: a build that had nothing to do makes the next hint one of milliseconds."""
    clock = SimpleNamespace(now=0.0)
    monkeypatch.setattr(lock_module, "time", SimpleNamespace(monotonic=lambda: clock.now))
    assert usual_ms(path) is None
    with make_lock(path).exclusively(0):
        clock.now += 3
    with make_lock(path).exclusively(0) as idle:
        idle.did_work = False
        clock.now += 1
    with pytest.raises(ZeroDivisionError), make_lock(path).exclusively(0):
        raise ZeroDivisionError

    assert usual_ms(path) == 3000


def test_a_lock_is_called_free_before_it_is(path: Path) -> None:
    """Naive: the record of the next holder is overwritten by that of the last one."""
    program = ["-m", holding.__module__, str(path), "exclusive", "0", ""]
    with SteppedProcess(program, watch=path.parent, fork_server=fork_server()) as stepped:
        stepped.run_until(lambda event: event.name == "fcntl.flock" and event.facts["operation"] == fcntl.LOCK_UN)

        with opened(path, os.O_RDONLY) as descriptor:
            record = read_record(descriptor)

        assert record is not None
        assert record.state == "free"
        stepped.finish()


def test_a_full_disk_is_no_reason_to_have_no_lock(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "pwrite", refuse)

    with ExitStack() as held:
        assert failure_of(lambda: held.enter_context(make_lock(path).exclusively(0))) is None
        other = held.enter_context(path.open())
        with pytest.raises(BlockingIOError):
            fcntl.flock(other, fcntl.LOCK_SH | fcntl.LOCK_NB)


def test_where_no_thread_can_be_started_a_wait_is_refused_by_name(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", refuse)

    with holding(path):
        error = failure_in(make_lock(path).exclusively(5))

    assert isinstance(error, BlockingIOError)
    assert "can't start new thread" in str(error)


def test_a_lock_of_a_path_alone_waits_and_excludes(path: Path) -> None:
    with Lock(path).exclusively():
        assert refusal(path).context["holder"].pid == os.getpid()


def test_the_log_names_who_asks_gets_waits_and_releases(path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG, logger=log.name)
    with holding(path) as other, pytest.raises(LockTimeout), make_lock(path).exclusively(0.05):
        pass
    with make_lock(path).exclusively():  # waits for the thread of the first, which wins and lets go
        pass

    assert f"waiting for build (process {other.pid}" in caplog.text
    assert all(f"{verb} by pid {os.getpid()}" in caplog.text for verb in ("asked for", "got", "released"))


def test_our_lock_and_that_of_filelock_exclude_each_other(path: Path) -> None:
    theirs = FileLock(path, preserve_lock_file=True)

    with theirs, pytest.raises(LockTimeout):
        make_lock(path).exclusively(0).__enter__()
    with make_lock(path).exclusively(0), pytest.raises(Timeout):
        theirs.acquire(timeout=0)
