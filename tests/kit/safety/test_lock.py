"""A named lock: exclusive or shared, with a deadline, fair, and freed by any death."""

import errno
import fcntl
import json
import logging
import os
import signal
import subprocess
import sys
import threading
import time
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from sampletool.kit.contract.errors import Interrupted, NestedCall, TimedOut, ToolError
from sampletool.kit.contract.file_errors import LocksUnsupported, UnsafePath
from sampletool.kit.contract.lock_held import LockHeld
from sampletool.kit.safety.lock import log
from sampletool.kit.safety.signals import Signals
from sampletool.kit.testing.holding import Holding, holding, make_lock
from sampletool.kit.testing.scale import scale


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "build.lock"


def refusal(path: Path, timeout_seconds: float = 0.0, mode: str = "exclusive") -> LockHeld:
    lock = make_lock(path)
    with (
        pytest.raises(LockHeld) as caught,
        lock.exclusively(timeout_seconds) if mode == "exclusive" else lock.shared(timeout_seconds),
    ):
        pass
    return caught.value


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
    assert 100 <= (error.retry_after_ms or 0) <= 10_000


def test_the_deadline_is_kept_within_two_polls(path: Path) -> None:
    with holding(path):
        error = refusal(path, 0.3)

    assert 300 <= error.context["waited_ms"] <= 300 + 2 * 10 + 60


def test_without_patience_nobody_waits(path: Path) -> None:
    with holding(path):
        error = refusal(path, 0.0)

    assert error.context["waited_ms"] < 100


def test_a_lock_is_free_after_kill_9_and_the_next_holder_is_told(path: Path) -> None:
    with holding(path) as other:
        other.kill()

    with make_lock(path).exclusively(0) as hold:
        assert hold.crashed is not None
        assert hold.crashed.pid == other.pid
    with make_lock(path).exclusively(0) as after:
        assert after.crashed is None


def test_a_reader_too_is_told_of_a_crash_and_clears_it(path: Path) -> None:
    with holding(path) as other:
        other.kill()

    with make_lock(path).shared(0) as hold:
        assert hold.crashed is not None
    with make_lock(path).shared(0) as after:
        assert after.crashed is None


def test_readers_share_and_keep_a_writer_out_by_name(path: Path) -> None:
    with holding(path, "shared") as one, holding(path, "shared") as two:
        error = refusal(path)
        with make_lock(path).shared(0):
            pass

    assert {holder.pid for holder in error.context["holders"]} == {one.pid, two.pid}
    assert "2 calls are using 'build'" in error.message


def test_a_writer_keeps_readers_out(path: Path) -> None:
    with holding(path) as other:
        error = refusal(path, mode="shared")

    assert error.context["holder"].pid == other.pid


def test_fifty_readers_at_once_all_get_in(path: Path) -> None:
    readers = [Holding(path, "shared") for _ in range(scale(12, 50))]

    answers = [reader.hear()["told"] for reader in readers]
    for reader in readers:
        reader.leave()

    assert answers == ["held"] * len(readers)
    assert os.listdir(path.with_name("build.lock.readers")) == []


def test_a_stream_of_readers_does_not_starve_a_writer(path: Path) -> None:
    stop = threading.Event()

    def keep_reading() -> None:
        while not stop.is_set():
            with make_lock(path).shared(5):
                time.sleep(0.02)

    streams = [threading.Thread(target=keep_reading) for _ in range(3)]
    for stream in streams:
        stream.start()
    try:
        with make_lock(path).exclusively(5) as hold:
            pass
    finally:
        stop.set()
        for stream in streams:
            stream.join()

    assert hold.waited_ms < 1000


_LOOPER = """
import json, sys, time
from pathlib import Path
from sampletool.kit.testing.holding import make_lock
turns, longest, end = 0, 0.0, time.monotonic() + float(sys.argv[2])
while time.monotonic() < end:
    asked = time.monotonic()
    with make_lock(Path(sys.argv[1])).exclusively(10):
        longest = max(longest, time.monotonic() - asked)
        turns += 1
        time.sleep(0.002)
print(json.dumps({"turns": turns, "longest": longest}))
"""


def test_hot_loopers_share_the_lock_fairly(path: Path) -> None:
    seconds = str(scale(2, 6))
    loopers = [
        subprocess.Popen([sys.executable, "-c", _LOOPER, str(path), seconds], stdout=subprocess.PIPE) for _ in range(4)
    ]

    turns: list[dict[str, Any]] = [json.loads(looper.communicate(timeout=60)[0]) for looper in loopers]

    counts = [turn["turns"] for turn in turns]
    assert min(counts) > max(counts) / 4, counts


def test_holds_never_overlap_also_when_a_holder_is_killed(path: Path) -> None:
    stretches = []
    for turn in range(scale(3, 20)):
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


def test_a_replaced_lock_file_is_noticed_and_the_new_one_is_taken(path: Path) -> None:
    """Naive: whoever locked the old file believes to be alone beside the holder of the new one."""
    path.touch(mode=0o600)
    naive = os.open(path, os.O_RDWR)
    path.unlink()
    fcntl.flock(naive, fcntl.LOCK_EX | fcntl.LOCK_NB)

    with make_lock(path).exclusively(0):
        assert os.fstat(naive).st_ino != path.stat().st_ino
        error = refusal(path)

    assert error.context["holder"].pid == os.getpid()
    os.close(naive)


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
        with pytest.raises(UnsafePath, match="build"), getattr(make_lock(path), mode)(0):
            pass


@pytest.mark.parametrize("number", [errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP])
def test_a_file_system_without_locks_is_told_by_name_and_never_papered_over(
    path: Path, number: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(_descriptor: int, _operation: int) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(fcntl, "flock", refuse)

    for mode in ("exclusively", "shared"):
        with pytest.raises(LocksUnsupported), getattr(make_lock(path), mode)(0):
            pass


def test_a_signal_ends_the_wait_and_leaves_nothing_held(path: Path) -> None:
    signals = Signals()
    with holding(path):
        signals.received = signal.SIGTERM
        with pytest.raises(Interrupted), make_lock(path, signals).exclusively(10):
            pass

    with make_lock(path).exclusively(0):
        pass


@pytest.mark.parametrize("limit", [0.0, 0.1])
def test_the_end_of_the_whole_call_s_time_is_told_as_such_with_who_was_waited_for(path: Path, limit: float) -> None:
    signals = Signals()
    signals.limit(limit)

    with holding(path) as other, pytest.raises(TimedOut) as caught, make_lock(path, signals).exclusively(10):
        pass

    assert caught.value.context["timeout_ms"] == limit * 1000
    assert caught.value.context["holder"].pid == other.pid
    assert caught.value.context["waited_ms"] < 5000
    assert str(other.pid) in caught.value.message


def test_a_wait_that_ends_by_its_own_patience_is_lock_held_also_where_the_call_has_a_limit(path: Path) -> None:
    for patience, limit in ((0.1, 5.0), (0.0, 0.0)):
        signals = Signals()
        signals.limit(limit)

        with holding(path), pytest.raises(LockHeld) as caught, make_lock(path, signals).exclusively(patience):
            pass

        assert caught.value.context["timeout_ms"] == patience * 1000


def test_a_nested_call_for_an_ancestor_s_lock_fails_at_once(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOOL_LOCKS", f"/other\n{path}")

    with pytest.raises(NestedCall), make_lock(path).exclusively(10):
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
        assert "has ended" in error.message
    finally:
        os.kill(orphan, signal.SIGKILL)

    with make_lock(path).exclusively(5) as hold:
        assert hold.crashed is not None


def test_the_usual_time_of_a_hold_informs_the_retry_hint(path: Path) -> None:
    with make_lock(path).exclusively(0):
        time.sleep(0.4)

    with holding(path):
        error = refusal(path)

    assert 200 <= (error.retry_after_ms or 0) <= 700


def test_the_log_names_who_asks_gets_waits_and_releases(path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG, logger=log.name)
    with holding(path) as other, pytest.raises(ToolError), make_lock(path).exclusively(0.05):
        pass
    with make_lock(path).exclusively(0):
        pass

    assert f"waiting for build (pid {other.pid}" in caplog.text
    assert all(f"{verb} by pid {os.getpid()}" in caplog.text for verb in ("asked for", "got", "released"))
