"""sampletool/mcp/runner.py: many commands at once, none in another one's way."""

import asyncio
import errno
import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Coroutine, Iterable
from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from sampletool.kit.safety.processes import members_of_group
from sampletool.kit.safety.signals import Signals
from sampletool.kit.testing.holding import holding
from sampletool.mcp import runner as module
from sampletool.mcp.runner import CommandRunner

_SET = ["config", "set", "--lock-timeout=60s", "--", "level=2"]


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Create a workspace, which is the current directory. Return its path."""
    path = workspace(tmp_path / "here", 1)
    monkeypatch.chdir(path)
    return path


def workspace(path: Path, level: int) -> Path:
    path.mkdir()
    (path / "tool.toml").write_text(f"[settings]\nlevel = {level}\n")
    return path


async def data(asked: Coroutine[Any, Any, bytes]) -> Any:
    return json.loads(await asked)["data"]


def get(where: Path) -> list[str]:
    return ["config", "get", "--verbose", f"--cwd={where}", "--", "level"]


async def in_time(tasks: Iterable[asyncio.Task[bytes]]) -> None:
    """Fail if a command does not end: it would wait for as long as the test holds the lock."""
    _, late = await asyncio.wait([*tasks], timeout=5)
    assert not late


async def waiting_process(runner: CommandRunner) -> int:
    """Return the pid of the only command, as soon as a thread of it waits for the lock."""
    while True:
        for one in runner._running.values():
            if one.process is not None and len(os.listdir(f"/proc/{one.process.pid}/task")) > 1:
                return one.process.pid
        await asyncio.sleep(0.01)


def test_calls_that_read_at_once_read_each_its_own_workspace(
    here: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    places = {str(workspace(tmp_path / f"w{level}", level)): level for level in (2, 3)}
    both_are_there, change = threading.Barrier(2), os.chdir

    def change_and_wait_for_the_other(path: str) -> None:
        change(path)
        if path in places:  # alone it waits in vain
            with suppress(threading.BrokenBarrierError):
                both_are_there.wait(0.5)

    async def read_both() -> list[Any]:
        runner = CommandRunner()
        return await asyncio.gather(
            *(data(runner.run(get(Path(where)), reads_only=True)) for where in places)
        )

    monkeypatch.setattr(os, "chdir", change_and_wait_for_the_other)
    found = asyncio.run(read_both())

    assert [one["value"] for one in found] == [*places.values()]
    assert os.getcwd() == str(here)


def test_a_process_starts_where_the_server_did_whatever_directory_a_reading_call_is_in(
    here: Path, tmp_path: Path
) -> None:
    (here / "json.py").write_text("raise SystemExit(3)")

    async def call_from_elsewhere() -> Any:
        runner = CommandRunner()
        os.chdir(tmp_path)
        return json.loads(await runner.run(["config", "path", "--verbose"], reads_only=False))

    answer = asyncio.run(call_from_elsewhere())
    os.chdir(here)

    assert answer["meta"].get("cwd") == str(here)


def test_no_call_goes_on_in_the_workspace_of_another_when_that_of_the_server_is_gone(
    here: Path, tmp_path: Path
) -> None:
    other = workspace(tmp_path / "other", 2)

    async def read_thrice() -> list[Any]:
        runner = CommandRunner()
        inside = json.loads(await runner.run(get(other), reads_only=True))
        here.rename(tmp_path / "moved")
        gone = json.loads(await runner.run(["config", "get", "--", "level"], reads_only=True))
        os.chdir(other)
        still_gone = json.loads(await runner.run(["config", "get", "--", "level"], reads_only=True))
        (tmp_path / "moved").rename(here)
        return [
            inside,
            gone,
            still_gone,
            json.loads(await runner.run(["config", "get", "--", "level"], reads_only=True)),
        ]

    inside, gone, still_gone, back = asyncio.run(read_thrice())

    assert [inside["data"]["value"], back["data"]["value"]] == [2, 1]
    assert gone["error"]["code"] == still_gone["error"]["code"] == "FILE_NOT_FOUND"
    assert os.getcwd() == str(here)


_LOOK = """
import json, os, sys
seen = {
    "arguments": sys.argv[1:],
    "stdin": os.readlink("/proc/self/fd/0"),
    "directory": os.getcwd(),
    "leads_group": os.getpgrp() == os.getpid(),
}
print('{"event":1}')
print('{"event":2}')
print(json.dumps(seen))
"""
"""A program that reports two events, and then how it was started."""


@pytest.mark.parametrize("reports", [True, False])
def test_a_process_gets_no_input_of_the_server_and_its_events_are_not_in_its_response(
    here: Path,
    monkeypatch: pytest.MonkeyPatch,
    reports: bool,
) -> None:
    """The stdin of the server belongs to the protocol."""
    monkeypatch.setattr(module, "COMMAND", [sys.executable, "-I", "-S", "-c", _LOOK])
    events: list[object] = []

    async def report_progress(event: object) -> None:
        events.append(event)

    async def look() -> bytes:
        report = report_progress if reports else None
        return await CommandRunner().run(["build"], reads_only=False, report_progress=report)

    response = asyncio.run(look())

    assert response.count(b"\n") == 1, response
    assert json.loads(response) == {
        "arguments": ["--format=jsonl", "build"],
        "stdin": "/dev/null",
        "directory": str(here),
        "leads_group": True,
    }
    assert events == ([{"event": 1}, {"event": 2}] if reports else [])


def test_to_stop_a_command_is_to_send_sigterm_as_often_as_it_is_stopped() -> None:
    signals: list[str] = []
    process: Any = SimpleNamespace(terminate=lambda: signals.append("SIGTERM"))
    command = module._RunningCommand()
    assert not command.is_stopped

    command.stop()
    assert (signals, command.is_stopped) == ([], True)

    command.process = process
    command.stop()
    command.stop()
    assert signals == ["SIGTERM", "SIGTERM"]


def test_a_command_that_is_stopped_while_its_process_starts_is_stopped_then(
    here: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """At that moment, the pid of the process is not known yet."""
    command = module._RunningCommand()
    started: list[subprocess.Popen[bytes]] = []

    class StoppedPopen(subprocess.Popen[bytes]):
        def __init__(self, argv: list[str], **options: Any) -> None:
            command.stop()
            super().__init__(argv, **options)
            started.append(self)

    waits = "import signal; signal.alarm(10); signal.pause()"
    monkeypatch.setattr(module, "COMMAND", [sys.executable, "-I", "-S", "-c", waits])
    monkeypatch.setattr(module, "Popen", StoppedPopen)

    def ignore(_event: bytes) -> None:
        raise AssertionError("the program prints no events")

    async def start() -> Any:
        return json.loads(CommandRunner()._run_process(command, ["config", "set"], ignore))

    answer = asyncio.run(start())

    assert "(exit code -15)" in answer["error"]["message"]
    (process,) = started
    assert process.stdout is not None
    assert (process.returncode, process.stdout.closed) == (-signal.SIGTERM, True)
    assert here.is_dir()


def test_where_reading_is_held_up_a_process_reads(
    here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_READ_SECONDS", 0.01)

    async def read_beside() -> Any:
        runner = CommandRunner()
        async with runner._directory_lock:
            task = asyncio.create_task(runner.run(get(here), reads_only=True))
            await in_time([task])
            return json.loads(await task)["data"]

    assert asyncio.run(read_beside())["value"] == 1


def test_a_call_that_would_be_one_process_too_many_waits_for_another_to_end(here: Path) -> None:
    async def make_two() -> tuple[int, list[Any]]:
        runner = CommandRunner(max_processes=1)
        with holding(here / ".tool" / "locks" / "tool.toml.lock"):
            tasks = [
                asyncio.create_task(data(runner.run(_SET, reads_only=False))) for _ in range(2)
            ]
            await waiting_process(runner)
            processes = [one.process for one in runner._running.values() if one.process is not None]
        return len(processes), await asyncio.gather(*tasks)

    (here / ".tool" / "locks").mkdir(parents=True, mode=0o700)
    processes, answers = asyncio.run(make_two())

    assert processes == 1
    assert sorted(answer["effect"] for answer in answers) == ["unchanged", "updated"]


def test_each_process_leads_a_group_of_its_own_and_each_command_is_counted(here: Path) -> None:
    """Without a group, Ctrl-C in the terminal of the server would also reach its commands."""

    async def look_at_process() -> tuple[int, int, int]:
        runner = CommandRunner()
        with holding(here / ".tool" / "locks" / "tool.toml.lock"):
            task = asyncio.create_task(runner.run(_SET, reads_only=False))
            pid = await waiting_process(runner)
            group = os.getpgid(pid)
        await task
        await runner.run(get(here), reads_only=True)
        return pid, group, runner.count

    (here / ".tool" / "locks").mkdir(parents=True, mode=0o700)
    pid, group, count = asyncio.run(look_at_process())

    assert group == pid
    assert count == 2


def test_a_call_that_is_cancelled_ends_as_by_a_signal_and_changes_nothing(here: Path) -> None:
    async def cancel() -> tuple[int, int]:
        runner = CommandRunner()
        task = asyncio.create_task(runner.run(_SET, reads_only=False))
        pid = await waiting_process(runner)
        (one,) = runner._running.values()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await in_time(runner._running)
        assert one.process is not None
        return pid, one.process.returncode

    (here / ".tool" / "locks").mkdir(parents=True, mode=0o700)
    with holding(here / ".tool" / "locks" / "tool.toml.lock"):
        pid, status = asyncio.run(cancel())

    assert (status, members_of_group(pid)) == (-signal.SIGTERM, ())
    assert "level = 1" in (here / "tool.toml").read_text()


def test_the_end_of_the_server_ends_the_calls(here: Path) -> None:
    async def end() -> int:
        runner = CommandRunner()
        task = asyncio.create_task(runner.run(_SET, reads_only=False))
        pid = await waiting_process(runner)
        await runner.stop_all()
        await in_time([task])
        assert json.loads(await task)["error"]["code"] == "INTERRUPTED"
        return pid

    (here / ".tool" / "locks").mkdir(parents=True, mode=0o700)
    with holding(here / ".tool" / "locks" / "tool.toml.lock"):
        pid = asyncio.run(end())

    assert members_of_group(pid) == ()


def test_the_end_of_the_server_takes_less_than_a_second_also_where_a_call_does_not_end(
    here: Path,
) -> None:
    async def end() -> None:
        runner = CommandRunner()
        task = asyncio.create_task(runner.run(_SET, reads_only=False))
        pid = await waiting_process(runner)
        os.kill(pid, signal.SIGSTOP)
        try:
            ending = asyncio.create_task(runner.stop_all())
            await asyncio.wait([ending, task], timeout=5, return_when=asyncio.FIRST_COMPLETED)
            assert (ending.done(), task.done()) == (True, False)
        finally:
            os.kill(pid, signal.SIGKILL)
            await task

    (here / ".tool" / "locks").mkdir(parents=True, mode=0o700)
    with holding(here / ".tool" / "locks" / "tool.toml.lock"):
        asyncio.run(end())

    assert sum(module._STOP_SECONDS) < 1


def test_a_call_whose_process_is_killed_says_so(here: Path) -> None:
    async def kill() -> Any:
        runner = CommandRunner()
        task = asyncio.create_task(runner.run(_SET, reads_only=False))
        os.kill(await waiting_process(runner), signal.SIGKILL)
        return json.loads(await task)

    (here / ".tool" / "locks").mkdir(parents=True, mode=0o700)
    with holding(here / ".tool" / "locks" / "tool.toml.lock"):
        answer = asyncio.run(kill())

    assert answer["error"]["code"] == "INTERNAL_ERROR"
    assert "(exit code -9)" in answer["error"]["message"]
    assert answer["meta"]["command"] == "config.set"


def test_a_process_that_cannot_be_started_is_an_answer(here: Path, tmp_path: Path) -> None:
    async def call_from_nowhere() -> Any:
        os.chdir(workspace(tmp_path / "gone", 1))
        runner = CommandRunner()
        os.chdir(here)
        (tmp_path / "gone" / "tool.toml").unlink()
        (tmp_path / "gone").rmdir()
        return json.loads(await runner.run(["config", "path"], reads_only=False))

    answer = asyncio.run(call_from_nowhere())
    assert answer["error"]["code"] == "FILE_NOT_FOUND"
    assert answer["meta"]["command"] == "config.path"


def test_a_call_that_cannot_begin_to_read_keeps_no_other_from_reading(
    here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With too many open files there is no pipe for its signals."""
    first = [True]

    def listen(signals: Signals) -> None:
        if first and first.pop():
            raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))
        listens(signals)

    listens = Signals.listen
    monkeypatch.setattr(Signals, "listen", listen)

    async def ask() -> None:
        runner = CommandRunner()
        assert (
            json.loads(await runner.run(get(here), reads_only=True))["error"]["code"] == "IO_ERROR"
        )
        assert await data(runner.run(get(here), reads_only=True))
        assert not runner._directory_lock.locked()

    asyncio.run(ask())


def test_reading_commands_leave_no_descriptor_open(here: Path) -> None:
    """Each has a pipe for its signals. A server that leaks them stops working after hours."""

    async def read_often() -> int:
        runner = CommandRunner()
        await runner.run(get(here), reads_only=True)
        before = len(os.listdir("/proc/self/fd"))
        for _ in range(5):
            await runner.run(get(here), reads_only=True)
        return len(os.listdir("/proc/self/fd")) - before

    assert asyncio.run(read_often()) == 0


def test_a_command_that_is_cancelled_before_its_process_has_started_never_starts(
    here: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    started: list[list[str]] = []

    class CountedPopen(subprocess.Popen[bytes]):
        def __init__(self, argv: list[str], **options: Any) -> None:
            started.append(argv)
            super().__init__(argv, **options)

    monkeypatch.setattr(module, "Popen", CountedPopen)

    async def cancel_second() -> None:
        runner = CommandRunner(max_processes=1)
        with holding(here / ".tool" / "locks" / "tool.toml.lock"):
            first = asyncio.create_task(runner.run(_SET, reads_only=False))
            await waiting_process(runner)
            second = asyncio.create_task(runner.run(_SET, reads_only=False))
            await asyncio.sleep(0)
            second.cancel()
            with suppress(asyncio.CancelledError):
                await second
        assert json.loads(await first)["ok"]
        # The second one gets its turn now. It must not use it.
        while runner._running:
            await asyncio.sleep(0.01)

    (here / ".tool" / "locks").mkdir(parents=True, mode=0o700)
    asyncio.run(cancel_second())

    assert len(started) == 1


def test_the_settings_that_a_command_lists_do_not_contain_the_format_of_the_server(
    here: Path,
) -> None:
    async def read_settings() -> Any:
        runner = CommandRunner()
        return await data(runner.run(["config", "list"], reads_only=True))

    settings = asyncio.run(read_settings())["settings"]

    assert "flag" not in {setting["source"] for setting in settings}
