"""The processes that hold a lock are found, and doubt is reported as doubt."""

import errno
import fcntl
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from sampletool.kit.safety import processes
from sampletool.kit.safety.errors import DeadlineExceeded
from sampletool.kit.safety.lock_owners import (
    Carrier,
    find_carriers,
    find_held_locks,
    find_orphans,
    find_owners,
)
from sampletool.kit.safety.lock_record import Record, describe_me, listed_as_reader, write_record
from sampletool.kit.safety.orphans import end_orphans
from sampletool.kit.safety.signals import Signals
from sampletool.kit.testing.forked import run_python, start_python
from sampletool.kit.testing.holding import Holding, holding


@contextmanager
def locked(path: Path, record: Record | None = None) -> Iterator[int]:
    """Hold the lock in this process, with a record that may be about another process."""
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        if record is not None:
            write_record(descriptor, record)
        yield descriptor
    finally:
        os.close(descriptor)


def leave_record(
    path: Path,
    record: Record,
    usual_ms: int | None = None,
    state: str = "held",
) -> None:
    """Leave a record in the lock file, whoever holds the lock."""
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    write_record(descriptor, record, usual_ms, state)
    os.close(descriptor)


def make_orphan(path: Path, mode: str = "exclusive") -> tuple[Holding, int]:
    """Kill a holder. Return it, and the pid of its child, which keeps the lock."""
    holder = Holding(path, mode, child="sleep")
    child_pid = int(holder.hear()["child"])
    holder.kill()
    return holder, child_pid


def describe(pid: int) -> Record:
    """Return the record that a running process would write about itself."""
    return replace(describe_me("s-1", "build"), pid=pid, start=processes.start_of(pid))


def describe_dead() -> Record:
    """Return the record of a process that has exited."""
    with subprocess.Popen(["true"]) as process:
        pass
    return replace(describe_me("s-1", "build"), pid=process.pid, start="gone:1")


def describe_elsewhere() -> Record:
    """Return the record of a process in another container, which has the pid of this process."""
    return replace(describe_me("s-1", "build"), pid_namespace="pid:[1]")


@pytest.fixture
def bystander() -> Iterator[subprocess.Popen[bytes]]:
    """Start a process that has nothing to do with any lock, and kill it after the test."""
    with subprocess.Popen(["sleep", "600"]) as process:
        yield process
        process.kill()


# All of it

_PRINT_HELD_LOCKS = """
import signal, sys
from pathlib import Path
from sampletool.kit.safety.lock_owners import find_held_locks, find_orphans

signal.alarm(15)  # rather than wait without end
for path, owners in find_held_locks([Path(name) for name in sys.argv[1:]], lambda: None):
    print(path.name, owners.shared, owners.usual_ms, find_orphans(path))
    for holder in owners.holders:
        print(holder.pid, holder.state, holder.verified, holder.command, holder.children)
"""


@pytest.mark.leaves_litter
def test_another_process_finds_all_locks_that_are_held_and_who_holds_them(tmp_path: Path) -> None:
    names = ["exclusive", "shared", "orphaned", "unrecorded", "elsewhere", "free", "stale", "none"]
    paths = [tmp_path / name for name in names]
    exclusive, shared, orphaned, unrecorded, elsewhere, free, stale, _none = paths
    leave_record(free, describe_me(), usual_ms=7000, state="free")
    leave_record(stale, describe_dead())
    leave_record(unrecorded, describe_me(), usual_ms=8000, state="free")
    dead, child_pid = make_orphan(orphaned)

    with (
        holding(exclusive) as other,
        holding(shared, "shared") as reader,
        locked(unrecorded),
        locked(elsewhere, describe_elsewhere()),
    ):
        printed = run_python("-c", _PRINT_HELD_LOCKS, *paths, check=False)
    os.kill(child_pid, signal.SIGKILL)

    assert printed.stderr == ""
    assert printed.stdout.splitlines() == [
        "exclusive False None []",
        f"{other.pid} running True build None",
        "shared True None []",
        f"{reader.pid} running True build None",
        f"orphaned False None [{child_pid}]",
        f"{dead.pid} orphaned True build ({child_pid},)",
        "unrecorded False 8000 []",
        f"{os.getpid()} running True None None",
        "elsewhere False None []",
        f"{os.getpid()} unknown False build None",
    ]


# Exclusive locks


def test_a_lock_that_never_existed_has_no_holder_and_is_not_looked_for_again(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    sleeps: list[float] = []
    monkeypatch.setattr(time, "sleep", sleeps.append)

    owners = find_owners(tmp_path / "never locked")

    assert owners.holders == []
    assert sleeps == []


def test_a_holder_is_named_by_its_record_and_confirmed_by_the_kernel(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    with holding(path) as other:
        owners = find_owners(path)

    (holder,) = owners.holders
    assert not owners.shared
    assert (holder.pid, holder.state, holder.verified) == (other.pid, "running", True)
    assert (holder.command, holder.session_id, holder.children) == ("build", "s-1", None)


def test_having_the_file_open_is_no_proof_of_holding_it(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    with holding(path) as other, path.open("r+b"):
        owners = find_owners(path)

    assert [holder.pid for holder in owners.holders] == [other.pid]


def test_a_holder_without_a_record_is_named_by_the_kernel(tmp_path: Path) -> None:
    with locked(tmp_path / "lock"):
        (holder,) = find_owners(tmp_path / "lock").holders

    assert (holder.pid, holder.state, holder.verified) == (os.getpid(), "running", True)
    assert holder.command is None


def test_the_duration_of_the_last_hold_is_known_whoever_holds_the_lock(tmp_path: Path) -> None:
    with locked(tmp_path / "lock") as descriptor:
        write_record(descriptor, describe_me(), usual_ms=7000, state="free")
        after_free = find_owners(tmp_path / "lock")
        write_record(descriptor, describe_me(), usual_ms=8000)
        after_held = find_owners(tmp_path / "lock")

    assert after_free.usual_ms == 7000
    assert after_held.usual_ms == 8000
    assert after_free.holders[0].command is None


def test_a_holder_that_has_not_written_its_record_yet_is_looked_for_again(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    path = tmp_path / "lock"
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)

    def take_the_lock(_seconds: float) -> None:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        write_record(descriptor, describe_me("s-1", "build"))

    monkeypatch.setattr(time, "sleep", take_the_lock)
    holders = find_owners(path).holders
    os.close(descriptor)

    assert [(holder.pid, holder.command) for holder in holders] == [(os.getpid(), "build")]


# Records that are wrong


def test_the_record_of_a_running_process_without_the_lock_names_nobody(
    tmp_path: Path,
    bystander: subprocess.Popen[bytes],
) -> None:
    leave_record(tmp_path / "lock", describe(bystander.pid))

    assert find_owners(tmp_path / "lock").holders == []


def test_the_holder_is_named_instead_of_a_running_process_that_left_its_record(
    tmp_path: Path,
    bystander: subprocess.Popen[bytes],
) -> None:
    with locked(tmp_path / "lock", describe(bystander.pid)):
        (holder,) = find_owners(tmp_path / "lock").holders

    assert (holder.pid, holder.state, holder.verified) == (os.getpid(), "running", True)


def test_a_record_that_has_been_set_free_names_nobody(tmp_path: Path) -> None:
    leave_record(tmp_path / "lock", describe_elsewhere(), state="free")

    assert find_owners(tmp_path / "lock").holders == []


def test_a_living_holder_is_not_taken_for_the_child_of_the_one_that_crashed_before(
    tmp_path: Path,
    signals: Signals,
) -> None:
    path = tmp_path / "lock"
    with holding(path) as other:
        leave_record(path, describe_dead())

        holders = find_owners(path).holders

        assert [(holder.pid, holder.state) for holder in holders] == [(other.pid, "running")]
        assert end_orphans(path, signals) == []


# Holders that cannot be seen


def test_a_holder_elsewhere_is_named_by_its_record_without_being_verified(tmp_path: Path) -> None:
    with locked(tmp_path / "lock", describe_elsewhere()):
        (holder,) = find_owners(tmp_path / "lock").holders

    assert (holder.state, holder.verified, holder.command) == ("unknown", False, "build")


def test_a_holder_is_named_without_being_verified_where_no_processes_can_be_seen(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """This is so on systems that do not have /proc."""
    with holding(tmp_path / "lock") as other:
        monkeypatch.setattr(processes, "can_see_processes", lambda: False)

        holders = find_owners(tmp_path / "lock").holders

    facts = [(holder.pid, holder.state, holder.verified) for holder in holders]
    assert facts == [(other.pid, "unknown", False)]


def hide_files_of(pid: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the open files of a process look like those of a process in another user namespace."""
    open_files = processes.open_files

    def visible_files(of_pid: int) -> Iterator[tuple[str, os.stat_result]]:
        if of_pid != pid:
            yield from open_files(of_pid)

    monkeypatch.setattr(processes, "open_files", visible_files)


def test_a_hidden_holder_is_named_by_its_record_without_being_verified(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with holding(tmp_path / "lock") as other:
        hide_files_of(other.pid, monkeypatch)

        (holder,) = find_owners(tmp_path / "lock").holders

    assert (holder.pid, holder.state, holder.verified) == (other.pid, "unknown", False)
    assert holder.command == "build"


def test_a_hidden_process_is_not_named_where_the_kernel_names_another_one(
    tmp_path: Path,
    bystander: subprocess.Popen[bytes],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    hide_files_of(bystander.pid, monkeypatch)

    with locked(tmp_path / "lock", describe(bystander.pid)):
        (holder,) = find_owners(tmp_path / "lock").holders

    assert (holder.pid, holder.verified) == (os.getpid(), True)


def test_a_process_that_has_exited_is_not_taken_for_a_hidden_one(tmp_path: Path) -> None:
    leave_record(tmp_path / "lock", describe_dead())

    assert find_owners(tmp_path / "lock").holders == []


def unshare_command(*options: str) -> list[str]:
    """Return the command that starts a program in new namespaces. Skip the test if it fails."""
    unshare = ["unshare", "--user", "--map-root-user", *options]
    if shutil.which("unshare") is None:
        pytest.skip("there is no program unshare")
    tried = subprocess.run([*unshare, "true"], stderr=subprocess.DEVNULL, check=False)
    if tried.returncode != 0:
        pytest.skip(f"this user may not run {' '.join(unshare)}")
    return unshare


def test_a_holder_is_named_to_a_process_in_a_user_namespace(tmp_path: Path) -> None:
    unshare = unshare_command()
    with holding(tmp_path / "lock") as other:
        # A fresh interpreter, which unshare starts: the fork server forks in its own namespace.
        printed = subprocess.run(
            [*unshare, sys.executable, "-c", _PRINT_HELD_LOCKS, tmp_path / "lock"],
            capture_output=True,
            text=True,
            check=False,
        )

    assert printed.stderr == ""
    assert printed.stdout.splitlines() == [
        "lock False None []",
        f"{other.pid} unknown False build None",
    ]


# Orphans


def test_a_child_that_keeps_the_lock_of_a_dead_holder_is_its_orphan(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    dead, child_pid = make_orphan(path)

    (holder,) = find_owners(path).holders
    orphans = find_orphans(path)
    os.kill(child_pid, signal.SIGKILL)

    assert (holder.pid, holder.state, holder.verified) == (dead.pid, "orphaned", True)
    assert (holder.command, holder.children) == ("build", (child_pid,))
    assert orphans == [child_pid]


_LOCK_AND_CLOSE = """
import fcntl, os, sys
fcntl.flock(int(sys.argv[1]), fcntl.LOCK_EX)
os.close(int(sys.argv[1]))
print(flush=True)
sys.stdin.read()
"""


def test_an_orphan_is_known_by_its_age_where_the_pid_of_its_holder_was_reused(
    tmp_path: Path,
    signals: Signals,
) -> None:
    """A process that started later than the orphan cannot have been its parent."""
    path = tmp_path / "lock"
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    orphan = subprocess.Popen(["sleep", "600"], pass_fds=(descriptor,))
    while would_start_at(processes.start_ticks(orphan.pid)):
        time.sleep(0.01)
    later = start_python(
        "-c",
        _LOCK_AND_CLOSE,
        str(descriptor),
        pass_fds=(descriptor,),
        stdin=subprocess.PIPE,
    )
    os.close(descriptor)
    try:
        assert later.stdout is not None
        later.stdout.readline()

        (holder,) = find_owners(path).holders

        assert (holder.pid, holder.state, holder.children) == (later.pid, "orphaned", (orphan.pid,))
        assert holder.verified
        assert end_orphans(path, signals) == [orphan.pid]
        assert later.poll() is None
    finally:
        orphan.kill()
        orphan.communicate()
        later.kill()
        later.communicate()


def test_the_holder_is_an_orphan_if_the_locker_that_the_kernel_names_has_exited(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """In a pid namespace, the kernel does not name a locker that has exited. So it is arranged."""
    dead_pid = describe_dead().pid

    def locker_of(pid: int, _file: os.stat_result) -> int | None:
        return dead_pid if pid == os.getpid() else None

    monkeypatch.setattr(processes, "locker_of", locker_of)

    with locked(tmp_path / "lock"):
        holders = find_owners(tmp_path / "lock").holders

    facts = [(holder.pid, holder.state, holder.children) for holder in holders]
    assert facts == [(dead_pid, "orphaned", (os.getpid(),))]


def would_start_at(ticks: int | None) -> bool:
    """Return whether a process that is started now would have this start time."""
    with subprocess.Popen(["sleep", "60"]) as probe:
        start = processes.start_ticks(probe.pid)
        probe.kill()
    return start == ticks


def test_a_lock_without_a_file_has_no_orphans(tmp_path: Path) -> None:
    assert find_orphans(tmp_path / "never locked") == []


def test_a_process_whose_locker_is_unknown_is_no_orphan(
    tmp_path: Path,
    bystander: subprocess.Popen[bytes],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Its locker may be running in another pid namespace."""
    leave_record(tmp_path / "lock", describe_elsewhere())

    def locker_of(pid: int, _file: os.stat_result) -> int | None:
        return 0 if pid == bystander.pid else None

    monkeypatch.setattr(processes, "locker_of", locker_of)

    assert find_orphans(tmp_path / "lock") == []


def test_a_process_in_a_pid_namespace_is_no_orphan_of_a_holder_outside_of_it(
    tmp_path: Path,
) -> None:
    """Otherwise `lock release` in a container would end what a running holder started there."""
    unshare = unshare_command("--pid", "--fork", "--mount-proc")
    with locked(tmp_path / "lock", describe_me("s-1", "build")) as descriptor:
        # The program inherits the lock. A fresh interpreter, as above.
        printed = subprocess.run(
            [*unshare, sys.executable, "-c", _PRINT_HELD_LOCKS, tmp_path / "lock"],
            pass_fds=[descriptor],
            capture_output=True,
            text=True,
            check=False,
        )

    assert printed.stderr == ""
    assert printed.stdout.splitlines() == [
        "lock False None []",
        f"{os.getpid()} unknown False build None",
    ]


def test_the_carriers_of_a_lock_are_the_locker_and_its_children(tmp_path: Path) -> None:
    with (
        locked(tmp_path / "lock") as descriptor,
        subprocess.Popen(["sleep", "600"], pass_fds=[descriptor]) as child,
    ):
        carriers = list(find_carriers(os.fstat(descriptor)))
        child.kill()

    mine = Carrier(pid=os.getpid(), locker_pid=os.getpid())
    of_the_child = Carrier(pid=child.pid, locker_pid=os.getpid())
    assert sorted(carriers, key=lambda carrier: carrier.pid) == sorted(
        [mine, of_the_child], key=lambda carrier: carrier.pid
    )


def test_a_holder_with_a_child_is_not_taken_for_an_orphan(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    with (
        locked(path) as descriptor,
        subprocess.Popen(["sleep", "600"], pass_fds=[descriptor]) as child,
    ):
        (holder,) = find_owners(path).holders
        orphans = find_orphans(path)
        child.kill()

    assert (holder.pid, holder.state) == (os.getpid(), "running")
    assert orphans == []


# Shared locks


@pytest.mark.leaves_litter
def test_the_orphans_of_readers_are_found(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    dead, child_pid = make_orphan(path, "shared")
    with holding(path, "shared") as other:
        orphans = find_orphans(path)
        owners = find_owners(path)
    os.kill(child_pid, signal.SIGKILL)

    assert orphans == [child_pid]
    assert owners.shared
    states = {(holder.pid, holder.state, holder.verified) for holder in owners.holders}
    assert states == {(dead.pid, "orphaned", True), (other.pid, "running", True)}


_SHARE_WITH_A_CHILD = """
import fcntl, subprocess, sys
with open(sys.argv[1]) as lock:
    fcntl.flock(lock, fcntl.LOCK_SH)
    child = subprocess.Popen(
        ["sleep", "600"], pass_fds=[lock.fileno()], stdout=subprocess.DEVNULL
    )
    print(child.pid)
"""


@pytest.mark.leaves_litter
def test_an_orphan_without_a_record_is_found_beside_the_readers_that_have_one(
    tmp_path: Path,
) -> None:
    """A process may inherit the lock file from a reader, but not the reader's record file."""
    path = tmp_path / "lock"
    with holding(path, "shared"):
        child_pid = int(run_python("-c", _SHARE_WITH_A_CHILD, path).stdout)
        orphans = find_orphans(path)
    os.kill(child_pid, signal.SIGKILL)

    assert orphans == [child_pid]


# Which locks are held


@pytest.mark.leaves_litter
def test_held_locks_are_found_among_old_lock_files_with_one_look_at_the_processes(
    tmp_path: Path,
    signals: Signals,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """With a look for each file, a list takes longer with every output that was ever built."""
    paths = [tmp_path / f"output-{n}.lock" for n in range(50)]
    for path in paths:
        path.touch(mode=0o600)
    look = processes.pids
    looks = []

    def count_looks() -> list[int]:
        looks.append("look")
        return look()

    monkeypatch.setattr(processes, "pids", count_looks)

    free_locks = list(find_held_locks([*paths, tmp_path / "gone.lock"], signals.check))
    looks_at_free_locks = len(looks)
    with holding(paths[7]) as one, holding(paths[9], "shared") as two:
        held_locks = list(find_held_locks(paths, signals.check))

    assert free_locks == []
    assert looks_at_free_locks == 1
    pids = {path: [holder.pid for holder in owners.holders] for path, owners in held_locks}
    assert pids == {paths[7]: [one.pid], paths[9]: [two.pid]}


def test_a_lock_that_is_only_open_is_not_held(tmp_path: Path, signals: Signals) -> None:
    path = tmp_path / "lock"
    with path.open("w"):
        assert list(find_held_locks([path], signals.check)) == []


def test_a_lock_of_a_holder_that_cannot_be_seen_is_found_only_while_it_is_held(
    tmp_path: Path,
    signals: Signals,
) -> None:
    held, stale, read = tmp_path / "held.lock", tmp_path / "stale.lock", tmp_path / "read.lock"
    elsewhere = describe_elsewhere()
    leave_record(stale, elsewhere)
    read.touch(mode=0o600)

    with locked(held, elsewhere), listed_as_reader(read, elsewhere):
        found = dict(find_held_locks([held, stale, read], signals.check))

    assert list(found) == [held, read]
    for owners in found.values():
        (holder,) = owners.holders
        assert (holder.state, holder.verified) == ("unknown", False)


def test_finding_out_whether_a_lock_is_held_does_not_keep_it(
    tmp_path: Path,
    signals: Signals,
) -> None:
    path = tmp_path / "lock"
    leave_record(path, describe_elsewhere())

    list(find_held_locks([path], signals.check))

    with path.open() as file:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)


def test_looking_through_locks_ends_when_the_command_has_to(
    tmp_path: Path,
    signals: Signals,
) -> None:
    signals.limit(0)

    with pytest.raises(DeadlineExceeded):
        list(find_held_locks([tmp_path / "lock"], signals.check))


# Files that are no lock files


def test_a_link_in_the_place_of_a_lock_file_is_not_followed(tmp_path: Path) -> None:
    """It may lead to a record that somebody else wrote."""
    leave_record(tmp_path / "planted", describe_elsewhere())
    (tmp_path / "lock").symlink_to("planted")

    with pytest.raises(OSError, match="lock") as raised:
        find_owners(tmp_path / "lock")

    assert raised.value.errno == errno.ELOOP


_FIND_OWNERS = """
import signal, sys
from pathlib import Path
from sampletool.kit.safety.lock_owners import find_owners

signal.alarm(15)  # kills this process if it blocks
try:
    find_owners(Path(sys.argv[1]))
except OSError as error:
    print(error.errno)
"""


def test_a_fifo_in_the_place_of_a_lock_file_does_not_block(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "lock")

    ran = run_python("-c", _FIND_OWNERS, str(tmp_path / "lock"), check=False)

    assert ran.returncode == 0
    assert ran.stdout == f"{errno.ESPIPE}\n"
