"""Facts about processes are true, and there are none where pids mean other processes than ours."""

import fcntl
import os
import signal
import subprocess
import sys
from pathlib import Path
from subprocess import PIPE

import pytest

from sampletool.kit.safety import processes
from sampletool.kit.testing.forked import run_python, start_python
from sampletool.kit.testing.waiting import wait_until

# All of it

_PRINT_FACTS = """
import fcntl, os, signal, subprocess, sys
from sampletool.kit.safety import processes

signal.alarm(15)  # rather than wait without end

me = os.getpid()
lock = open(sys.argv[1], "w")
fcntl.flock(lock, fcntl.LOCK_EX)
file = os.fstat(lock.fileno())
child = subprocess.Popen(["sleep", "600"], process_group=0, pass_fds=[lock.fileno()])
print("sees", processes.can_see_processes(), processes.can_see_files(child.pid))
print("running", me in processes.pids(), processes.is_running(me), processes.is_running(child.pid))
print("group", processes.members_of_group(child.pid) == (child.pid,))
print("locker", processes.locker_of(child.pid, file) == me)
print("namespace", processes.pid_namespace() == os.readlink("/proc/self/ns/pid"))
child.kill()
os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
print("zombie", child.pid in processes.pids(), processes.members_of_group(child.pid))
child.wait()
print("exited", processes.is_running(child.pid), processes.start_of(child.pid))
print("hidden", processes.can_see_files(child.pid), processes.locker_of(child.pid, file))
"""


def test_another_process_sees_the_same_facts(tmp_path: Path) -> None:
    printed = run_python("-c", _PRINT_FACTS, tmp_path / "lock", check=False)

    assert printed.stderr == ""
    assert printed.stdout.splitlines() == [
        "sees True True",
        "running True True True",
        "group True",
        "locker True",
        "namespace True",
        "zombie True ()",
        "exited False None",
        "hidden False None",
    ]


# Whether a process is running


def test_a_process_is_running_until_it_is_a_zombie() -> None:
    with subprocess.Popen(["sleep", "60"], process_group=0) as child:
        assert processes.is_running(child.pid)
        assert processes.members_of_group(child.pid) == (child.pid,)

        child.kill()
        os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)

        assert not processes.is_running(child.pid)
        assert processes.members_of_group(child.pid) == ()


def test_children_of_children_are_descendants_until_they_exit() -> None:
    script = "sh -c 'echo $$; read line'; echo ended; read line"
    with subprocess.Popen(["sh", "-c", script], stdin=PIPE, stdout=PIPE, text=True) as shell:
        assert shell.stdin is not None
        assert shell.stdout is not None
        grandchild = int(shell.stdout.readline())

        while_it_runs = processes.descendants_of(os.getpid())
        shell.stdin.write("\n")
        shell.stdin.flush()
        shell.stdout.readline()
        when_it_has_ended = processes.descendants_of(os.getpid())

    assert {shell.pid, grandchild} <= set(while_it_runs)
    assert shell.pid in when_it_has_ended
    assert grandchild not in when_it_has_ended


_PROGRAM_WHOSE_MAIN_THREAD_EXITS = """
import ctypes, threading, time
threading.Thread(target=time.sleep, args=(60,)).start()
ctypes.CDLL(None).pthread_exit(None)
"""


def test_a_process_whose_main_thread_has_exited_is_running() -> None:
    """Without this rule, it looks like a zombie, and nothing waits for its other threads."""
    with start_python("-c", _PROGRAM_WHOSE_MAIN_THREAD_EXITS, new_group=True) as child:
        try:
            wait_until(lambda: state_of(child.pid) == "Z")

            assert processes.is_running(child.pid)
            assert processes.members_of_group(child.pid) == (child.pid,)
        finally:
            child.kill()


def state_of(pid: int) -> str:
    stat = Path(f"/proc/{pid}/stat").read_text()
    _pid_and_name, _parenthesis, fields = stat.rpartition(")")
    return fields.split()[0]


def test_a_process_that_is_stopped_is_still_running() -> None:
    with subprocess.Popen(["sleep", "60"]) as child:
        child.send_signal(signal.SIGSTOP)
        os.waitid(os.P_PID, child.pid, os.WSTOPPED)

        assert processes.is_running(child.pid)

        child.kill()


def test_a_process_that_has_exited_has_no_start() -> None:
    with subprocess.Popen(["true"]) as child:
        pass

    assert processes.start_ticks(child.pid) is None
    assert processes.start_of(child.pid) is None


# Which process it is


def test_a_reused_pid_is_another_process() -> None:
    mine = processes.start_of(os.getpid())

    assert mine is not None
    assert mine == processes.start_of(os.getpid())
    assert mine != processes.start_of(1)


def test_a_process_is_identified_by_its_boot_and_its_start() -> None:
    boot_id = Path("/proc/sys/kernel/random/boot_id").read_text()

    identity = processes.start_of(os.getpid())

    assert identity == f"{boot_id[:8]}:{processes.start_ticks(os.getpid())}"


def test_a_process_has_no_identity_where_the_boot_has_none(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(processes, "_BOOT_ID", tmp_path / "missing")

    assert processes.start_of(os.getpid()) is None


def test_the_members_of_a_group_are_its_own() -> None:
    with (
        subprocess.Popen(["sleep", "60"], process_group=0) as leader,
        subprocess.Popen(["sleep", "60"], process_group=leader.pid) as member,
        subprocess.Popen(["sleep", "60"], process_group=0) as stranger,
    ):
        members = processes.members_of_group(leader.pid)
        for process in (leader, member, stranger):
            process.kill()

    assert sorted(members) == sorted([leader.pid, member.pid])


# Which process took a lock


def test_only_a_flock_counts_and_only_on_the_descriptors_that_carry_it(tmp_path: Path) -> None:
    with (tmp_path / "lock").open("w") as file:
        fcntl.lockf(file, fcntl.LOCK_EX)
        stat = os.fstat(file.fileno())
        assert processes.locker_of(os.getpid(), stat) is None

        fcntl.flock(file, fcntl.LOCK_EX)

        assert processes.locker_of(os.getpid(), stat) == os.getpid()
        assert processes.locker_of(os.getppid(), stat) is None


def test_a_lock_is_found_behind_a_descriptor_that_does_not_carry_it(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    with path.open("w") as looking, path.open() as lock:
        assert looking.fileno() < lock.fileno()
        fcntl.flock(lock, fcntl.LOCK_EX)

        assert processes.locker_of(os.getpid(), os.fstat(lock.fileno())) == os.getpid()


def test_a_child_that_inherited_a_lock_carries_that_of_its_parent(tmp_path: Path) -> None:
    with (tmp_path / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_SH)
        with subprocess.Popen(["sleep", "60"], pass_fds=[lock.fileno()]) as child:
            locker_pid = processes.locker_of(child.pid, os.fstat(lock.fileno()))
            child.kill()

    assert locker_pid == os.getpid()


def test_a_file_with_the_same_number_on_another_file_system_is_another_file(tmp_path: Path) -> None:
    with (tmp_path / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        file = os.fstat(lock.fileno())
        mode, inode, device, *others = file
        namesake = os.stat_result((mode, inode, device + 1, *others))

        assert processes.locker_of(os.getpid(), file) == os.getpid()
        assert processes.locker_of(os.getpid(), namesake) is None


def test_a_descriptor_that_is_closed_meanwhile_is_passed_over(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with (tmp_path / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        file = os.fstat(lock.fileno())
        closed = os.dup(lock.fileno())
        os.close(closed)
        seen = [(str(closed), file), (str(lock.fileno()), file)]
        monkeypatch.setattr(processes, "open_files", lambda _pid: seen)

        assert processes.locker_of(os.getpid(), file) == os.getpid()


def test_a_lock_on_another_file_does_not_count(tmp_path: Path) -> None:
    with (tmp_path / "lock").open("w") as lock, (tmp_path / "other").open("w") as other:
        fcntl.flock(lock, fcntl.LOCK_EX)

        assert processes.locker_of(os.getpid(), os.fstat(other.fileno())) is None


# What can be seen


def test_this_process_is_among_those_that_can_be_seen() -> None:
    assert processes.can_see_processes()
    assert {os.getpid(), os.getppid()} <= set(processes.pids())
    assert processes.pid_namespace() == os.readlink("/proc/self/ns/pid")


def test_the_open_files_of_a_process_have_the_numbers_of_its_descriptors(tmp_path: Path) -> None:
    with (tmp_path / "file").open("w") as file:
        open_files = dict(processes.open_files(os.getpid()))

        assert os.path.samestat(open_files[str(file.fileno())], os.fstat(file.fileno()))


def test_a_process_that_has_exited_has_no_open_files() -> None:
    with subprocess.Popen(["true"]) as child:
        pass

    assert list(processes.open_files(child.pid)) == []


_LOOK = """
import os
from sampletool.kit.safety import processes
print(os.getpid(), processes.can_see_processes(), processes.pids(), processes.start_of(1))
"""


def test_no_process_is_seen_in_a_pid_namespace_with_the_proc_of_another_one() -> None:
    """Otherwise a signal that is meant for an orphan would end an innocent process."""
    unshare = ["unshare", "--pid", "--fork"]
    if subprocess.run([*unshare, "true"], stderr=subprocess.DEVNULL, check=False).returncode != 0:
        pytest.skip("this user may not create a pid namespace")

    # A fresh interpreter, which unshare starts: the fork server forks in its own namespace.
    looking = subprocess.run(
        [*unshare, sys.executable, "-c", _LOOK],
        capture_output=True,
        text=True,
        check=True,
    )

    pid, seen = looking.stdout.split(maxsplit=1)
    assert int(pid) < 10
    assert seen == "False [] None\n"
