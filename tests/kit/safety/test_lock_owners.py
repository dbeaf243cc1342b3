"""Who really holds a lock, also where the kernel does not tell."""

import fcntl
import os
import signal
import subprocess
import time
from dataclasses import replace
from itertools import count
from pathlib import Path

import pytest

from sampletool.kit.safety import processes
from sampletool.kit.safety.errors import DeadlineExceeded
from sampletool.kit.safety.lock_owners import find_held, find_owners, orphans_of
from sampletool.kit.safety.lock_record import describe_me, registered, write_record
from sampletool.kit.safety.orphans import end_orphans
from sampletool.kit.safety.signals import Signals
from sampletool.kit.testing.forked import run_python, start_python
from sampletool.kit.testing.holding import Holding, holding


def test_nobody_is_named_where_nobody_holds(tmp_path: Path) -> None:
    assert find_owners(tmp_path / "never locked").holders == []


def test_having_the_file_open_is_no_proof_of_holding_it(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    with holding(path) as other:
        looking = os.open(path, os.O_RDWR)
        found = find_owners(path)
        os.close(looking)

    assert [holder.pid for holder in found.holders] == [other.pid]


@pytest.mark.leaves_litter
def test_what_is_held_is_found_among_many_old_lock_files_by_looking_at_them_all_at_once(
    tmp_path: Path, signals: Signals, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Naive: each file that nobody holds costs a look at every process, so a list gets slow with every output made."""
    paths = [tmp_path / f"output-{n}.lock" for n in range(50)]
    for path in paths:
        path.touch(mode=0o600)
    look, looks = processes.pids, count()
    monkeypatch.setattr(processes, "pids", lambda: [look(), next(looks)][0])

    assert list(find_held([*paths, tmp_path / "gone.lock"], signals.check)) == []
    idle = next(looks)
    with holding(paths[7]) as one, holding(paths[9], "shared") as two:
        found = {path: owners.holders[0].pid for path, owners in find_held(paths, signals.check)}

    assert idle == 1
    assert found == {paths[7]: one.pid, paths[9]: two.pid}


def test_a_holder_that_has_not_signed_yet_is_looked_for_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "lock"
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)

    def sign(_seconds: float) -> None:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        write_record(descriptor, describe_me("s-1", "build"))

    monkeypatch.setattr(time, "sleep", sign)
    holders = find_owners(path).holders
    os.close(descriptor)

    assert [(holder.pid, holder.command) for holder in holders] == [(os.getpid(), "build")]


def test_a_living_holder_is_not_taken_for_the_child_of_the_one_that_crashed_before(
    tmp_path: Path, signals: Signals
) -> None:
    path = tmp_path / "lock"
    with subprocess.Popen(["true"]) as dead:
        pass
    with holding(path) as other:
        descriptor = os.open(path, os.O_RDWR)
        write_record(descriptor, replace(describe_me(), pid=dead.pid, start="gone:1"))
        os.close(descriptor)

        holders = find_owners(path).holders

        assert [(holder.pid, holder.state) for holder in holders] == [(other.pid, "running")]
        assert end_orphans(path, signals) == []


_LOCK_AND_FORGET = """
import fcntl, os, sys
fcntl.flock(int(sys.argv[1]), fcntl.LOCK_EX)
os.close(int(sys.argv[1]))
print(flush=True)
sys.stdin.read()
"""


def test_an_orphan_is_known_by_its_age_where_its_holder_s_pid_was_reused(tmp_path: Path, signals: Signals) -> None:
    """A process that was started later cannot have been the holder that the orphan inherited the lock from."""
    path = tmp_path / "lock"
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    orphan = subprocess.Popen(["sleep", "600"], pass_fds=(descriptor,))
    while _starts_at(processes.started(orphan.pid)):
        time.sleep(0.01)
    words = ["-c", _LOCK_AND_FORGET, str(descriptor)]
    later = start_python(*words, pass_fds=(descriptor,), stdin=subprocess.PIPE)
    os.close(descriptor)
    try:
        assert later.stdout is not None
        later.stdout.readline()

        (holder,) = find_owners(path).holders

        assert (holder.pid, holder.state, holder.children) == (later.pid, "orphaned", (orphan.pid,))
        assert end_orphans(path, signals) == [orphan.pid]
        assert later.poll() is None
    finally:
        orphan.kill()
        orphan.communicate()
        later.kill()
        later.communicate()


def _starts_at(ticks: int | None) -> bool:
    """Whether a process that is started now would have that start time."""
    with subprocess.Popen(["sleep", "60"]) as probe:
        started = processes.started(probe.pid)
        probe.kill()
    return started == ticks


@pytest.mark.leaves_litter
def test_the_orphans_of_readers_are_found(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    reader = Holding(path, "shared", child="sleep")
    child = reader.hear()["child"]
    reader.kill()
    with holding(path, "shared") as other:
        orphans, holders = orphans_of(path), find_owners(path).holders
    os.kill(child, signal.SIGKILL)

    assert orphans == [child]
    assert {(holder.pid, holder.state) for holder in holders} == {(reader.pid, "orphaned"), (other.pid, "running")}


_SHARE_WITH_A_CHILD = """
import fcntl, subprocess, sys
with open(sys.argv[1]) as lock:
    fcntl.flock(lock, fcntl.LOCK_SH)
    child = subprocess.Popen(["sleep", "600"], pass_fds=[lock.fileno()], stdout=subprocess.DEVNULL)
    print(child.pid)
"""


@pytest.mark.leaves_litter
def test_an_orphan_without_a_record_is_found_beside_the_readers_that_have_one(tmp_path: Path) -> None:
    """What a child starts may inherit the lock and close the record."""
    path = tmp_path / "lock"
    with holding(path, "shared"):
        child = int(run_python("-c", _SHARE_WITH_A_CHILD, path).stdout)
        orphans = orphans_of(path)
    os.kill(child, signal.SIGKILL)

    assert orphans == [child]


def test_a_lock_of_a_holder_that_cannot_be_seen_is_listed_only_while_it_is_held(
    tmp_path: Path, signals: Signals
) -> None:
    paths = [tmp_path / "held.lock", tmp_path / "stale.lock", tmp_path / "read.lock"]
    elsewhere = replace(describe_me("s-1", "build"), pid_namespace="pid:[1]")
    for path in paths[:2]:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
        write_record(descriptor, elsewhere)
        os.close(descriptor)
    paths[2].touch(mode=0o600)
    kept = os.open(paths[0], os.O_RDWR)
    fcntl.flock(kept, fcntl.LOCK_EX)

    with registered(paths[2], elsewhere):
        found = dict(find_held(paths, signals.check))
    os.close(kept)

    assert list(found) == [paths[0], paths[2]]
    for owners in found.values():
        assert [(holder.state, holder.verified) for holder in owners.holders] == [("unknown", False)]


def test_looking_through_locks_ends_when_the_call_has_to(tmp_path: Path, signals: Signals) -> None:
    signals.limit(0)

    with pytest.raises(DeadlineExceeded):
        list(find_held([tmp_path / "lock"], signals.check))
