"""The code for systems other than Linux works.

The tests hide what only Linux has, from this process or from a new one. That is not a Mac, but it
runs each of these lines.
"""

import fcntl
import json
import os
import signal
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from sampletool.kit.places import workspace_lock
from sampletool.kit.program import PACKAGE
from sampletool.kit.safety import atomic_file, children, processes
from sampletool.kit.safety.children import ChildExit, Children
from sampletool.kit.safety.signals import Signals
from sampletool.kit.testing.forked import run_python
from sampletool.kit.testing.holding import holding
from sampletool.kit.testing.tool import Tool

_ONLY_LINUX = ("pidfd_open", "waitid", "listxattr", "getxattr", "setxattr")
_HIDING = f"""
import errno, os, signal, sys

for name in {_ONLY_LINUX}:
    delattr(os, name)
del signal.pidfd_send_signal

def hide(event, args):
    if event in ("open", "os.listdir", "os.scandir") and str(args[0]).startswith("/proc"):
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), args[0])

sys.addaudithook(hide)
"""


@pytest.fixture
def elsewhere(tool: Tool, tmp_path: Path) -> Tool:
    """Return the tool. It, and each Python that it starts, finds nothing that only Linux has."""
    place = tmp_path / "hidden"
    place.mkdir()
    (place / "sitecustomize.py").write_text(_HIDING)
    tool.environ["PYTHONPATH"] = f"{place}:{tool.environ['PYTHONPATH']}"
    return tool


@pytest.fixture
def without_linux(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in _ONLY_LINUX:
        monkeypatch.delattr(os, name)
    monkeypatch.setattr(processes, "_read_stat", lambda name: None)


def is_running(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


def run(signals: Signals, *scripts: str) -> dict[str, ChildExit]:
    with Children(signals) as running:
        for number, script in enumerate(scripts):
            running.start(
                str(number), ["/bin/sh", "-c", script], cwd=Path("/"), env=dict(os.environ)
            )
        exits = [running.next_exit() for _ in scripts]
    return {child_exit.name: child_exit for child_exit in exits if child_exit is not None}


def test_how_children_ended_is_known_without_waitid(without_linux: None, signals: Signals) -> None:
    exits = run(signals, "echo said; exit 3", "kill -9 $$", "exit 0")

    assert {name: one.exit_code for name, one in exits.items()} == {
        "0": 3,
        "1": -signal.SIGKILL,
        "2": 0,
    }
    assert exits["0"].output_tail == "said\n"
    assert all(one.survivors == () for one in exits.values())


def test_the_rest_of_a_group_is_ended_without_waitid_and_waited_for_without_proc(
    without_linux: None, signals: Signals, tmp_path: Path
) -> None:
    number = tmp_path / "pid"

    run(signals, f"sleep 60 >&- 2>&- & echo $! > {number}")

    assert not is_running(int(number.read_text()))


def test_a_child_that_goes_on_is_ended_with_the_block_without_waitid(
    without_linux: None, signals: Signals
) -> None:
    with Children(signals) as running:
        running.start("child", ["sleep", "60"], cwd=Path("/"), env=dict(os.environ))
        pid = running._running["child"].process.pid
        assert running.next_exit(within_seconds=0.05) is None

    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


def test_an_exit_code_that_the_kernel_has_discarded_is_a_failure_without_waitid(
    without_linux: None, signals: Signals
) -> None:
    before = signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    try:
        exits = run(signals, "exit 0")
    finally:
        signal.signal(signal.SIGCHLD, before)

    assert exits["0"].exit_code == children.LOST_EXIT_CODE


@pytest.fixture
def full_flushes(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[int]]:
    """Return the commands that fcntl was called with.

    The command that flushes the cache of the disk has the number of a harmless one.
    """
    given: list[int] = []
    monkeypatch.setattr(fcntl, "F_FULLFSYNC", fcntl.F_GETFD, raising=False)
    _watching.append(given)
    yield given
    _watching.remove(given)


_watching: list[list[int]] = []


def _watch(event: str, args: tuple[Any, ...]) -> None:
    if event == "fcntl.fcntl":
        for given in _watching:
            given.append(args[1])


sys.addaudithook(_watch)


def test_a_file_and_its_directory_are_flushed_to_the_disk_itself_where_fsync_stops_before(
    full_flushes: list[int], tmp_path: Path
) -> None:
    atomic_file.replace(tmp_path / "file", b"new")

    assert full_flushes == [fcntl.F_GETFD] * 2


def test_a_file_system_that_cannot_flush_the_disk_s_cache_is_flushed_as_far_as_it_can(
    full_flushes: list[int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fcntl, "F_FULLFSYNC", 9999)

    atomic_file.replace(tmp_path / "file", b"new")

    assert full_flushes == [9999] * 2
    assert (tmp_path / "file").read_bytes() == b"new"


def test_without_extended_attributes_a_file_is_replaced_and_keeps_its_mode(
    without_linux: None, tmp_path: Path
) -> None:
    file = tmp_path / "file"
    file.write_bytes(b"old")
    file.chmod(0o640)

    atomic_file.replace(file, b"new")

    assert (file.read_bytes(), file.stat().st_mode & 0o777) == (b"new", 0o640)


def test_settings_are_changed_by_many_at_once(elsewhere: Tool, workspace: Path) -> None:
    # Fresh interpreters: they read PYTHONPATH.
    calls = [
        elsewhere.start_fresh("config", "set", f"key{number}", str(number)) for number in range(6)
    ]

    assert [call.wait() for call in calls] == [0] * 6
    text = (workspace / "tool.toml").read_text()
    assert all(f"key{number} = {number}\n" in text for number in range(6))


def test_the_holder_of_a_lock_is_named_by_its_record_and_not_said_to_be_verified(
    elsewhere: Tool, workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with ExitStack() as stack:
        with (
            monkeypatch.context() as patch
        ):  # not longer: what is started meanwhile may serve other tests
            patch.setenv("PYTHONPATH", elsewhere.environ["PYTHONPATH"])
            other = stack.enter_context(holding(workspace_lock(workspace, "tool.toml")))
        (held,) = elsewhere("lock", "list").data["locks"]
        refused = elsewhere("config", "set", "a", "1", "--lock-timeout", "0")
        released = elsewhere("lock", "release", "tool.toml")

    for holder in (*held["holders"], refused.error["context"]["holder"]):
        assert (holder["pid"], holder["state"], holder["verified"]) == (other.pid, "unknown", False)
    assert refused.code == released.code == "LOCK_HELD"
    assert "not verified" in refused.error["message"]


def test_doctor_says_what_is_not_promised_there(
    elsewhere: Tool, tool: Tool, workspace: Path
) -> None:
    answer = elsewhere("doctor").data
    said = elsewhere("doctor", "--format", "text").text

    assert answer["healthy"]
    assert [promise.partition(":")[0][:30] for promise in answer["not_promised"]] == [
        "to know who holds a lock, and ",
        "to keep the extended attribute",
    ]
    assert "Not guaranteed on this system:" in said


def test_doctor_promises_everything_on_linux(tool: Tool, workspace: Path) -> None:
    assert tool("doctor").data["not_promised"] == []
    assert "Not guaranteed" not in tool("doctor", "--format", "text").text


_ON_WINDOWS = f"""
import sys
sys.platform = "win32"
sys.argv = ["tool", "config", "get", "jobs"]
from {PACKAGE}.__main__ import main
sys.exit(main())
"""


def test_on_windows_the_response_is_one_line_that_says_what_to_do(tool: Tool) -> None:
    ran = run_python("-c", _ON_WINDOWS, env=tool.environ, check=False)

    assert ran.stderr == ""
    answer = json.loads(ran.stdout)
    assert not answer["ok"]
    assert answer["error"]["code"] == "PLATFORM_NOT_SUPPORTED"
    assert answer["error"]["message"] == "The tool needs Linux or macOS. This is Windows."
    assert "WSL" in answer["error"]["suggestion"]
    assert ran.returncode == answer["error"]["exit_code"] == answer["meta"]["exit_code"]
    assert str(ran.returncode) in tool("manifest", "--schema").data["exit_statuses"]
