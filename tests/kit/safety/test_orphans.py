"""Orphans are ended; nobody living is harmed."""

import os
import signal
import subprocess
from pathlib import Path

import pytest

from sampletool.kit.safety import orphans
from sampletool.kit.safety.orphans import end_orphans
from sampletool.kit.safety.processes import started
from sampletool.kit.safety.signals import Signals
from sampletool.kit.testing.holding import Holding, holding, make_lock
from tests.kit.waiting import wait_until


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

    assert started(child) is None
    with make_lock(path).exclusively(1):
        pass


def test_a_living_holder_is_never_harmed(tmp_path: Path, signals: Signals) -> None:
    path = tmp_path / "lock"
    with holding(path, child="") as other:
        assert end_orphans(path, signals) == []
        assert started(other.pid)


@pytest.mark.leaves_litter
def test_a_living_reader_beside_an_orphan_is_never_harmed(tmp_path: Path, signals: Signals) -> None:
    path = tmp_path / "lock"
    child = orphaned(path, "shared")
    with holding(path, "shared") as other:
        assert end_orphans(path, signals) == [child]
        assert started(other.pid)


def test_who_merely_has_the_file_open_is_never_harmed(tmp_path: Path, signals: Signals) -> None:
    path = tmp_path / "lock"
    child = orphaned(path)
    descriptor = os.open(path, os.O_RDWR)
    bystander = subprocess.Popen(["sleep", "60"], pass_fds=(descriptor,))
    os.close(descriptor)
    try:
        assert end_orphans(path, signals) == [child]
        assert started(bystander.pid)
    finally:
        bystander.send_signal(signal.SIGKILL)
        bystander.wait()


def test_where_there_is_no_lock_there_is_nothing_to_end(tmp_path: Path, signals: Signals) -> None:
    assert end_orphans(tmp_path / "never", signals) == []


def script(directory: Path, on_term: str) -> str:
    """A child that does this when it is asked to end, and says when it is ready for it."""
    path = directory / "child"
    path.write_text(f"#!/bin/sh\ntrap '{on_term}' TERM\ntouch ready\nwhile :; do sleep 0.01; done\n")
    path.chmod(0o700)
    return str(path)


@pytest.mark.parametrize("on_term", ["sleep 0.3; touch cleaned; exit", ""], ids=["obeys", "ignores"])
def test_an_orphan_is_asked_first_and_killed_if_it_does_not_obey(
    tmp_path: Path, signals: Signals, on_term: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(orphans, "_PATIENCE_SECONDS", 30.0 if on_term else 0.1)
    monkeypatch.chdir(tmp_path)
    holder = Holding(tmp_path / "lock", child=script(tmp_path, on_term))
    child = int(holder.hear()["child"])
    wait_until((tmp_path / "ready").exists)
    holder.kill()

    assert child in end_orphans(tmp_path / "lock", signals)  # beside the `sleep` that it was running

    assert started(child) is None
    assert (tmp_path / "cleaned").exists() == bool(on_term)


def test_a_process_is_looked_at_again_before_it_is_signalled(
    tmp_path: Path, signals: Signals, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its pid may have passed to an innocent process while it was opened."""
    with subprocess.Popen(["sleep", "60"]) as innocent:
        looks = iter([[innocent.pid], []])
        monkeypatch.setattr(orphans, "orphans_of", lambda _path: next(looks, []))

        assert end_orphans(tmp_path / "lock", signals) == []

        assert innocent.poll() is None
        innocent.kill()
