"""Orphans and strays are ended, and no other process is harmed."""

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from sampletool.kit.safety import orphans, processes
from sampletool.kit.safety.orphans import end_all, end_orphans, with_groups
from sampletool.kit.safety.processes import is_running
from sampletool.kit.safety.signals import Signals
from sampletool.kit.testing.forked import run_python
from sampletool.kit.testing.holding import Holding, holding, make_lock
from sampletool.kit.testing.waiting import wait_until


def make_orphan(lock_path: Path, mode: str = "exclusive") -> int:
    """Kill the holder of a lock, and return the pid of its child, which keeps the lock."""
    holder = Holding(lock_path, mode, child="sleep")
    child_pid = int(holder.hear()["child"])
    holder.kill()
    return child_pid


@contextmanager
def sleeping(descriptor: int | None = None) -> Iterator[subprocess.Popen[bytes]]:
    """Start a process that sleeps and inherits the descriptor. Kill it after the block."""
    inherited = [] if descriptor is None else [descriptor]
    with subprocess.Popen(["sleep", "600"], pass_fds=inherited) as process:
        try:
            yield process
        finally:
            process.kill()


# All of it

_END_PROCESSES = """
import signal, subprocess, time
from sampletool.kit.safety import orphans, processes
from sampletool.kit.safety.signals import Signals

signal.alarm(15)  # rather than wait without end

def end(*finds):
    turns = iter(finds)
    return orphans.end_all(lambda: next(turns, []), Signals())

orphans._GRACE_SECONDS = 12
gone = subprocess.Popen(["true"])
gone.wait()
obedient = subprocess.Popen(["sleep", "600"])
late = subprocess.Popen(["sleep", "600"])
began = time.monotonic()
ended = end([gone.pid, obedient.pid], [gone.pid, obedient.pid, late.pid])
seconds = time.monotonic() - began
print("obedient", ended == [obedient.pid], obedient.wait(), late.poll(), seconds < 10)

def find_late():
    if looks:  # it exits when it is looked at again
        late.kill()
        late.wait()
    looks.append("look")
    return [late.pid]

looks = []
print("late", orphans.end_all(find_late, Signals()), late.poll())

orphans._GRACE_SECONDS = 0.2
ignore_term = "trap '' TERM; echo; exec sleep 600"
stubborn = subprocess.Popen(["sh", "-c", ignore_term], stdout=subprocess.PIPE)
stubborn.stdout.readline()
ended = end([stubborn.pid], [stubborn.pid], [stubborn.pid], [stubborn.pid])
print("stubborn", ended == [stubborn.pid], stubborn.wait())
"""


def test_another_process_ends_what_it_finds() -> None:
    printed = run_python("-c", _END_PROCESSES, check=False)

    assert printed.stderr == ""
    assert printed.stdout.splitlines() == [
        "obedient True -15 None True",
        "late [] -9",
        "stubborn True -9",
    ]


# Orphans


def test_an_orphan_is_ended_and_the_lock_is_free(tmp_path: Path, signals: Signals) -> None:
    path = tmp_path / "lock"
    orphan_pid = make_orphan(path)

    ended = end_orphans(path, signals)

    assert ended == [orphan_pid]
    assert not is_running(orphan_pid)
    with make_lock(path).exclusively(1):
        pass


def test_a_living_holder_is_not_harmed(tmp_path: Path, signals: Signals) -> None:
    path = tmp_path / "lock"
    with holding(path, child="") as holder:
        ended = end_orphans(path, signals)

        assert ended == []
        assert is_running(holder.pid)


@pytest.mark.leaves_litter
def test_a_living_reader_beside_an_orphan_is_not_harmed(tmp_path: Path, signals: Signals) -> None:
    path = tmp_path / "lock"
    orphan_pid = make_orphan(path, "shared")
    with holding(path, "shared") as reader:
        ended = end_orphans(path, signals)

        assert ended == [orphan_pid]
        assert is_running(reader.pid)


def test_a_process_that_only_has_the_file_open_is_not_harmed(
    tmp_path: Path,
    signals: Signals,
) -> None:
    path = tmp_path / "lock"
    orphan_pid = make_orphan(path)
    with path.open("r+b") as file, sleeping(file.fileno()) as bystander:
        ended = end_orphans(path, signals)

        assert ended == [orphan_pid]
        assert bystander.poll() is None


def test_no_process_is_ended_where_there_is_no_lock(tmp_path: Path, signals: Signals) -> None:
    assert end_orphans(tmp_path / "never", signals) == []


# Strays


# In another process: a mistake here would end the test run itself.
_END_STRAYS = """
import signal, subprocess, sys
from sampletool.kit.safety.flock import EXCLUSIVE, SHARED, try_lock
from sampletool.kit.safety.orphans import end_strays
from sampletool.kit.safety.signals import Signals

signal.alarm(15)  # rather than wait without end
with open(sys.argv[1], "a") as lock, open(sys.argv[1]) as other:
    try_lock(lock.fileno(), SHARED)
    stray = subprocess.Popen(["sleep", "600"], pass_fds=[lock.fileno()])
    ended = end_strays(lock.fileno(), Signals())
    print("ended", ended == [stray.pid], stray.wait())
    print("free", try_lock(other.fileno(), EXCLUSIVE))
"""


def test_a_stray_is_ended_and_its_process_keeps_the_lock(tmp_path: Path) -> None:
    printed = run_python("-c", _END_STRAYS, tmp_path / "lock", check=False)

    assert printed.returncode == 0
    assert printed.stdout.splitlines() == ["ended True -15", "free False"]


@pytest.mark.leaves_litter
def test_the_orphan_of_another_reader_is_no_stray(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    orphan_pid = make_orphan(path, "shared")

    printed = run_python("-c", _END_STRAYS, path, check=False)

    assert printed.stdout.splitlines() == ["ended True -15", "free False"]
    assert is_running(orphan_pid)
    os.kill(orphan_pid, signal.SIGKILL)


# How a process is ended


def write_child(directory: Path, on_term: str) -> str:
    """Write a program that runs this command when it gets SIGTERM.

    It creates the file `ready` as soon as it can be terminated.
    """
    path = directory / "child"
    lines = ["#!/bin/sh", f"trap '{on_term}' TERM", "touch ready", "while :; do sleep 0.01; done"]
    path.write_text("\n".join(lines) + "\n")
    path.chmod(0o700)
    return str(path)


@pytest.mark.parametrize(
    ("on_term", "grace_seconds", "is_cleaned_up"),
    [("sleep 0.3; touch cleaned; exit", 30.0, True), ("", 0.1, False)],
    ids=["obeys", "ignores"],
)
def test_an_orphan_is_terminated_first_and_killed_if_it_does_not_exit(
    tmp_path: Path,
    signals: Signals,
    monkeypatch: pytest.MonkeyPatch,
    on_term: str,
    grace_seconds: float,
    is_cleaned_up: bool,
) -> None:
    monkeypatch.setattr(orphans, "_GRACE_SECONDS", grace_seconds)
    monkeypatch.chdir(tmp_path)
    holder = Holding(tmp_path / "lock", child=write_child(tmp_path, on_term))
    child_pid = int(holder.hear()["child"])
    wait_until((tmp_path / "ready").exists)
    holder.kill()

    ended = end_orphans(tmp_path / "lock", signals)

    # The child may be running a `sleep`, which is an orphan as well.
    assert child_pid in ended
    assert not is_running(child_pid)
    assert (tmp_path / "cleaned").exists() == is_cleaned_up


def find_in_turn(*found: list[int]) -> Callable[[], list[int]]:
    """Return a function that returns these lists one after the other, and then empty lists."""
    turns = iter(found)
    return lambda: next(turns, [])


def test_a_process_is_looked_at_again_before_it_is_signalled(signals: Signals) -> None:
    """Its pid may have passed to an innocent process while its descriptor was opened."""
    with sleeping() as innocent:
        ended = end_all(find_in_turn([innocent.pid], []), signals)

        assert ended == []
        assert innocent.poll() is None


def test_a_process_that_is_found_only_the_second_time_is_not_signalled(signals: Signals) -> None:
    """No descriptor was opened for it."""
    with sleeping() as first, sleeping() as second:
        ended = end_all(find_in_turn([first.pid], [first.pid, second.pid]), signals)

        assert ended == [first.pid]
        assert second.poll() is None


def test_what_a_process_started_while_it_was_being_ended_is_ended_too(signals: Signals) -> None:
    with sleeping() as first, sleeping() as child, sleeping() as grandchild:
        # Each process is found twice in its turn: before and after its descriptor is opened.
        find = find_in_turn(
            [first.pid], [first.pid],
            [child.pid], [child.pid],
            [grandchild.pid], [grandchild.pid],
        )  # fmt: skip

        ended = end_all(find, signals)

        assert ended == sorted([first.pid, child.pid, grandchild.pid])
        assert first.wait() == -signal.SIGTERM
        assert child.wait() == -signal.SIGKILL
        assert grandchild.wait() == -signal.SIGKILL


def test_nothing_more_is_looked_for_when_nothing_is_found(signals: Signals) -> None:
    with sleeping() as process:
        ended = end_all(find_in_turn([], [], [process.pid], [process.pid]), signals)

        assert ended == []
        assert process.poll() is None


def test_a_process_that_has_exited_meanwhile_is_passed_over(signals: Signals) -> None:
    with sleeping() as gone:
        gone.kill()
    with sleeping() as running:
        ended = end_all(find_in_turn([gone.pid, running.pid], [gone.pid, running.pid]), signals)

    assert ended == [running.pid]


def test_a_process_that_must_not_be_signalled_is_not_counted_as_ended(
    signals: Signals, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Root may signal all processes, so the refusal is not a real one."""

    def refuse(_descriptor: int, _number: int) -> None:
        raise PermissionError

    monkeypatch.setattr(signal, "pidfd_send_signal", refuse)
    with sleeping() as process:
        assert end_all(lambda: [process.pid], signals) == []


def test_the_exit_of_each_process_is_waited_for(tmp_path: Path, signals: Signals) -> None:
    slow_program = write_child(tmp_path, "sleep 0.3; exit")
    with sleeping() as quick, subprocess.Popen([slow_program], cwd=tmp_path) as slow:
        wait_until((tmp_path / "ready").exists)

        end_all(find_in_turn([quick.pid, slow.pid], [quick.pid, slow.pid]), signals)

        assert not is_running(quick.pid)
        assert not is_running(slow.pid)


def test_no_process_is_looked_for_where_there_are_no_pid_descriptors(
    signals: Signals, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delattr(signal, "pidfd_send_signal")
    with sleeping() as process:
        assert end_all(lambda: [process.pid], signals) == []
        assert process.poll() is None


# Groups


def write_family(directory: Path, child: str) -> str:
    """Write a program that starts this command in its own group, without the lock, and waits.

    The command gets no inherited descriptor, as from Python's subprocess module.
    """
    path = directory / "leader"
    starter = (
        "import os, subprocess, sys; os.setpgid(0, 0); "
        "subprocess.Popen(['sh', '-c', sys.argv[1]]).wait()"
    )
    path.write_text(f"#!{sys.executable}\nimport sys\nsys.argv[1:] = [{child!r}]\n{starter}\n")
    path.chmod(0o700)
    return str(path)


def make_orphaned_group(directory: Path, child: str) -> tuple[int, int]:
    """Kill the holder of a lock. Return the pids of its child, and of a child of that one.

    The latter runs a shell command, which has to write its pid to the file `member`.
    """
    holder = Holding(directory / "lock", child=write_family(directory, child))
    leader_pid = int(holder.hear()["child"])
    member = directory / "member"
    wait_until(lambda: member.exists() and member.read_text().endswith("\n"))
    holder.kill()
    return leader_pid, int(member.read_text())


@pytest.mark.leaves_litter
def test_the_group_of_an_orphan_is_ended_also_where_it_does_not_have_the_lock(
    tmp_path: Path,
    signals: Signals,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    leader_pid, member_pid = make_orphaned_group(tmp_path, "echo $$ > member; exec sleep 600")

    ended = end_orphans(tmp_path / "lock", signals)

    assert ended == sorted([leader_pid, member_pid])
    assert not is_running(member_pid)


@pytest.mark.leaves_litter
def test_a_member_that_outlives_the_leader_of_its_group_is_killed(
    tmp_path: Path,
    signals: Signals,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """By then, nobody has the lock any more."""
    monkeypatch.setattr(orphans, "_GRACE_SECONDS", 0.3)
    monkeypatch.chdir(tmp_path)
    ignore_term = "trap '' TERM; echo $$ > member; while :; do sleep 0.05; done"
    _leader_pid, member_pid = make_orphaned_group(tmp_path, ignore_term)

    end_orphans(tmp_path / "lock", signals)

    assert not is_running(member_pid)


def test_the_group_of_an_orphan_that_does_not_lead_it_is_not_harmed(signals: Signals) -> None:
    """It may be the group of a shell, which has nothing to do with the lock."""
    with sleeping() as orphan, sleeping() as bystander:
        assert os.getpgid(orphan.pid) == os.getpgid(bystander.pid)

        ended = end_all(with_groups(find_running(orphan)), signals)

        assert ended == [orphan.pid]
        assert bystander.poll() is None


def test_a_group_whose_number_was_reused_is_not_harmed(
    signals: Signals,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The start of the process shows that it is another one."""
    with subprocess.Popen(["sleep", "600"], process_group=0) as innocent:
        first_find = find_in_turn([innocent.pid], [innocent.pid])
        find = with_groups(first_find)
        assert find() == [innocent.pid]

        monkeypatch.setattr(processes, "start_ticks", lambda pid: 1)

        assert find() == []
        innocent.kill()


def test_a_leader_that_is_not_found_a_second_time_gives_no_group() -> None:
    """Its pid may have passed to the leader of an innocent group."""
    with subprocess.Popen(["sleep", "600"], process_group=0) as innocent:
        find = with_groups(find_in_turn([innocent.pid], [], []))

        assert find() == [innocent.pid]
        assert find() == []
        innocent.kill()


def find_running(process: subprocess.Popen[bytes]) -> Callable[[], list[int]]:
    """Return a function that finds this process as long as it runs."""

    def find() -> list[int]:
        return [process.pid] if process.poll() is None else []

    return find
