"""What /proc says, and that nothing is said where its pids mean other processes than ours."""

import fcntl
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from sampletool.kit.safety import processes
from sampletool.kit.testing.forked import start_python
from tests.kit.waiting import wait_until

_SEEN_FROM_INSIDE = """
import os
from pathlib import Path
from sampletool.kit.safety import processes
print(os.getpid(), processes.can_see(), processes.pids(), processes.start_of(1))
"""


def test_a_process_is_running_until_it_is_a_zombie() -> None:
    with subprocess.Popen(["sleep", "60"], process_group=0) as child:
        assert processes.started(child.pid)
        assert processes.members_of_group(child.pid) == (child.pid,)

        child.kill()
        os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)

        assert processes.started(child.pid) is None
        assert processes.members_of_group(child.pid) == ()


_LEFT_BY_ITS_MAIN_THREAD = """
import ctypes, threading, time
threading.Thread(target=time.sleep, args=(60,)).start()
ctypes.CDLL(None).pthread_exit(None)
"""


def test_a_process_whose_main_thread_has_ended_is_running() -> None:
    """Naive: it looks like a zombie, and what it goes on doing is not waited for."""
    with start_python("-c", _LEFT_BY_ITS_MAIN_THREAD, new_group=True) as child:
        try:
            wait_until(lambda: Path(f"/proc/{child.pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z")
            assert processes.started(child.pid)
            assert processes.members_of_group(child.pid) == (child.pid,)
        finally:
            child.kill()


def test_a_reused_pid_is_another_process() -> None:
    mine = processes.start_of(os.getpid())

    assert mine is not None
    assert mine == processes.start_of(os.getpid())
    assert mine != processes.start_of(1)


def test_only_a_flock_counts_as_holding_and_only_on_the_descriptors_that_carry_it(tmp_path: Path) -> None:
    with (tmp_path / "lock").open("w") as file:
        fcntl.lockf(file, fcntl.LOCK_EX)
        stat = os.fstat(file.fileno())
        assert processes.locker_of(os.getpid(), stat) is None

        fcntl.flock(file, fcntl.LOCK_EX)

        assert processes.locker_of(os.getpid(), stat) == os.getpid()
        assert processes.locker_of(os.getppid(), stat) is None


def test_in_a_pid_namespace_with_the_proc_of_another_one_nobody_is_seen(tmp_path: Path) -> None:
    """Naive: its pids are taken for ours, and a signal that is meant for an orphan there ends an innocent process."""
    # A fresh interpreter, which unshare starts: a forked one would be in the namespace of the server.
    argv = ["unshare", "--pid", "--fork", sys.executable, "-c", _SEEN_FROM_INSIDE, str(tmp_path)]
    if subprocess.run(["unshare", "--pid", "--fork", "true"], stderr=subprocess.DEVNULL, check=False).returncode:
        pytest.skip("this user may not make a pid namespace")

    seen = subprocess.run(argv, capture_output=True, text=True, check=True).stdout.split(maxsplit=1)

    assert int(seen[0]) < 10
    assert seen[1] == "False [] None\n"


def test_a_process_that_is_stopped_is_still_running() -> None:
    with subprocess.Popen(["sleep", "60"]) as child:
        child.send_signal(signal.SIGSTOP)
        os.waitid(os.P_PID, child.pid, os.WSTOPPED)

        assert processes.started(child.pid)

        child.kill()
