"""Children that can neither outlive nor outwrite the call."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from sampletool.kit.contract.errors import Interrupted, TimedOut
from sampletool.kit.safety import children as module
from sampletool.kit.safety.children import Children
from sampletool.kit.safety.signals import Signals


def start(children: Children, script: str, log: Path | None = None, name: str = "child") -> None:
    children.start(
        name, ["/bin/sh", "-c", script], cwd=Path("/"), env=dict(os.environ), log=None if log is None else lambda: log
    )


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


def test_a_silent_child_leaves_no_log(signals: Signals, tmp_path: Path) -> None:
    with Children(signals) as children:
        start(children, "true", tmp_path / "log")
        ended = children.next_ended()

    assert ended is not None
    assert ended.log is None
    assert not (tmp_path / "log").exists()


def test_stdin_is_empty_and_nothing_of_ours_is_inherited(signals: Signals) -> None:
    with Children(signals) as children:
        start(children, "cat; ls /proc/self/fd | wc -w")
        ended = children.next_ended()

    assert ended is not None
    assert ended.tail.strip() == "4"


def test_a_grandchild_does_not_outlive_the_child(signals: Signals, tmp_path: Path) -> None:
    with Children(signals) as children:
        start(children, f"sleep 60 & echo $! > {tmp_path}/pid; exit 0")
        ended = children.next_ended()

    assert ended is not None
    assert ended.status == 0
    assert ended.survivors == ()
    assert not is_running(int((tmp_path / "pid").read_text()))


def test_a_child_that_closed_its_output_is_still_waited_for(signals: Signals) -> None:
    with Children(signals) as children:
        start(children, "exec >&- 2>&-; sleep 0.3; exit 7")
        ended = children.next_ended()

    assert ended is not None
    assert ended.status == 7


def test_leaving_the_block_ends_all(signals: Signals) -> None:
    with Children(signals) as children:
        for number in range(3):
            start(children, "sleep 60", name=str(number))
        pids = [child.process.pid for child in children._running.values()]

    assert not any(map(is_running, pids))


def test_a_log_that_cannot_be_written_keeps_nobody_from_ending_the_children(
    signals: Signals, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "GRACE_SECONDS", 0.3)
    with pytest.raises(OSError, match="No space"), Children(signals) as children:
        start(children, f"until [ -e {tmp_path}/ready ]; do :; done; while :; do echo loud; done", Path("/dev/full"))
        start(children, f"trap '' TERM; touch {tmp_path}/ready; while :; do sleep 1; done", name="stubborn")
        pids = [child.process.pid for child in children._running.values()]
        children.next_ended()

    assert not any(map(is_running, pids))


def test_a_child_that_ignores_the_request_is_killed_after_the_grace(
    signals: Signals, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "GRACE_SECONDS", 0.3)
    began = time.monotonic()
    with Children(signals) as children:
        start(children, "trap '' TERM; echo ready; while :; do sleep 1; done")
        children.next_ended(within_seconds=0.5)

    assert 0.7 <= time.monotonic() - began < 5


def test_an_interrupt_is_passed_on_as_what_it_was(signals: Signals, tmp_path: Path) -> None:
    with pytest.raises(Interrupted), Children(signals) as children:
        start(children, f"trap 'echo INT > {tmp_path}/got; exit' INT; echo ready; while :; do sleep 0.05; done")
        children.next_ended(within_seconds=0.3)
        signals.received = signal.SIGINT
        children.next_ended()

    assert (tmp_path / "got").read_text() == "INT\n"


def test_the_end_of_the_call_s_time_ends_children_too(signals: Signals) -> None:
    signals.limit(0.2)
    with pytest.raises(TimedOut), Children(signals) as children:
        start(children, "sleep 60")
        pid = next(iter(children._running.values())).process.pid
        children.next_ended()

    assert not is_running(pid)


_PARENT = """
import os, signal, sys, time
from pathlib import Path
from sampletool.kit.safety.children import Children
from sampletool.kit.safety.signals import Signals
signals = Signals()
signals.install()
with Children(signals) as children:
    children.start("stubborn", ["/bin/sh", "-c", "trap '' TERM INT; echo $$; while :; do sleep 1; done"],
                   cwd=Path("/"), env=dict(os.environ))
    while not children._running["stubborn"].tail:
        children.next_ended(within_seconds=0.1)
    print(int(children._running["stubborn"].tail), flush=True)
    children.next_ended()
"""


def test_a_second_signal_kills_the_children_and_dies_at_once() -> None:
    parent = subprocess.Popen([sys.executable, "-c", _PARENT], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    assert parent.stdout is not None
    child = int(parent.stdout.readline())
    began = time.monotonic()
    parent.terminate()
    time.sleep(0.3)
    parent.send_signal(signal.SIGINT)
    parent.communicate(timeout=10)

    assert parent.returncode == -signal.SIGINT
    assert time.monotonic() - began < 4
    for _ in range(100):
        if not is_running(child):
            break
        time.sleep(0.02)
    assert not is_running(child)


def test_what_cannot_be_started_leaves_nothing_behind(signals: Signals) -> None:
    with Children(signals) as children, pytest.raises(FileNotFoundError):
        children.start("child", ["/no/such/program"], cwd=Path("/"), env=dict(os.environ))

    assert children.next_ended() is None
