"""Locks between processes: who gets one, who waits, who is refused, and what stays behind."""

import errno
import fcntl
import json
import logging
import math
import os
import shutil
import signal
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from itertools import pairwise
from pathlib import Path
from types import FrameType, SimpleNamespace
from typing import Any

import pytest
from filelock import FileLock, Timeout

from sampletool.kit.contract.errors import ToolError
from sampletool.kit.contract.expected import EXPECTED, to_tool_error
from sampletool.kit.safety import lock as lock_module
from sampletool.kit.safety.atomic_file import opened, replace
from sampletool.kit.safety.errors import (
    DeadlineExceeded,
    Deadlock,
    Interrupted,
    LocksUnsupported,
    LockTimeout,
    NotFlushed,
    UnsafePath,
)
from sampletool.kit.safety.flock import try_lock
from sampletool.kit.safety.holder import Owners
from sampletool.kit.safety.lock import Hold, Lock, log
from sampletool.kit.safety.lock_record import read_record
from sampletool.kit.safety.signals import Signals
from sampletool.kit.stepping.tracer import SteppedProcess
from sampletool.kit.testing.failing import failure_in, failure_of
from sampletool.kit.testing.forked import fork_server
from sampletool.kit.testing.holding import Holding, holding, make_lock
from sampletool.kit.testing.scale import scale
from sampletool.kit.testing.waiting import wait_until

MODES = ["exclusive", "shared"]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "build.lock"


def taking(lock: Lock, mode: str, timeout_seconds: float) -> AbstractContextManager[Hold]:
    if mode == "exclusive":
        return lock.exclusively(timeout_seconds)
    return lock.shared(timeout_seconds)


def refusal(path: Path, timeout_seconds: float = 0.0, mode: str = "exclusive") -> ToolError:
    """Return the error of a caller that asks for a lock that is held."""
    with pytest.raises(LockTimeout) as caught, taking(make_lock(path), mode, timeout_seconds):
        pass
    return to_tool_error(caught.value)


def count_descriptors() -> int:
    return len(os.listdir("/proc/self/fd"))


def count_threads() -> int:
    return len(os.listdir("/proc/self/task"))


@contextmanager
def waiting(path: Path, mode: str = "exclusive", seconds: float = 600) -> Iterator[Holding]:
    """Start a process that waits for the lock when the block begins."""
    waiter = Holding(path, mode, seconds)
    with waiter.process:
        try:
            wait_until(waiter.is_waiting)
            yield waiter
        finally:
            waiter.process.kill()


def is_release(event: Any) -> bool:
    return bool(event.name == "fcntl.flock" and event.facts["operation"] == fcntl.LOCK_UN)


@contextmanager
def stepping(path: Path) -> Iterator[SteppedProcess]:
    """Start a process that takes the lock and releases it, step by step."""
    program = ["-m", holding.__module__, str(path), "exclusive", "20", ""]
    with SteppedProcess(program, watch=path.parent, fork_server=fork_server()) as stepped:
        yield stepped


# Taking and releasing


def test_a_release_lets_the_waiter_that_it_woke_run_first(path: Path) -> None:
    """Whether the waiter is really first is up to the machine. This is what we can do for it."""
    called: list[str] = []

    def record(_frame: FrameType, event: str, function: Any) -> None:
        if event == "c_call" and function.__name__ in ("flock", "sched_yield"):
            called.append(function.__name__)

    sys.setprofile(record)
    try:
        with make_lock(path).exclusively(0):
            pass
    finally:
        sys.setprofile(None)

    assert called == ["flock", "flock", "sched_yield"]


def test_a_free_lock_is_taken_at_once_and_its_file_is_private(path: Path) -> None:
    with make_lock(path).exclusively(0) as hold:
        assert hold.crashed_writer is None
        assert path.stat().st_mode & 0o777 == 0o600

    with make_lock(path).exclusively(0) as next_hold:
        assert next_hold.crashed_writer is None


def test_the_holder_is_named_and_verified(path: Path) -> None:
    with holding(path) as other:
        error = refusal(path)

    holder = error.context["holder"]
    assert (holder.pid, holder.state, holder.verified) == (other.pid, "running", True)
    assert (holder.command, holder.session_id) == ("build", "s-1")
    assert str(other.pid) in error.message
    assert (error.retry_after_ms or 0) >= 4_000


@pytest.mark.parametrize("mode", MODES)
def test_a_wait_ends_at_its_deadline(path: Path, mode: str) -> None:
    with holding(path):
        error = refusal(path, 0.3, mode)

    assert 300 <= error.context["waited_ms"] < 20_000
    assert error.context["timeout_ms"] == 300


def test_with_a_timeout_of_0_nobody_waits(path: Path) -> None:
    with holding(path):
        error = refusal(path, 0.0)

    assert error.context["waited_ms"] < 20_000
    assert error.context["timeout_ms"] == 0


@pytest.mark.parametrize("mode", MODES)
def test_a_hold_says_in_milliseconds_how_long_it_was_waited_for(
    path: Path, mode: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = SimpleNamespace(now=1000.0)

    def try_lock_slowly(descriptor: int, operation: int) -> bool:
        clock.now += 2.5
        return try_lock(descriptor, operation)

    monkeypatch.setattr(lock_module, "time", SimpleNamespace(monotonic=lambda: clock.now))
    monkeypatch.setattr(lock_module, "try_lock", try_lock_slowly)

    with taking(make_lock(path), mode, 10) as hold:
        waited_ms = hold.waited_ms

    # A reader takes the gate first, and then the lock.
    assert waited_ms == {"exclusive": 2500, "shared": 5000}[mode]


@pytest.mark.parametrize("mode", MODES)
def test_a_hold_leaves_no_descriptor_open(path: Path, mode: str) -> None:
    before = count_descriptors()

    with taking(make_lock(path), mode, 0) as hold:
        during = count_descriptors()

    # The gate is closed as soon as the lock is taken.
    assert during == before + len(hold.descriptors)
    assert count_descriptors() == before


@pytest.mark.parametrize("mode", MODES)
def test_a_caller_that_is_refused_leaves_no_descriptor_open(path: Path, mode: str) -> None:
    with holding(path):
        before = count_descriptors()

        refusal(path, 0, mode)

        assert count_descriptors() == before


@pytest.mark.parametrize("mode", MODES)
def test_a_record_that_cannot_be_read_leaves_the_lock_free(
    path: Path, mode: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = count_descriptors()

    def fail(*_: object) -> None:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    with monkeypatch.context() as patched:
        patched.setattr(os, "pread", fail)
        error = failure_in(taking(make_lock(path), mode, 0))

    assert isinstance(error, OSError)
    assert count_descriptors() == before
    assert failure_in(make_lock(path).exclusively(0)) is None


def test_a_lock_is_free_after_kill_9_and_the_next_holder_knows(path: Path) -> None:
    with holding(path) as other:
        other.kill()

    with make_lock(path).exclusively(0) as hold:
        assert hold.crashed_writer is not None
        assert hold.crashed_writer.pid == other.pid
    with make_lock(path).exclusively(0) as next_hold:
        assert next_hold.crashed_writer is None


def test_a_reader_learns_of_a_crash_and_the_next_one_does_not(path: Path) -> None:
    with holding(path) as other:
        other.kill()

    with make_lock(path).shared(0) as hold:
        assert hold.crashed_writer is not None
    with make_lock(path).shared(0) as next_hold:
        assert next_hold.crashed_writer is None


def test_a_reader_that_clears_a_crash_keeps_the_usual_duration(
    path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    clock = SimpleNamespace(now=0.0)
    monkeypatch.setattr(lock_module, "time", SimpleNamespace(monotonic=lambda: clock.now))
    with make_lock(path).exclusively(0):
        clock.now += 3
    with holding(path) as other:
        other.kill()

    with make_lock(path).shared(0) as hold:
        assert hold.crashed_writer is not None

    assert usual_ms(path) == 3000


def test_a_hold_without_a_record_neither_reads_nor_writes_one(path: Path) -> None:
    with holding(path) as other:
        other.kill()
    before = path.read_bytes()

    with make_lock(path).exclusively(0, recorded=False) as hold:
        assert (hold.crashed_writer, hold.usual_ms) == (None, None)
        assert path.read_bytes() == before

    assert path.read_bytes() == before
    with make_lock(path).exclusively(0) as next_hold:
        assert next_hold.crashed_writer is not None


def test_a_process_that_takes_its_own_lock_again_is_refused_and_names_itself(path: Path) -> None:
    with make_lock(path).exclusively(0):
        error = refusal(path, 0.05)

    assert error.context["holder"].pid == os.getpid()


def test_a_child_that_is_left_running_does_not_keep_an_exclusive_lock(path: Path) -> None:
    """Closing the descriptor instead of unlocking it would leave the lock with the child."""
    other = Holding(path, child="sleep")
    child = other.hear()["child"]
    other.leave()
    try:
        error = failure_in(make_lock(path).exclusively(0))
    finally:
        os.kill(child, signal.SIGKILL)

    assert error is None


# Readers and writers


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


def test_a_reader_does_not_overtake_a_waiting_writer(path: Path) -> None:
    """Without the gate, readers come and go, one is always there, and the writer never gets in."""
    with holding(path, "shared") as reader, waiting(path) as writer:
        refusal(path, mode="shared")

        reader.leave()
        assert writer.hear()["got"] == "held"


def test_a_lock_without_readers_has_no_gate(path: Path) -> None:
    with make_lock(path).exclusively(0):
        pass

    assert not path.with_name("build.lock.gate").exists()


def test_a_gate_that_is_taken_for_a_moment_refuses_nobody(
    path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(lock_module, "_SHORT_HOLD_SECONDS", 60)
    gate = os.open(path.with_name("build.lock.gate"), os.O_RDWR | os.O_CREAT, 0o600)
    fcntl.flock(gate, fcntl.LOCK_EX)
    is_over = threading.Event()
    threads_before = count_threads() + 1

    def leave_when_another_thread_waits() -> None:
        while not is_over.wait(0.005) and count_threads() <= threads_before:
            pass
        os.close(gate)

    leaving = threading.Thread(target=leave_when_another_thread_waits)
    leaving.start()
    failure = failure_in(make_lock(path).shared(0))
    is_over.set()
    leaving.join()

    assert failure is None


# Waiting


def test_what_is_won_after_its_caller_has_given_up_is_released_at_once(path: Path) -> None:
    with holding(path):
        threads_before = count_threads()
        refusal(path, 0.05)
        assert count_threads() == threads_before + 1

    wait_until(lambda: count_threads() == threads_before)
    assert failure_in(make_lock(path).exclusively(0)) is None


def test_a_waiting_process_asks_the_kernel_once(
    path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Asking again every 10 ms takes more processor time the less of it there is."""
    operations = []
    really_flock = fcntl.flock

    def counted(descriptor: int, operation: int) -> None:
        operations.append(operation)
        really_flock(descriptor, operation)

    monkeypatch.setattr(fcntl, "flock", counted)
    with holding(path):
        refusal(path, 0.5)

    assert operations == [fcntl.LOCK_EX | fcntl.LOCK_NB, fcntl.LOCK_EX]


def test_holds_never_overlap_also_when_a_holder_is_killed(path: Path) -> None:
    holds = []
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
            holds.append(json.loads(output.splitlines()[-1]))

    holds.sort(key=lambda hold: hold["got"])
    for one, other in pairwise(holds):
        assert one["releasing"] <= other["got"]


def test_a_lock_file_that_was_replaced_during_the_wait_is_noticed_and_the_new_one_is_taken(
    path: Path,
) -> None:
    """Without the check, the holders of the old file and of the new one both seem to be alone."""
    with holding(path) as holder, waiting(path) as waiter:
        path.unlink()
        path.touch(mode=0o600)
        holder.leave()
        assert waiter.hear()["got"] == "held"

        error = refusal(path)

        assert error.context["holder"].pid == waiter.pid


def test_a_lock_file_that_is_replaced_again_and_again_is_given_up_at_the_deadline(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tries = 0

    def replace_and_lock(descriptor: int, operation: int) -> bool:
        nonlocal tries
        tries += 1
        assert tries == 1, "it continues after the deadline"
        path.unlink()
        path.touch(mode=0o600)
        return try_lock(descriptor, operation)

    monkeypatch.setattr(lock_module, "try_lock", replace_and_lock)
    before = count_descriptors()

    error = failure_in(make_lock(path).exclusively(0))

    assert isinstance(error, LockTimeout)
    assert tries == 1
    assert count_descriptors() == before


# Signals and time limits


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_the_wait_and_leaves_nothing_held(path: Path, mode: str, number: int) -> None:
    with holding(path), waiting(path, mode) as waiter:
        waiter.process.send_signal(number)

        assert waiter.hear()["got"] == "INTERRUPTED"

    with make_lock(path).exclusively(0):
        pass


def test_a_signal_during_the_wait_is_seen_before_the_deadline(path: Path) -> None:
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


def test_a_wait_lasts_until_the_deadline_or_until_its_thread_has_ended(
    path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A real wait that is too long would only be noticed when the time for this test is over."""
    now = 1000.0
    waits: list[tuple[float, int]] = []

    class RecordedWaits(Signals):
        def wait(self, seconds: float, descriptors: Sequence[int] = ()) -> list[int]:
            nonlocal now
            now += seconds
            waits.append((seconds, len(descriptors)))
            if len(waits) == 3:
                # Do not wait without end for a deadline that is not obeyed.
                self.receive(signal.SIGTERM)
            return []

    monkeypatch.setattr(lock_module, "time", SimpleNamespace(monotonic=lambda: now))
    monkeypatch.setattr(lock_module, "find_owners", lambda _path: Owners([]))

    with opened(path, os.O_RDWR | os.O_CREAT) as descriptor:
        assert try_lock(descriptor, fcntl.LOCK_EX)
        error = failure_in(make_lock(path, RecordedWaits()).exclusively(0.25))

    assert waits == [(0.25, 1)]
    assert isinstance(error, LockTimeout)


def test_with_an_unlimited_timeout_the_wait_lasts_until_the_lock_is_free(
    path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # After the notice, only the deadline limits the wait.
    monkeypatch.setattr(lock_module, "_NOTICE_SECONDS", 0)
    waits: list[float] = []
    with holding(path) as holder:

        class FreesTheLock(Signals):
            def wait(self, seconds: float, descriptors: Sequence[int] = ()) -> list[int]:
                waits.append(seconds)
                holder.process.kill()
                return super().wait(seconds, descriptors)

        error = failure_in(make_lock(path, FreesTheLock()).exclusively(math.inf))

    assert error is None
    assert waits[0] == math.inf


@pytest.mark.parametrize("limit", [0.0, 0.1])
def test_the_limit_of_all_work_is_reported_as_such_with_the_lock_that_was_waited_for(
    path: Path,
    limit: float,
) -> None:
    signals = Signals()

    with holding(path) as other:
        signals.limit(limit)
        error = failure_in(make_lock(path, signals).exclusively(10))

    assert isinstance(error, DeadlineExceeded)
    assert error.seconds == limit
    assert error.waiting_for is not None
    assert error.waiting_for.owners.holders[0].pid == other.pid


@pytest.mark.parametrize(("timeout_seconds", "limit_seconds"), [(0.1, 5.0), (0.0, 0.0)])
def test_a_wait_that_ends_by_its_own_timeout_says_so_although_all_work_has_a_limit(
    path: Path, timeout_seconds: float, limit_seconds: float
) -> None:
    signals = Signals()

    with holding(path):
        signals.limit(limit_seconds)
        error = failure_in(make_lock(path, signals).exclusively(timeout_seconds))

    assert isinstance(error, LockTimeout)
    assert error.timeout_seconds == timeout_seconds


# Ancestors and children


def test_a_relative_path_is_the_lock_of_an_ancestor_only_if_it_leads_to_the_same_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two programs may each have a `work.lock` in their own directory."""
    monkeypatch.setenv("SAFETY_HELD_LOCKS", str(tmp_path / "held" / "work.lock"))
    (tmp_path / "held").mkdir()
    (tmp_path / "other").mkdir()

    monkeypatch.chdir(tmp_path / "held")
    same_file = failure_in(make_lock(Path("work.lock")).exclusively(0))
    monkeypatch.chdir(tmp_path / "other")
    other_file = failure_in(make_lock(Path("work.lock")).exclusively(0))

    assert isinstance(same_file, Deadlock)
    assert other_file is None


def test_the_message_of_a_timeout_names_the_process_that_holds_the_lock(path: Path) -> None:
    with holding(path) as other:
        error = failure_in(make_lock(path).exclusively(0))

    assert isinstance(error, LockTimeout)
    assert f"process {other.pid}" in str(error)


def test_a_nested_call_for_the_lock_of_an_ancestor_fails_at_once(
    path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("SAFETY_HELD_LOCKS", f"/other\n{path}")

    with pytest.raises(Deadlock) as caught, make_lock(path).exclusively(10):
        pass

    assert caught.value.name == "build"


def test_an_orphan_keeps_the_lock_and_is_named(path: Path) -> None:
    """The child of a killed holder still works with what the lock protects."""
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
        assert hold.crashed_writer is not None


def test_a_reader_that_exits_leaves_its_share_to_a_child_that_still_works(path: Path) -> None:
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
def test_the_child_of_a_reader_that_was_killed_is_named_as_an_orphan(path: Path) -> None:
    reader = Holding(path, "shared", child="sleep")
    child = reader.hear()["child"]
    reader.kill()
    try:
        holder = refusal(path).context["holder"]
        assert (holder.pid, holder.command, holder.state) == (reader.pid, "build", "orphaned")
        assert holder.children == (child,)
    finally:
        os.kill(child, signal.SIGKILL)


# The usual duration


def usual_ms(path: Path) -> int | None:
    with make_lock(path).exclusively(0) as hold:
        hold.ignore_duration()
        return hold.usual_ms


def test_only_a_hold_that_did_work_says_how_long_one_usually_takes(
    path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """After a build that had nothing to do, the next hint must not be one of milliseconds."""
    clock = SimpleNamespace(now=0.0)
    monkeypatch.setattr(lock_module, "time", SimpleNamespace(monotonic=lambda: clock.now))
    assert usual_ms(path) is None

    with make_lock(path).exclusively(0):
        clock.now += 3
    with make_lock(path).exclusively(0) as idle:
        idle.ignore_duration()
        clock.now += 1
    with pytest.raises(ZeroDivisionError), make_lock(path).exclusively(0):
        raise ZeroDivisionError

    assert usual_ms(path) == 3000


def test_a_record_says_free_before_the_lock_is_released(path: Path) -> None:
    """Afterwards, it would overwrite the record of the next holder."""
    with stepping(path) as stepped:
        stepped.run_until(is_release)

        with opened(path, os.O_RDONLY) as descriptor:
            record = read_record(descriptor)

        assert record is not None
        assert record.state == "free"
        stepped.finish()


def test_a_full_disk_does_not_keep_anybody_from_taking_a_lock(
    path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def refuse(*_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "pwrite", refuse)

    with ExitStack() as held:
        assert failure_of(lambda: held.enter_context(make_lock(path).exclusively(0))) is None
        other = held.enter_context(path.open())
        with pytest.raises(BlockingIOError):
            fcntl.flock(other, fcntl.LOCK_SH | fcntl.LOCK_NB)


# Lock files with several names


def copy_with_hard_links(directory: Path, copy: Path) -> None:
    """Do what `cp -al` does."""
    shutil.copytree(directory, copy, copy_function=os.link)


@pytest.fixture
def copies(tmp_path: Path) -> tuple[Path, Path]:
    """Return the paths of a lock in a directory and in its copy, after `cp -al`."""
    original = tmp_path / "original" / "build.lock"
    original.parent.mkdir()
    with make_lock(original).exclusively(0):
        pass
    copy = tmp_path / "copy" / "build.lock"
    copy_with_hard_links(original.parent, copy.parent)
    return original, copy


def inode(path: Path) -> int:
    return path.stat().st_ino


def state_of_record(path: Path) -> str | None:
    with opened(path, os.O_RDONLY) as descriptor:
        record = read_record(descriptor)
    return None if record is None else record.state


@pytest.mark.parametrize("mode", MODES)
def test_after_cp_al_both_copies_have_a_lock_of_their_own(
    copies: tuple[Path, Path],
    mode: str,
) -> None:
    original, copy = copies
    assert inode(original) == inode(copy)

    with taking(make_lock(copy), mode, 0):
        error = failure_in(make_lock(original).exclusively(0))

        assert error is None
        assert inode(original) != inode(copy)


def test_after_cp_al_both_copies_have_a_gate_of_their_own(tmp_path: Path) -> None:
    original = tmp_path / "original" / "build.lock"
    copy = tmp_path / "copy" / "build.lock"
    original.parent.mkdir()
    with make_lock(original).shared(0):
        pass
    copy_with_hard_links(original.parent, copy.parent)

    with make_lock(copy).shared(0):
        pass

    for name in ("build.lock", "build.lock.gate"):
        assert inode(original.with_name(name)) != inode(copy.with_name(name))


@pytest.mark.parametrize("mode", MODES)
def test_a_lock_file_with_several_names_is_not_replaced_while_it_is_held(
    path: Path,
    tmp_path: Path,
    mode: str,
) -> None:
    """Otherwise, a process in the holder's own directory would take the new file."""
    copy = tmp_path / "copy.lock"
    with holding(path) as other:
        copy.hardlink_to(path)

        in_same_directory = refusal(path, 0, mode)
        in_copy = refusal(copy, 0, mode)

        assert inode(copy) == inode(path)
    assert in_same_directory.context["holder"].pid == other.pid
    assert in_copy.context["holder"].pid == other.pid


def test_two_processes_that_begin_in_both_copies_at_once_both_get_a_lock(
    copies: tuple[Path, Path],
) -> None:
    original, copy = copies
    old = inode(original)
    with stepping(original) as first:
        first.run_until("os.rename")
        with waiting(copy, seconds=20) as second:
            first.run_until(is_release)

            # Both hold a lock now. The second one has kept the old file.
            assert second.hear()["got"] == "held"
            assert inode(original) != old
            assert inode(copy) == old
            assert state_of_record(copy) == "held"
        first.finish()


def test_a_new_lock_file_is_not_replaced_by_a_process_that_waited_for_the_old_one(
    copies: tuple[Path, Path], tmp_path: Path
) -> None:
    original, _ = copies
    # The old file keeps two names, so the waiting process could still take it for a shared one.
    copy_with_hard_links(original.parent, tmp_path / "second copy")
    with stepping(original) as first:
        first.run_until("os.rename")
        with waiting(original, seconds=20) as second:
            first.step()
            new = inode(original)
            with make_lock(original).exclusively(0):
                first.kill()
                wait_until(lambda: waits_for(second, new))

                assert inode(original) == new
            assert second.hear()["got"] == "held"
            assert inode(original) == new


def waits_for(process: Holding, number: int) -> bool:
    """Return whether the process waits for a lock, and has opened the file with this inode."""
    directory = Path(f"/proc/{process.pid}/fd")
    inodes = set()
    for descriptor in os.listdir(directory):
        try:
            inodes.add(inode(directory / descriptor))
        except FileNotFoundError:
            continue  # it was closed meanwhile, or it is a pipe of another process
    return number in inodes and process.is_waiting()


def test_a_lock_file_that_gets_a_second_name_during_the_wait_is_not_written_to(
    path: Path,
    tmp_path: Path,
) -> None:
    copy = tmp_path / "copy.lock"
    with holding(path) as holder, waiting(path) as waiter:
        copy.hardlink_to(path)
        holder.leave()
        assert waiter.hear()["got"] == "held"

        assert (state_of_record(path), state_of_record(copy)) == ("held", "free")


@pytest.mark.parametrize("mode", MODES)
def test_a_file_of_ours_that_was_planted_as_a_lock_file_is_not_overwritten(
    path: Path,
    mode: str,
) -> None:
    victim = path.with_name("victim")
    victim.write_text("mine")
    victim.chmod(0o600)
    path.hardlink_to(victim)

    error = failure_in(taking(make_lock(path), mode, 0))

    assert error is None
    assert inode(path) != inode(victim)
    assert victim.read_text() == "mine"


def test_a_lock_file_of_another_user_is_not_replaced(
    copies: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    original, copy = copies
    monkeypatch.setattr(os, "geteuid", lambda: original.stat().st_uid + 1)

    with pytest.raises(UnsafePath, match="another user"), make_lock(copy).exclusively(0):
        pass

    assert inode(original) == inode(copy)


def test_a_process_that_is_killed_while_it_replaces_a_lock_file_leaves_it_usable(
    copies: tuple[Path, Path],
) -> None:
    original, _ = copies
    before = sorted(os.listdir(original.parent))
    with stepping(original) as stepped:
        stepped.run_until("os.rename")
        stepped.kill()
    assert sorted(os.listdir(original.parent)) != before

    with make_lock(original).exclusively(0):
        pass

    assert sorted(os.listdir(original.parent)) == before


def test_a_new_lock_file_that_cannot_be_flushed_to_the_disk_is_used(
    copies: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    original, copy = copies

    def fail_at_the_end(path: Path, content: bytes) -> None:
        replace(path, content)
        raise NotFlushed(str(path), "input/output error")

    monkeypatch.setattr(lock_module, "replace", fail_at_the_end)

    assert failure_in(make_lock(copy).exclusively(0)) is None

    assert inode(original) != inode(copy)


# Files that cannot be lock files


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("kind", ["symlink", "fifo", "directory", "writable by others"])
def test_a_file_that_is_not_our_lock_file_is_refused(path: Path, kind: str, mode: str) -> None:
    if kind == "symlink":
        path.symlink_to("/etc/passwd")
    elif kind == "fifo":
        os.mkfifo(path, 0o600)
    elif kind == "directory":
        path.mkdir()
    else:
        path.touch()
        path.chmod(0o666)

    error = failure_in(taking(make_lock(path), mode, 0))

    assert isinstance(error, EXPECTED)
    assert to_tool_error(error).code == "UNSAFE_PATH"
    assert "build.lock" in to_tool_error(error).message


@pytest.mark.parametrize("mode", MODES)
def test_a_lock_file_of_another_user_is_refused(
    path: Path,
    mode: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    path.touch(mode=0o600)
    monkeypatch.setattr(os, "geteuid", lambda: path.stat().st_uid + 1)

    with pytest.raises(UnsafePath, match="another user"), taking(make_lock(path), mode, 0):
        pass


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("number", [errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP])
def test_a_file_system_without_locks_is_named(
    path: Path, number: int, mode: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(_descriptor: int, _operation: int) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(fcntl, "flock", refuse)

    error = failure_in(taking(make_lock(path), mode, 0))

    assert isinstance(error, LocksUnsupported)
    assert error.path.startswith(str(path))
    assert error.reason == os.strerror(number).lower()


def test_another_error_of_the_kernel_s_lock_names_the_file(
    path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def fail(_descriptor: int, _operation: int) -> None:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    monkeypatch.setattr(fcntl, "flock", fail)

    error = failure_in(make_lock(path).exclusively(0))

    assert isinstance(error, OSError)
    assert (error.errno, error.filename) == (errno.EIO, str(path))


def test_if_no_thread_can_be_started_the_error_says_so(
    path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def refuse(*_: object) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", refuse)

    with holding(path):
        error = failure_in(make_lock(path).exclusively(5))

    assert isinstance(error, BlockingIOError)
    assert error.filename == str(path)
    assert "can't start new thread" in str(error)


# The logger


def test_a_lock_of_a_path_alone_waits_and_excludes(path: Path) -> None:
    with Lock(path).exclusively():
        assert refusal(path).context["holder"].pid == os.getpid()


def test_the_log_names_who_asks_gets_waits_and_releases(
    path: Path,
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.DEBUG, logger=log.name)
    with holding(path) as other, pytest.raises(LockTimeout), make_lock(path).exclusively(0.05):
        pass
    # This one waits for the thread of the first one, which gets the lock late and releases it.
    with make_lock(path).exclusively():
        pass

    assert f"lock build: waiting for build (process {other.pid}" in caplog.text
    for verb in ("asked for", "got", "released"):
        assert f"lock build: {verb} by pid {os.getpid()}" in caplog.text


def test_a_holder_that_cannot_be_found_is_called_a_process_that_is_just_taking_it(
    path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    caplog.set_level(logging.DEBUG, logger=log.name)
    monkeypatch.setattr(lock_module, "find_owners", lambda _path: Owners([]))

    with holding(path):
        failure_in(make_lock(path).exclusively(0.05))

    assert "waiting for a process that is just taking it" in caplog.text


def test_nobody_looks_for_the_holder_if_nobody_reads_the_log(
    path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Finding the holder takes milliseconds, and the lock may be free before."""
    caplog.set_level(logging.WARNING, logger=log.name)
    looks: list[Path] = []

    def find_owners(path: Path) -> Owners:
        looks.append(path)
        return Owners([])

    monkeypatch.setattr(lock_module, "find_owners", find_owners)
    with holding(path):
        failure_in(make_lock(path).exclusively(0.05))

    # The error names the holder.
    assert looks == [path]


# Other programs


def test_our_lock_and_that_of_filelock_exclude_each_other(path: Path) -> None:
    theirs = FileLock(path, preserve_lock_file=True)

    with theirs, pytest.raises(LockTimeout):
        make_lock(path).exclusively(0).__enter__()
    with make_lock(path).exclusively(0), pytest.raises(Timeout):
        theirs.acquire(timeout=0)
