"""sampletool/kit/testing/holding.py: a process holds a lock for as long as a test needs it."""

import os
from pathlib import Path

import pytest

from sampletool.kit.safety.errors import LockTimeout
from sampletool.kit.testing.holding import Holding, holding, make_lock
from sampletool.kit.testing.waiting import wait_until


@pytest.fixture
def lock(tmp_path: Path) -> Path:
    """Return the path of a lock."""
    return tmp_path / "x.lock"


def _can_lock(path: Path, mode: str) -> bool:
    """Return whether this process can take the lock now."""
    ours = make_lock(path)
    held = ours.exclusively(0) if mode == "exclusive" else ours.shared(0)
    try:
        with held:
            return True
    except LockTimeout:
        return False


def test_an_exclusive_holder_keeps_everybody_out_until_the_block_ends(lock: Path) -> None:
    with holding(lock):
        during = [_can_lock(lock, "exclusive"), _can_lock(lock, "shared")]

    assert during == [False, False]
    assert _can_lock(lock, "exclusive")


@pytest.mark.leaves_litter
def test_a_reader_keeps_only_writers_out(lock: Path) -> None:
    with holding(lock, "shared"):
        during = [_can_lock(lock, "exclusive"), _can_lock(lock, "shared")]

    assert during == [False, True]


def test_the_record_names_the_command_and_the_session(lock: Path) -> None:
    with (
        holding(lock) as holder,
        pytest.raises(LockTimeout) as caught,
        make_lock(lock).exclusively(0),
    ):
        raise AssertionError("two processes hold the lock")

    (owner,) = caught.value.owners.holders
    assert (owner.pid, owner.command, owner.session_id) == (holder.pid, "build", "s-1")


def test_a_process_that_waits_gets_the_lock_when_it_is_free(lock: Path) -> None:
    with holding(lock) as holder:
        waiting = Holding(lock, timeout_seconds=30)
        wait_until(waiting.is_waiting)
        was_holding = holder.is_waiting()
        holder.leave()

        message = waiting.hear()
        waiting.leave()

    assert was_holding is False
    assert message == {"got": "held"}


def test_a_process_that_does_not_get_the_lock_reports_the_error(lock: Path) -> None:
    with holding(lock):
        refused = Holding(lock, timeout_seconds=0)
        message = refused.hear()
        refused.leave()

    assert message["got"] == "LOCK_HELD"
    assert 0 <= message["waited"] < 30


def test_a_holder_that_leaves_reports_when_it_had_the_lock(lock: Path) -> None:
    with holding(lock) as holder:
        assert holder.process.stdin is not None
        holder.process.stdin.close()
        message = holder.hear()

    assert list(message) == ["asked", "got", "releasing"]
    assert message["asked"] <= message["got"] <= message["releasing"]


def test_a_child_keeps_the_lock_of_a_holder_that_was_killed(lock: Path) -> None:
    holder = Holding(lock, child="sleep")
    message = holder.hear()
    child: int = message.get("child", 0)
    holder.kill()

    can_lock_while_child_runs = _can_lock(lock, "exclusive")
    os.kill(child, 9)
    wait_until(lambda: _can_lock(lock, "exclusive"))

    assert message["got"] == "held"
    assert can_lock_while_child_runs is False


def test_a_holder_in_an_interpreter_of_its_own_holds_the_lock_too(
    lock: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # The fork server has another value, so it cannot start this process.
    monkeypatch.setenv("LC_ALL", "C")

    with holding(lock) as holder:
        can_lock = _can_lock(lock, "exclusive")
        holder.leave()
        exit_code = holder.process.returncode

    assert can_lock is False
    assert exit_code == 0
