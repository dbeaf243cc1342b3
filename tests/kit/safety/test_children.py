"""Children are ended with the block, whatever happened, and nothing that they wrote is lost."""

import fcntl
import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from sampletool.kit.safety import children as module
from sampletool.kit.safety.children import LOST_EXIT_CODE, ChildExit, Children
from sampletool.kit.safety.errors import DeadlineExceeded, Interrupted
from sampletool.kit.safety.processes import is_running
from sampletool.kit.safety.signals import Signals
from sampletool.kit.testing.forked import run_python
from sampletool.kit.testing.probe import start_probe
from sampletool.kit.testing.scale import scale
from sampletool.kit.testing.tool import Process, Tool, ended
from sampletool.kit.testing.waiting import wait_until

LONG_SECONDS = 12
"""Longer than any wait of these tests takes. A wait that lasts this long has found a fault."""


class CheckedChildren(Children):
    """Children that fail if a method raises an error that its docstring does not name."""

    def __exit__(self, *error: Any) -> None:
        with documented_errors_only():
            super().__exit__(*error)

    def start(self, *args: Any, **options: Any) -> None:
        with documented_errors_only(OSError, Interrupted, DeadlineExceeded):
            super().start(*args, **options)

    def next_exit(self, within_seconds: float | None = None) -> ChildExit | None:
        with documented_errors_only(OSError, Interrupted, DeadlineExceeded):
            return super().next_exit(within_seconds)

    def send_signal(self, name: str, number: int) -> None:
        with documented_errors_only():
            super().send_signal(name, number)


@contextmanager
def documented_errors_only(*documented: type[Exception]) -> Iterator[None]:
    """Let only these errors pass, and those of the test itself."""
    try:
        yield
    except Exception as error:
        if isinstance(error, (AssertionError, *documented)):
            raise
        raise AssertionError(f"an error that is not documented: {error!r}") from error


def start(
    children: Children, script: str, log_path: Path | None = None, name: str = "child"
) -> None:
    """Start a shell that runs the script."""
    make_log_path = None
    if log_path is not None:
        make_log_path = lambda: log_path  # noqa: E731
    argv = ["/bin/sh", "-c", script]
    children.start(name, argv, cwd=Path("/"), env=dict(os.environ), make_log_path=make_log_path)


def next_exit(children: Children) -> ChildExit:
    """Return how the next child exits. Fail if none does."""
    child_exit = children.next_exit(within_seconds=LONG_SECONDS)
    assert child_exit is not None, "no child has exited"
    return child_exit


def wait_for_output(children: Children, text: str, name: str = "child") -> None:
    """Wait until a child has written this text."""
    while text.encode() not in children._running[name].output.tail:
        assert children.next_exit(within_seconds=0.05) is None


class ImpatientSignals(Signals):
    """Signals that remember each wait:

    for how long, and for what. They fail if nothing ends the waits.
    """

    def __init__(self) -> None:
        super().__init__()
        self.waits: list[tuple[float, Sequence[int]]] = []
        self._fails_at = time.monotonic() + LONG_SECONDS

    def wait(self, seconds: float, descriptors: Sequence[int] = ()) -> list[int]:
        assert time.monotonic() < self._fails_at, "nothing has ended the wait"
        self.waits.append((seconds, descriptors))
        return super().wait(seconds, descriptors)


@pytest.fixture
def signals() -> ImpatientSignals:
    """Signals that nobody sends."""
    return ImpatientSignals()


# Output


def test_the_exit_code_the_log_and_the_end_of_the_output_are_kept(
    signals: Signals, tmp_path: Path
) -> None:
    log_path = tmp_path / "log"

    with CheckedChildren(signals) as children:
        start(children, "seq 1 5000; echo the end >&2; exit 3", log_path)
        child_exit = next_exit(children)

    assert child_exit.name == "child"
    assert child_exit.exit_code == 3
    assert child_exit.output_tail.endswith("4999\n5000\nthe end\n")
    assert len(child_exit.output_tail) == 4096
    assert child_exit.output_bytes == len(log_path.read_bytes())
    assert child_exit.log_path == log_path
    assert log_path.read_text() == "".join(f"{number}\n" for number in range(1, 5001)) + "the end\n"


@pytest.mark.parametrize(
    ("tail_bytes", "tail"), [(0, ""), (3, "ef\n"), (7, "abcdef\n"), (8, "abcdef\n")]
)
def test_the_caller_chooses_the_size_of_the_tail(
    signals: Signals, tail_bytes: int, tail: str
) -> None:
    with CheckedChildren(signals, tail_bytes=tail_bytes) as children:
        start(children, "printf abc; sleep 0.01; echo def")
        child_exit = next_exit(children)

    assert child_exit.output_tail == tail
    is_whole = tail == "abcdef\n"
    assert child_exit.output_bytes == (None if is_whole else 7)


def test_the_tail_is_what_the_child_wrote_with_bytes_that_are_not_text_escaped(
    signals: Signals,
) -> None:
    with CheckedChildren(signals) as children:
        start(children, r"printf 'one\ttwo\r\n\033[2J\377'")
        child_exit = next_exit(children)

    assert child_exit.output_tail == "one\ttwo\r\n\x1b[2J\\xff"


def test_if_stdout_goes_elsewhere_only_stderr_is_the_output(
    signals: Signals, tmp_path: Path
) -> None:
    with (tmp_path / "stdout").open("wb") as stdout, CheckedChildren(signals) as children:
        argv = ["/bin/sh", "-c", "echo result; echo message >&2"]
        children.start("child", argv, cwd=tmp_path, env=dict(os.environ), stdout=stdout.fileno())
        child_exit = next_exit(children)

    assert child_exit.output_tail == "message\n"
    assert (tmp_path / "stdout").read_text() == "result\n"


def test_a_silent_child_leaves_no_log(signals: Signals, tmp_path: Path) -> None:
    with CheckedChildren(signals) as children:
        start(children, "true", tmp_path / "log")
        child_exit = next_exit(children)

    assert child_exit.log_path is None
    assert not (tmp_path / "log").exists()


def test_a_log_is_appended_to(signals: Signals, tmp_path: Path) -> None:
    log_path = tmp_path / "log"
    log_path.write_text("before\n")

    with CheckedChildren(signals) as children:
        start(children, "echo after", log_path)
        next_exit(children)

    assert log_path.read_text() == "before\nafter\n"


def test_the_log_is_ours_alone_and_no_link_is_followed(signals: Signals, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "victim")
    (tmp_path / "victim").write_text("untouched")

    with CheckedChildren(signals) as children:
        start(children, "umask 0; echo loud", tmp_path / "log")
        next_exit(children)
    with pytest.raises(OSError, match="symbolic links"), CheckedChildren(signals) as children:
        start(children, "echo loud", tmp_path / "link")
        next_exit(children)

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
    with Path("/dev/zero").open("rb") as zero, CheckedChildren(signals) as children:
        start(children, "sleep 60", name="loud")
        output = children._running["loud"].output
        output._pipe.close()
        output._pipe = endless
        output.read()

        assert endless.reads == 16


def test_reading_never_waits_for_a_child(signals: Signals) -> None:
    with CheckedChildren(signals) as children:
        start(children, "echo ready; sleep 60")
        output = children._running["child"].output

        assert not os.get_blocking(output.descriptor)


def test_an_error_at_the_last_output_of_a_child_is_raised(
    signals: Signals, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Naive:

    read first. The child then writes and exits before anyone looks whether it has exited.
    """

    def looked_at_late(process: subprocess.Popen[bytes]) -> bool:
        (tmp_path / "go").touch()
        wait_until(lambda: not is_running(process.pid))
        return has_exited(process)

    has_exited = module._has_exited
    monkeypatch.setattr(module, "_has_exited", looked_at_late)
    with CheckedChildren(signals) as children:
        start(
            children,
            f"until [ -e {tmp_path}/go ]; do sleep 0.01; done; echo last",
            tmp_path / "none" / "log",
        )

        with pytest.raises(FileNotFoundError):
            children.next_exit()


def test_a_log_that_cannot_be_written_keeps_nobody_from_ending_the_children(
    signals: Signals, tmp_path: Path
) -> None:
    wait_until_ready = f"until [ -e {tmp_path}/ready ]; do :; done"
    loud = f"trap 'echo more; exit' TERM; {wait_until_ready}; while :; do echo loud; done"
    stubborn = f"trap '' TERM; touch {tmp_path}/ready; while :; do sleep 1; done"

    with (
        pytest.raises(OSError, match="No space"),
        CheckedChildren(signals, grace_seconds=0.3) as children,
    ):
        start(children, loud, Path("/dev/full"))
        start(children, stubborn, name="stubborn")
        pids = [child.process.pid for child in children._running.values()]
        children.next_exit()

    assert not any(map(is_running, pids))


def test_an_error_of_the_caller_s_function_is_raised_and_keeps_nobody_from_ending_the_children(
    signals: Signals, tmp_path: Path
) -> None:
    """The function is called at a time at which nothing else may raise:

    while the block is being left.
    """

    def make_log_path() -> Path:
        raise ValueError("no place for logs")

    script = f"trap 'echo loud; exit' TERM; touch {tmp_path}/ready; while :; do sleep 0.01; done"
    with Children(signals) as children:
        for name in ("one", "two"):
            argv = ["/bin/sh", "-c", script]
            children.start(
                name, argv, cwd=tmp_path, env=dict(os.environ), make_log_path=make_log_path
            )
        pids = [child.process.pid for child in children._running.values()]
        wait_until((tmp_path / "ready").exists)

    assert not any(map(is_running, pids))
    with pytest.raises(ValueError, match="no place"), Children(signals) as children:
        children.start(
            "child",
            ["echo", "loud"],
            cwd=tmp_path,
            env=dict(os.environ),
            make_log_path=make_log_path,
        )
        children.next_exit(LONG_SECONDS)


def test_after_an_error_the_log_is_not_written_any_more_and_the_output_is_still_read(
    signals: Signals, tmp_path: Path
) -> None:
    tries = []

    def make_log_path() -> Path:
        tries.append(1)
        raise OSError("first" if len(tries) == 1 else "another")

    script = "trap 'seq 1 100000; touch cleaned; exit' TERM; echo one; while :; do sleep 0.01; done"
    with (
        pytest.raises(OSError, match="first"),
        CheckedChildren(signals, grace_seconds=LONG_SECONDS) as children,
    ):
        argv = ["/bin/sh", "-c", script]
        children.start(
            "child", argv, cwd=tmp_path, env=dict(os.environ), make_log_path=make_log_path
        )
        children.next_exit()

    assert tries == [1]
    assert (tmp_path / "cleaned").exists()


# What a child gets


def test_the_stdin_of_a_child_is_empty_whatever_ours_is() -> None:
    ran = run_python("-c", _ONE_CHILD, "cat; exit 4", stdin="ours")

    assert json.loads(ran.stdout) == [4, ""]


def test_nothing_of_ours_is_inherited(signals: Signals) -> None:
    with CheckedChildren(signals) as children:
        start(children, "ls /proc/self/fd | wc -w")
        child_exit = next_exit(children)

    assert child_exit.output_tail.strip() == "4"


def test_a_child_gets_the_arguments_the_directory_and_the_environment_that_were_given(
    signals: Signals, tmp_path: Path
) -> None:
    argv = ["/bin/sh", "-c", 'pwd; echo "$1 $COLOUR"', "sh", "$HOME; *"]

    with CheckedChildren(signals) as children:
        children.start("child", argv, cwd=tmp_path, env={**os.environ, "COLOUR": "red"})
        child_exit = next_exit(children)

    assert child_exit.output_tail == f"{tmp_path}\n$HOME; * red\n"


def test_a_child_knows_the_locks_of_the_call_and_of_its_callers(
    signals: Signals, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A nested call that needs one of them fails at once, instead of waiting for itself."""
    monkeypatch.setenv("SAFETY_HELD_LOCKS", "/of/the/caller")

    with CheckedChildren(signals, lock_paths=[Path("/of/the/call")]) as children:
        start(children, 'echo "$SAFETY_HELD_LOCKS"')
        child_exit = next_exit(children)

    assert child_exit.output_tail == "/of/the/caller\n/of/the/call\n"


def test_children_get_absolute_paths_of_locks(
    signals: Signals, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A child may run in another directory, where a relative path means another lock."""
    monkeypatch.delenv("SAFETY_HELD_LOCKS", raising=False)
    monkeypatch.chdir(tmp_path)

    with Children(signals, lock_paths=[Path("work.lock")]) as children:
        start(children, 'echo "$SAFETY_HELD_LOCKS"')
        child_exit = children.next_exit()

    assert child_exit is not None
    assert child_exit.output_tail == f"{tmp_path / 'work.lock'}\n"


def test_without_a_lock_a_child_s_environment_is_the_one_that_was_given(
    signals: Signals, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("SAFETY_HELD_LOCKS", raising=False)
    environment = {"HOME": os.environ["HOME"], "COLOUR": "red"}

    with CheckedChildren(signals) as children:
        children.start("child", ["/usr/bin/env"], cwd=Path("/"), env=environment)
        child_exit = next_exit(children)

    assert child_exit.output_tail == f"HOME={os.environ['HOME']}\nCOLOUR=red\n"


def test_a_child_that_cannot_be_started_leaves_nothing_behind(signals: Signals) -> None:
    with CheckedChildren(signals) as children:
        with pytest.raises(FileNotFoundError):
            children.start("child", ["/no/such/program"], cwd=Path("/"), env=dict(os.environ))

        assert children.next_exit() is None
        assert not children.has_started


def test_a_block_knows_whether_it_has_started_a_child(signals: Signals) -> None:
    with CheckedChildren(signals) as children:
        had_started = children.has_started
        start(children, "true")

    assert not had_started
    assert children.has_started


def test_after_a_signal_nothing_more_is_started(signals: Signals) -> None:
    signals.received = signal.SIGTERM

    with CheckedChildren(signals) as children, pytest.raises(Interrupted):
        start(children, "true")

    assert children._running == {}


# Waiting for an exit


def test_a_child_that_exits_is_returned_once(signals: Signals) -> None:
    with CheckedChildren(signals) as children:
        start(children, "exit 0")
        next_exit(children)

        assert children.next_exit() is None


def test_a_child_that_runs_on_is_not_waited_for_longer_than_the_caller_likes(
    signals: Signals,
) -> None:
    with CheckedChildren(signals) as children:
        start(children, "sleep 60")
        began = time.monotonic()

        assert children.next_exit(within_seconds=0) is None
        assert children.next_exit(within_seconds=0.1) is None
        assert 0.1 <= time.monotonic() - began < LONG_SECONDS


def test_a_wait_ends_as_soon_as_a_child_writes_or_exits(signals: ImpatientSignals) -> None:
    with CheckedChildren(signals) as children:
        start(children, "sleep 60")
        child = children._running["child"]
        ends_a_wait = [child.output.descriptor, child.exit_descriptor]
        children.next_exit(within_seconds=0.01)

    seconds, watched = signals.waits[0]
    assert sorted(watched) == sorted(ends_a_wait)  # type: ignore[type-var]
    assert 0 < seconds <= 0.01


@pytest.mark.parametrize("within_seconds", [None, 60])
def test_after_a_second_children_and_signals_are_looked_at_even_if_nothing_has_ended_the_wait(
    signals: ImpatientSignals, within_seconds: float | None
) -> None:
    with CheckedChildren(signals) as children:
        start(children, "sleep 0.01")
        children.next_exit(within_seconds)

    assert {seconds for seconds, _ in signals.waits} == {1.0}


@pytest.mark.parametrize(
    ("within_seconds", "longest_seconds"), [(None, 0.02), (60, 0.02), (0.001, 0.001)]
)
def test_where_nothing_announces_an_exit_it_is_looked_for_often(
    signals: ImpatientSignals,
    within_seconds: float | None,
    longest_seconds: float,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delattr(os, "pidfd_open")

    with CheckedChildren(signals) as children:
        start(children, "exec >&- 2>&-; sleep 0.1")
        children.next_exit(within_seconds)

    assert 0 < max(seconds for seconds, _ in signals.waits) <= longest_seconds


def test_a_child_that_closed_its_output_is_still_waited_for_and_keeps_no_processor_busy(
    signals: ImpatientSignals,
) -> None:
    with CheckedChildren(signals) as children:
        start(children, "exec >&- 2>&-; sleep 0.3; exit 7")
        child_exit = next_exit(children)

    assert child_exit.exit_code == 7
    assert len(signals.waits) < 20


def test_a_child_that_gets_a_signal_is_returned_when_it_has_exited(signals: Signals) -> None:
    with CheckedChildren(signals) as children:
        start(children, "trap 'exit 5' TERM; echo ready; while :; do sleep 0.01; done")
        wait_for_output(children, "ready")
        children.send_signal("child", signal.SIGTERM)
        child_exit = next_exit(children)

    assert child_exit.exit_code == 5


def test_a_signal_for_a_child_that_does_not_run_is_sent_to_nobody(
    signals: Signals, monkeypatch: pytest.MonkeyPatch
) -> None:
    sent: list[int] = []
    with CheckedChildren(signals) as children:
        start(children, "sleep 60")
        with monkeypatch.context() as patch:
            patch.setattr(os, "killpg", lambda group, number: sent.append(group))
            children.send_signal("nobody", signal.SIGTERM)

    assert sent == []


def test_the_exit_code_of_a_child_that_a_signal_killed_is_the_negative_signal(
    signals: Signals,
) -> None:
    with CheckedChildren(signals) as children:
        start(children, "kill -HUP $$")
        child_exit = next_exit(children)

    assert child_exit.exit_code == -signal.SIGHUP


def test_a_child_that_has_exited_leaves_no_descriptor_open(
    signals: Signals, tmp_path: Path
) -> None:
    """The child's record is kept here: when Python frees it, it would close the pipe."""
    before = len(os.listdir("/proc/self/fd"))

    with CheckedChildren(signals) as children:
        start(children, "echo loud", tmp_path / "log")
        child = children._running["child"]
        next_exit(children)
        after = len(os.listdir("/proc/self/fd"))

    assert child.output._pipe.closed
    assert after == before


# The group


def test_a_grandchild_does_not_outlive_the_child(signals: Signals, tmp_path: Path) -> None:
    with CheckedChildren(signals) as children:
        start(children, f"sleep 60 & echo $! > {tmp_path}/pid; exit 0")
        child_exit = next_exit(children)

    assert child_exit.exit_code == 0
    assert child_exit.survivors == ()
    assert not is_running(int((tmp_path / "pid").read_text()))


def test_what_a_grandchild_writes_before_it_is_killed_is_not_lost(
    signals: Signals, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Naive:

    read once when the child has exited. The grandchild writes after that, and before it is killed.
    """

    def signal_late(group: int, number: int) -> None:
        (tmp_path / "go").touch()
        wait_until((tmp_path / "written").exists)
        signal_group(group, number)

    signal_group = module._signal_group
    monkeypatch.setattr(module, "_signal_group", signal_late)
    grandchild = "until [ -e go ]; do sleep 0.01; done; echo last; touch written; sleep 60"
    with CheckedChildren(signals) as children:
        argv = ["/bin/sh", "-c", f"({grandchild}) & exit 0"]
        children.start("child", argv, cwd=tmp_path, env=dict(os.environ))
        child_exit = next_exit(children)

    assert child_exit.output_tail == "last\n"


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
    leave_a_zombie = f"{sys.executable} -S -c '{_LEAVES_A_ZOMBIE}' {careless}"
    script = f"{leave_a_zombie}; until [ -s {careless} ]; do sleep 0.01; done"

    try:
        with CheckedChildren(signals) as children:
            start(children, script)
            child_exit = next_exit(children)
    finally:
        os.kill(int(careless.read_text()), signal.SIGKILL)

    assert child_exit.survivors == ()


def test_a_child_that_even_sigkill_does_not_end_in_time_is_named(
    signals: Signals, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In a system call that cannot be interrupted, which nothing here can make:

    it is only not seen to exit.
    """
    monkeypatch.setattr(module, "_DEATH_SECONDS", 0.1)
    with CheckedChildren(signals) as children:
        start(children, "sleep 60")
        child = children._running["child"]
        with monkeypatch.context() as patch:
            patch.setattr(module, "_has_exited", lambda process: False)
            patch.setattr(module, "_reap", lambda process: None)
            child_exit = children._kill_and_reap(child)

    assert child_exit.exit_code == -signal.SIGKILL
    assert child_exit.survivors == (child.process.pid,)
    assert (
        child.process.returncode == -signal.SIGKILL
    )  # or Python would warn of a child that is still running
    os.waitpid(child.process.pid, 0)


def test_reaping_a_child_twice_returns_its_exit_code_twice() -> None:
    process = subprocess.Popen(["/bin/sh", "-c", "exit 3"])
    os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)

    assert [module._reap(process), module._reap(process)] == [3, 3]


def test_looking_whether_a_child_has_exited_leaves_it_a_zombie() -> None:
    """Until it is reaped, nobody else can get its pid, which is the number of its group."""
    process = subprocess.Popen(["/bin/sh", "-c", "exit 3"])

    wait_until(lambda: module._has_exited(process))

    assert os.waitpid(process.pid, os.WNOHANG)[0] == process.pid
    process.returncode = 3


@pytest.mark.parametrize("error", [ProcessLookupError, PermissionError])
def test_a_group_that_no_signal_reaches_is_no_error(
    error: type[OSError], monkeypatch: pytest.MonkeyPatch
) -> None:
    def killpg(_group: int, _number: int) -> None:
        raise error

    monkeypatch.setattr(os, "killpg", killpg)

    module._signal_group(1, signal.SIGTERM)


def test_a_group_whose_processes_belong_to_another_user_counts_as_running(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def killpg(_group: int, _number: int) -> None:
        raise PermissionError

    monkeypatch.setattr(os, "killpg", killpg)
    process = subprocess.Popen(["/bin/sleep", "60"], process_group=0)

    running = module._find_running_members(process.pid)

    process.kill()
    process.wait()
    assert running == (process.pid,)


def test_a_group_without_processes_has_nobody_who_runs() -> None:
    process = subprocess.Popen(["/bin/true"], process_group=0)
    process.wait()

    assert module._find_running_members(process.pid) == ()


def test_without_proc_the_number_of_the_group_stands_for_its_processes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module, "can_see_processes", lambda: False)
    process = subprocess.Popen(["/bin/sh", "-c", "sleep 60 & wait"], process_group=0)

    running = module._find_running_members(process.pid)

    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    assert running == (process.pid,)


def test_a_group_that_never_ends_is_waited_for_until_the_deadline(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    looks = []

    def find_running_members(_group: int) -> tuple[int, ...]:
        looks.append(time.monotonic())
        assert len(looks) < 100, "the deadline has not ended the wait"
        return (7,)

    monkeypatch.setattr(module, "_find_running_members", find_running_members)
    deadline = time.monotonic() + 0.05

    assert module._wait_for_group(7, deadline) == (7,)
    assert looks[-2] < deadline <= time.monotonic()


# Leaving the block


def test_leaving_the_block_ends_all(signals: Signals) -> None:
    with CheckedChildren(signals) as children:
        for number in range(3):
            start(children, "sleep 60", name=str(number))
        pids = [child.process.pid for child in children._running.values()]

    assert not any(map(is_running, pids))
    assert children.next_exit() is None


def test_a_child_that_ignores_the_request_is_killed_after_the_grace_period(
    signals: Signals,
) -> None:
    with CheckedChildren(signals, grace_seconds=0.3) as children:
        start(children, "trap '' TERM; echo ready; while :; do sleep 1; done")
        wait_for_output(children, "ready")
        pid = children._running["child"].process.pid
        asked_at = time.monotonic()

    assert time.monotonic() - asked_at >= 0.3
    assert not is_running(pid)


def test_a_child_that_is_ended_has_time_to_clean_up(signals: Signals, tmp_path: Path) -> None:
    clean_up = f"sleep 0.2; touch {tmp_path}/cleaned; exit 5"

    with CheckedChildren(signals, grace_seconds=600) as children:
        start(children, f"trap '{clean_up}' TERM; echo ready; while :; do sleep 0.01; done")
        wait_for_output(children, "ready")

    assert (tmp_path / "cleaned").exists()


def test_a_child_that_is_ended_may_write_more_than_a_pipe_holds(
    signals: Signals, tmp_path: Path
) -> None:
    clean_up = f"seq 1 100000; touch {tmp_path}/cleaned; exit"

    with CheckedChildren(signals, grace_seconds=LONG_SECONDS) as children:
        start(
            children,
            f"trap '{clean_up}' TERM; echo ready; while :; do sleep 0.01; done",
            tmp_path / "log",
        )
        wait_for_output(children, "ready")

    assert (tmp_path / "cleaned").exists()
    assert (tmp_path / "log").read_text().endswith("99999\n100000\n")


def test_an_interrupt_is_passed_on_as_what_it_was(signals: Signals, tmp_path: Path) -> None:
    traps = " ".join(
        f"trap 'echo {name} > {tmp_path}/got; exit' {name};" for name in ("INT", "TERM")
    )

    with pytest.raises(Interrupted), CheckedChildren(signals, grace_seconds=600) as children:
        start(children, f"{traps} echo ready; while :; do sleep 0.05; done")
        wait_for_output(children, "ready")
        signals.received = signal.SIGINT
        children.next_exit()

    assert (tmp_path / "got").read_text() == "INT\n"


def test_the_end_of_the_call_s_time_ends_children_too(signals: Signals) -> None:
    signals.limit(0.2)

    with pytest.raises(DeadlineExceeded), CheckedChildren(signals) as children:
        start(children, "sleep 60")
        pid = children._running["child"].process.pid
        children.next_exit()

    assert not is_running(pid)


@pytest.mark.parametrize("inherits", [True, False], ids=["with our lock", "without a lock"])
def test_a_process_that_has_left_its_group_is_ended_and_named_if_it_has_our_lock(
    tmp_path: Path, signals: Signals, inherits: bool
) -> None:
    script = "setsid sh -c 'echo $$ > pid; mv pid ready; exec sleep 60' & wait"

    with (tmp_path / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        with CheckedChildren(signals, [lock.fileno()] if inherits else []) as children:
            children.start("child", ["/bin/sh", "-c", script], cwd=tmp_path, env=dict(os.environ))
            wait_until((tmp_path / "ready").exists)
    stray = int((tmp_path / "ready").read_text())
    survived = is_running(stray)
    if survived:
        os.kill(stray, signal.SIGKILL)

    assert survived is not inherits
    assert children.strays == ([stray] if inherits else [])


# A whole program: signals, kill -9 and a SIGCHLD that is ignored


_ONE_CHILD = """
import json, os, signal, sys
from pathlib import Path
from sampletool.kit.safety.children import Children
from sampletool.kit.safety.processes import is_running
from sampletool.kit.safety.signals import Signals
with Children(Signals()) as children:
    children.start("one", ["/bin/sh", "-c", sys.argv[1]], cwd=Path("/"), env=dict(os.environ))
    child_exit = children.next_exit()
print(json.dumps([child_exit.exit_code, child_exit.output_tail]))
"""


def test_an_exit_code_that_the_kernel_has_discarded_is_a_failure() -> None:
    code = f"import signal; signal.signal(signal.SIGCHLD, signal.SIG_IGN)\n{_ONE_CHILD}"

    ran = run_python("-c", code, "echo said; exit 0", check=False)

    assert ran.stderr == ""
    assert json.loads(ran.stdout) == [LOST_EXIT_CODE, "said\n"]


_EXIT_CODE_OF_A_CHILD = """
with Children(context.signals) as children:
    children.start("one", ["/bin/sh", "-c", "exit 3"], cwd=context.cwd, env=os.environ)
    return Result(children.next_exit().exit_code)
"""


def test_a_parent_that_ignores_sigchld_does_not_make_a_failed_child_a_success(tool: Tool) -> None:
    process = start_probe(
        tool,
        _EXIT_CODE_OF_A_CHILD,
        before="import signal; signal.signal(signal.SIGCHLD, signal.SIG_IGN)",
    )

    assert ended(process).data == {"said": 3}


_UNDER_A_LOCK = """
orphans._PATIENCE_SECONDS = {grace}
sys.modules[context.signals.__module__]._ECHO_SECONDS = {echo}
lock = os.open("lock", os.O_RDWR | os.O_CREAT)
fcntl.flock(lock, fcntl.LOCK_EX)
with Children(context.signals, [lock], grace_seconds={grace}) as children:
    for number in range({count}):
        children.start(str(number), ["/bin/sh", "-c", {script!r}], cwd=context.cwd, env=os.environ)
        os.truncate(lock, number + 1)
    children.next_exit()
return Result(None)
"""


def under_a_lock(
    tool: Tool, script: str, count: int = 1, grace: float = 600, echo: float = 600
) -> Process:
    """Start a command whose children carry its lock.

    Each child that was started adds one byte to the file.

    A second signal within `echo` seconds is taken for an echo of the first.
    """
    (tool.cwd / "lock").write_bytes(b"")
    return start_probe(
        tool, _UNDER_A_LOCK.format(script=script, count=count, grace=grace, echo=echo)
    )


def has_bytes(file: Path, count: int) -> bool:
    """Return whether the file has at least this many bytes."""
    return file.stat().st_size >= count


def wait_for(name: str, tool: Tool, process: Process) -> None:
    """Wait for a file of a child. If the command exits before, its response says why."""
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


@pytest.mark.parametrize(
    "script", ["exec sleep 33", "setsid sleep 33; exit 1"], ids=["child", "stray"]
)
def test_two_signals_together_leave_no_child_not_even_one_that_is_being_started(
    tool: Tool, script: str
) -> None:
    for _ in range(scale(6, 200)):
        process = under_a_lock(tool, script, count=60)
        some = random.randint(1, 40)
        wait_until(partial(has_bytes, tool.cwd / "lock", some))
        process.send_signal(signal.SIGTERM)
        process.send_signal(signal.SIGHUP)
        ran = ended(process)

        assert ran.status in (-signal.SIGTERM, -signal.SIGHUP)
        assert ran.code == "INTERRUPTED"
        assert is_free(tool)


def test_the_echo_of_a_signal_leaves_children_the_time_to_clean_up(tool: Tool) -> None:
    process = under_a_lock(
        tool,
        "trap 'sleep 0.2; touch cleaned; exit' TERM INT; touch ready; while :; do sleep 0.01; done",
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
"""Its stderr is elsewhere:

the shell names the `sleep` that a signal ended, and that pipe has no reader any more.
"""


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
