"""Limits and periods of the server at their real size."""

import asyncio
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from sampletool.kit.places import session_root
from sampletool.mcp import runner as module
from sampletool.mcp.resources import _read_output
from sampletool.mcp.runner import CommandRunner


@pytest.mark.parametrize(("size", "is_read"), [(1024 * 1024, True), (1024 * 1024 + 1, False)])
def test_an_output_may_be_read_up_to_a_mebibyte(size: int, is_read: bool) -> None:
    directory: Path = session_root() / "s"
    directory.mkdir(mode=0o700, parents=True)
    with (directory / "out").open("wb") as file:
        file.truncate(size)

    assert (_read_output("s", "out") is not None) is is_read


def test_a_read_waits_a_second_for_the_one_before_and_then_takes_a_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    waited: list[float] = []

    async def wait_in_vain(awaited: Any, seconds: float) -> None:
        awaited.close()
        waited.append(seconds)
        raise TimeoutError

    async def process(
        _self: CommandRunner, _one: object, _argv: list[str], _tell: object = None
    ) -> bytes:
        return b"from a process"

    monkeypatch.setattr(
        module, "asyncio", SimpleNamespace(**{**vars(asyncio), "wait_for": wait_in_vain})
    )
    monkeypatch.setattr(CommandRunner, "_run_in_process", process)

    assert asyncio.run(_run(["config", "list"])) == b"from a process"
    assert waited == [1.0]


async def _run(argv: list[str]) -> bytes:
    return await CommandRunner().run(argv, reads_only=True)


def test_the_end_leaves_calls_less_than_a_second_in_two_steps(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    steps: list[object] = []
    call = SimpleNamespace(stop=lambda: steps.append("stop"))

    async def wait(_running: object, timeout: float) -> None:
        steps.append(timeout)

    async def end() -> None:
        calls = CommandRunner()
        running: Any = calls._running
        running["a task"] = call
        await calls.stop_all()

    monkeypatch.setattr(module, "asyncio", SimpleNamespace(**{**vars(asyncio), "wait": wait}))
    asyncio.run(end())

    assert steps == ["stop", 0.6, "stop", 0.3]
