"""Orphans are ended; nobody living is harmed."""

import os
import signal
import subprocess
from pathlib import Path

from sampletool.kit.safety.orphans import end_orphans
from sampletool.kit.safety.processes import is_running
from sampletool.kit.safety.signals import Signals
from sampletool.kit.testing.holding import Holding, holding, make_lock


def orphaned(path: Path, mode: str = "exclusive") -> int:
    """A child that keeps the lock of a holder that was killed."""
    other = Holding(path, mode, child="sleep")
    child = int(other.hear()["child"])
    other.kill()
    return child


def test_an_orphan_is_ended_and_the_lock_is_free(tmp_path: Path, signals: Signals) -> None:
    path = tmp_path / "lock"
    child = orphaned(path)

    assert end_orphans(path, signals) == [child]

    assert not is_running(child)
    with make_lock(path).exclusively(1):
        pass


def test_a_living_holder_is_never_harmed(tmp_path: Path, signals: Signals) -> None:
    path = tmp_path / "lock"
    with holding(path, child="") as other:
        assert end_orphans(path, signals) == []
        assert is_running(other.pid)


def test_a_living_reader_beside_an_orphan_is_never_harmed(tmp_path: Path, signals: Signals) -> None:
    path = tmp_path / "lock"
    child = orphaned(path, "shared")
    with holding(path, "shared") as other:
        assert end_orphans(path, signals) == [child]
        assert is_running(other.pid)


def test_who_merely_has_the_file_open_is_never_harmed(tmp_path: Path, signals: Signals) -> None:
    path = tmp_path / "lock"
    child = orphaned(path)
    descriptor = os.open(path, os.O_RDWR)
    bystander = subprocess.Popen(["sleep", "60"], pass_fds=(descriptor,))
    os.close(descriptor)
    try:
        assert end_orphans(path, signals) == [child]
        assert is_running(bystander.pid)
    finally:
        bystander.send_signal(signal.SIGKILL)
        bystander.wait()


def test_where_there_is_no_lock_there_is_nothing_to_end(tmp_path: Path, signals: Signals) -> None:
    assert end_orphans(tmp_path / "never", signals) == []
