"""Children that can neither outlive nor outwrite the call."""

import fcntl
import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from sampletool.kit.safety import children as module
from sampletool.kit.safety.children import LOST_STATUS, Children
from sampletool.kit.safety.errors import DeadlineExceeded, Interrupted
from sampletool.kit.safety.processes import started
from sampletool.kit.safety.signals import Signals
from sampletool.kit.testing.forked import run_python
from sampletool.kit.testing.scale import scale
from sampletool.kit.testing.tool import Process, Tool, ended
from tests.kit.added_command import start_added
from tests.kit.waiting import wait_until


def start(children: Children, script: str, log: Path | None = None, name: str = "child") -> None:
    children.start(
        name, ["/bin/sh", "-c", script], cwd=Path("/"), env=dict(os.environ), log=None if log is None else lambda: log
    )


def hear(children: Children, word: str, name: str = "child") -> None:
    """Wait until a child has said this."""
    while word.encode() not in children._running[name].tail:
        assert children.next_ended(within_seconds=0.05) is None


def is_running(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


def test_status_and_output_are_kept(signals: Signals, tmp_path: Path) -> None:
    log = tmp_path / "log"
    with Children(signals) as children:
        start(children, "seq 1 5000; echo the end >&2; exit 3", log)
        ended = children.next_ended()

    assert ended is not None
    assert ended.status == 3
    assert ended.tail.endswith("4999\n5000\nthe end\n")
    assert len(ended.tail) <= 4096
    assert log.read_text().startswith("1\n2\n")


def test_the_tail_is_what_the_child_wrote_with_bytes_that_are_not_text_escaped(signals: Signals) -> None:
    with Children(signals) as children:
        start(children, r"printf 'one\ttwo\r\n\033[2J\377'")
        ended = children.next_ended()

    assert ended is not None
    assert ended.tail == "one\ttwo\r\n\x1b[2J\\xff"


def test_a_silent_child_leaves_no_log(signals: Signals, tmp_path: Path) -> None:
    with Children(signals) as children:
        start(children, "true", tmp_path / "log")
        ended = children.next_ended()

    assert ended is not None
    assert ended.log is None
    assert not (tmp_path / "log").exists()


def test_the_log_is_ours_alone_and_no_link_is_followed(signals: Signals, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "victim")
    (tmp_path / "victim").write_text("untouched")
    with Children(signals) as children:
        start(children, "umask 0; echo loud", tmp_path / "log")
        children.next_ended()

    with pytest.raises(OSError, match="symbolic links"), Children(signals) as children:
        start(children, "echo loud", tmp_path / "link")
        children.next_ended()

    assert (tmp_path / "log").stat().st_mode & 0o777 == 0o600
    assert (tmp_path / "victim").read_text() == "untouched"


def test_a_child_that_writes_without_end_does_not_keep_us_from_the_others(signals: Signals) -> None:
    class Endless:
        reads = 0

        def fileno(self) -> int:
            self.reads += 1
            assert self.reads < 20000, "nobody else is looked at"
            return zero.fileno()

        def close(self) -> None:
            pass

    endless: Any = Endless()
    with Path("/dev/zero").open("rb") as zero, Children(signals) as children:
        start(children, "sleep 60", name="loud")
        children._running["loud"].process.stdout.close()  # type: ignore[union-attr]
        children._running["loud"].output = endless
        children._read(children._running["loud"])

    assert endless.reads > 0


def test_the_stdin_of_a_child_is_empty_whatever_ours_is() -> None:
    ran = run_python("-c", _ONE_CHILD, "cat; exit 4", stdin="ours")

    assert json.loads(ran.stdout) == [4, ""]


def test_nothing_of_ours_is_inherited(signals: Signals) -> None:
    with Children(signals) as children:
        start(children, "ls /proc/self/fd | wc -w")
        ended = children.next_ended()

    assert ended is not None
    assert ended.tail.strip() == "4"


def test_a_child_knows_the_locks_of_the_call_and_of_its_callers(
    signals: Signals, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A nested call that needs one of them fails at once, instead of waiting for itself."""
    monkeypatch.setenv("SAFETY_HELD_LOCKS", "/of/the/caller")
    with Children(signals, locks=[Path("/of/the/call")]) as children:
        start(children, 'echo "$SAFETY_HELD_LOCKS"')
        ended = children.next_ended()

    assert ended is not None
    assert ended.tail == "/of/the/caller\n/of/the/call\n"


def test_a_grandchild_does_not_outlive_the_child(signals: Signals, tmp_path: Path) -> None:
    with Children(signals) as children:
        start(children, f"sleep 60 & echo $! > {tmp_path}/pid; exit 0")
        ended = children.next_ended()

    assert ended is not None
    assert ended.status == 0
    assert ended.survivors == ()
    assert not is_running(int((tmp_path / "pid").read_text()))


_LEAVES_A_ZOMBIE = """
import os, signal, sys, time
if os.fork():
    os._exit(0)
os.close(1), os.close(2)
dead = os.fork()
if dead == 0:
    os._exit(0)
os.setsid()
os.waitid(os.P_PID, dead, os.WEXITED | os.WNOWAIT)
with open(sys.argv[1], "w") as file:
    file.write(f"{os.getpid()}\\n")
time.sleep(600)
"""


def test_a_zombie_that_nobody_reaps_is_no_survivor(signals: Signals, tmp_path: Path) -> None:
    careless = tmp_path / "careless"
    script = f"{sys.executable} -S -c '{_LEAVES_A_ZOMBIE}' {careless}; until [ -s {careless} ]; do sleep 0.01; done"
    try:
        with Children(signals) as children:
            start(children, script)
            ended = children.next_ended()
    finally:
        os.kill(int(careless.read_text()), signal.SIGKILL)

    assert ended is not None
    assert ended.survivors == ()


def test_a_child_that_closed_its_output_is_still_waited_for_and_keeps_no_processor_busy() -> None:
    class Counted(Signals):
        waits = 0

        def wait(self, seconds: float, descriptors: Sequence[int] = ()) -> list[int]:
            self.waits += 1
            return super().wait(seconds, descriptors)

    signals = Counted()
    with Children(signals) as children:
        start(children, "exec >&- 2>&-; sleep 0.3; exit 7")
        ended = children.next_ended()

    assert ended is not None
    assert ended.status == 7
    assert signals.waits < 20


def test_leaving_the_block_ends_all(signals: Signals) -> None:
    with Children(signals) as children:
        for number in range(3):
            start(children, "sleep 60", name=str(number))
        pids = [child.process.pid for child in children._running.values()]

    assert not any(map(is_running, pids))


def test_last_words_that_cannot_be_logged_are_not_passed_over(
    signals: Signals, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Naive: the child writes and ends between reading and looking whether it has ended."""

    def looked_at_late(process: subprocess.Popen[bytes]) -> bool:
        (tmp_path / "go").touch()
        wait_until(lambda: not is_running(process.pid))
        return has_exited(process)

    has_exited = module._has_exited
    monkeypatch.setattr(module, "_has_exited", looked_at_late)
    with Children(signals) as children:
        start(children, f"until [ -e {tmp_path}/go ]; do sleep 0.01; done; echo last", tmp_path / "none" / "log")

        with pytest.raises(FileNotFoundError):
            children.next_ended()


def test_a_log_that_cannot_be_written_keeps_nobody_from_ending_the_children(
    signals: Signals, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "GRACE_SECONDS", 0.3)
    with pytest.raises(OSError, match="No space"), Children(signals) as children:
        loud = f"trap 'echo more; exit' TERM; until [ -e {tmp_path}/ready ]; do :; done; while :; do echo loud; done"
        start(children, loud, Path("/dev/full"))
        start(children, f"trap '' TERM; touch {tmp_path}/ready; while :; do sleep 1; done", name="stubborn")
        pids = [child.process.pid for child in children._running.values()]
        children.next_ended()

    assert not any(map(is_running, pids))


def test_a_child_that_ignores_the_request_is_killed_after_the_grace(
    signals: Signals, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "GRACE_SECONDS", 0.3)
    with Children(signals) as children:
        start(children, "trap '' TERM; echo ready; while :; do sleep 1; done")
        hear(children, "ready")
        asked = time.monotonic()

    assert time.monotonic() - asked >= 0.3
    assert children.next_ended() is None


def test_a_child_that_is_ended_has_time_to_clean_up(
    signals: Signals, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "GRACE_SECONDS", 600)
    clean = f"sleep 0.2; touch {tmp_path}/cleaned; exit 5"
    with Children(signals) as children:
        start(children, f"trap '{clean}' TERM; echo ready; while :; do sleep 0.01; done")
        hear(children, "ready")

    assert (tmp_path / "cleaned").exists()


def test_a_child_that_even_sigkill_does_not_end_in_time_is_named(
    signals: Signals, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In a system call that cannot be interrupted, which nothing here can make: it is only not seen to end."""
    monkeypatch.setattr(module, "_DEATH_SECONDS", 0.1)
    with Children(signals) as children:
        start(children, "sleep 60")
        child = children._running["child"]
        with monkeypatch.context() as patch:
            patch.setattr(module, "_has_exited", lambda process: False)
            patch.setattr(module, "_reap", lambda process: None)
            ended = children._bury(child)

    assert (ended.status, ended.survivors) == (-signal.SIGKILL, (child.process.pid,))
    assert child.process.returncode == -signal.SIGKILL  # or Python would warn of a child that is still running
    os.waitpid(child.process.pid, 0)


def test_a_child_that_gets_a_signal_is_returned_when_it_has_ended(signals: Signals) -> None:
    with Children(signals) as children:
        start(children, "trap 'exit 5' TERM; echo ready; while :; do sleep 0.01; done")
        hear(children, "ready")
        children.signal("child", signal.SIGTERM)
        children.signal("nobody", signal.SIGTERM)
        ended = children.next_ended()

    assert ended is not None
    assert ended.status == 5


def test_after_a_signal_nothing_more_is_started(signals: Signals, tmp_path: Path) -> None:
    signals.received = signal.SIGTERM

    with Children(signals) as children, pytest.raises(Interrupted):
        start(children, "true")

    assert children._running == {}


def test_an_interrupt_is_passed_on_as_what_it_was(
    signals: Signals, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "GRACE_SECONDS", 600)
    traps = " ".join(f"trap 'echo {name} > {tmp_path}/got; exit' {name};" for name in ("INT", "TERM"))
    with pytest.raises(Interrupted), Children(signals) as children:
        start(children, f"{traps} echo ready; while :; do sleep 0.05; done")
        hear(children, "ready")
        signals.received = signal.SIGINT
        children.next_ended()

    assert (tmp_path / "got").read_text() == "INT\n"


def test_the_end_of_the_call_s_time_ends_children_too(signals: Signals) -> None:
    signals.limit(0.2)
    with pytest.raises(DeadlineExceeded), Children(signals) as children:
        start(children, "sleep 60")
        pid = next(iter(children._running.values())).process.pid
        children.next_ended()

    assert not is_running(pid)


_ONE_CHILD = """
import json, os, signal, sys
from pathlib import Path
from sampletool.kit.safety.children import Children
from sampletool.kit.safety.signals import Signals
with Children(Signals()) as children:
    children.start("one", ["/bin/sh", "-c", sys.argv[1]], cwd=Path("/"), env=dict(os.environ))
    ended = children.next_ended()
print(json.dumps([ended.status, ended.tail]))
"""


def test_a_status_that_the_kernel_threw_away_is_a_failure() -> None:
    code = f"import signal; signal.signal(signal.SIGCHLD, signal.SIG_IGN)\n{_ONE_CHILD}"

    ran = run_python("-c", code, "echo said; exit 0")

    assert json.loads(ran.stdout) == [LOST_STATUS, "said\n"]


_STATUS_OF_A_CHILD = """
with Children(context.signals) as children:
    children.start("one", ["/bin/sh", "-c", "exit 3"], cwd=context.cwd, env=os.environ)
    return Result(children.next_ended().status)
"""


def test_a_parent_that_ignores_sigchld_does_not_make_a_failed_child_a_success(tool: Tool) -> None:
    process = start_added(tool, _STATUS_OF_A_CHILD, before="signal.signal(signal.SIGCHLD, signal.SIG_IGN)")

    assert ended(process).data == {"said": 3}


_UNDER_A_LOCK = """
module.GRACE_SECONDS = orphans._PATIENCE_SECONDS = {grace}
sys.modules[context.signals.__module__]._ECHO_SECONDS = {echo}
lock = os.open("lock", os.O_RDWR | os.O_CREAT)
fcntl.flock(lock, fcntl.LOCK_EX)
with Children(context.signals, [lock]) as children:
    for number in range({count}):
        children.start(str(number), ["/bin/sh", "-c", {script!r}], cwd=context.cwd, env=os.environ)
        os.truncate(lock, number + 1)
    children.next_ended()
return Result(None)
"""


def under_a_lock(tool: Tool, script: str, count: int = 1, grace: float = 600, echo: float = 600) -> Process:
    """A call whose children carry its lock, and the number of those that were started is the length of the file.

    A second signal within `echo` seconds is taken for an echo of the first.
    """
    (tool.cwd / "lock").write_bytes(b"")
    return start_added(tool, _UNDER_A_LOCK.format(script=script, count=count, grace=grace, echo=echo))


def wait_for(name: str, tool: Tool, process: Process) -> None:
    """A file of a child. If the call ends before, its answer says why."""
    wait_until(lambda: (tool.cwd / name).exists() or process.poll() is not None)
    assert (tool.cwd / name).exists(), process.communicate()


def is_free(tool: Tool) -> bool:
    """Whether no process carries the lock any more."""
    with (tool.cwd / "lock").open() as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
    return True


@pytest.mark.parametrize("script", ["exec sleep 33", "setsid sleep 33; exit 1"], ids=["child", "stray"])
def test_two_signals_together_leave_no_child_not_even_one_that_is_being_started(tool: Tool, script: str) -> None:
    for _ in range(scale(6, 200)):
        process = under_a_lock(tool, script, count=60)
        some = random.randint(1, 40)
        wait_until(lambda least=some: (tool.cwd / "lock").stat().st_size >= least)  # type: ignore[misc]
        process.send_signal(signal.SIGTERM)
        process.send_signal(signal.SIGHUP)
        ran = ended(process)

        assert ran.status in (-signal.SIGTERM, -signal.SIGHUP)
        assert ran.code == "INTERRUPTED"
        assert is_free(tool)


def test_the_echo_of_a_signal_leaves_children_the_time_to_clean_up(tool: Tool) -> None:
    process = under_a_lock(
        tool, "trap 'sleep 0.2; touch cleaned; exit' TERM INT; touch ready; while :; do sleep 0.01; done"
    )
    wait_for("ready", tool, process)
    process.send_signal(signal.SIGSTOP)
    process.send_signal(signal.SIGTERM)
    process.send_signal(signal.SIGINT)
    process.send_signal(signal.SIGCONT)

    assert ended(process).code == "INTERRUPTED"
    assert (tool.cwd / "cleaned").exists()


def test_a_child_keeps_the_lock_of_a_call_that_was_killed(tool: Tool) -> None:
    process = under_a_lock(tool, "echo $$ > pid; mv pid ready; exec sleep 60")
    wait_for("ready", tool, process)
    process.kill()
    process.wait()
    was_free = is_free(tool)
    os.kill(int((tool.cwd / "ready").read_text()), signal.SIGKILL)

    assert not was_free
    wait_until(lambda: is_free(tool))


_STUBBORN = """exec 2> /dev/null; trap '' TERM INT
(trap 'touch asked' TERM INT; touch ready; while :; do sleep 0.01; done) & wait"""
"""Its stderr is elsewhere: the shell names the `sleep` that a signal ended, and that pipe has no reader any more."""


@pytest.mark.parametrize("script", ["exec", "setsid -f"], ids=["child", "stray"])
def test_a_later_signal_ends_the_grace_and_the_call_still_answers(tool: Tool, script: str) -> None:
    process = under_a_lock(tool, f'{script} /bin/sh -c "{_STUBBORN}"; exec sleep 600', echo=0)
    wait_for("ready", tool, process)
    process.terminate()
    wait_for("asked", tool, process)
    process.send_signal(signal.SIGINT)
    ran = ended(process)

    assert (ran.status, ran.code) == (-signal.SIGTERM, "INTERRUPTED")
    assert is_free(tool)


def test_what_left_its_group_and_keeps_our_lock_is_ended_and_named(tmp_path: Path, signals: Signals) -> None:
    script = "setsid sh -c 'echo $$ > pid; mv pid ready; exec sleep 60' & wait"
    with (tmp_path / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        with Children(signals, [lock.fileno()]) as children:
            children.start("child", ["/bin/sh", "-c", script], cwd=tmp_path, env=dict(os.environ))
            wait_until((tmp_path / "ready").exists)

    assert children.strays == [int((tmp_path / "ready").read_text())]
    assert started(children.strays[0]) is None


def test_what_cannot_be_started_leaves_nothing_behind(signals: Signals) -> None:
    with Children(signals) as children, pytest.raises(FileNotFoundError):
        children.start("child", ["/no/such/program"], cwd=Path("/"), env=dict(os.environ))

    assert children.next_ended() is None
