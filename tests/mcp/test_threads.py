"""sampletool/mcp/threads.py: work in a thread that nothing has to wait for."""

import asyncio
import threading

import pytest

from sampletool.kit.testing.failing import failure_of
from sampletool.mcp.threads import in_thread


def test_the_result_of_the_work_comes_back_from_a_thread_that_keeps_no_process_alive() -> None:
    def look() -> tuple[bool, bool]:
        thread = threading.current_thread()
        return thread is threading.main_thread(), thread.daemon

    assert asyncio.run(in_thread(look)) == (False, True)


def test_an_error_of_the_work_is_raised_where_it_is_awaited() -> None:
    def fail() -> None:
        raise ValueError("why")

    failure = failure_of(lambda: asyncio.run(in_thread(fail)))

    assert isinstance(failure, ValueError)
    assert str(failure) == "why"


@pytest.mark.parametrize("fails", [True, False])
def test_work_that_nothing_waits_for_any_more_ends_silently(
    monkeypatch: pytest.MonkeyPatch,
    fails: bool,
) -> None:
    may_end = threading.Event()
    threads: list[threading.Thread] = []
    errors: list[object] = []
    monkeypatch.setattr(threading, "excepthook", errors.append)

    def work() -> None:
        threads.append(threading.current_thread())
        may_end.wait(60)
        if fails:
            raise ValueError

    async def cancel() -> None:
        task = asyncio.create_task(in_thread(work))
        while not threads:
            await asyncio.sleep(0.01)
        task.cancel()
        await asyncio.wait([task])

    asyncio.run(cancel())
    may_end.set()
    threads[0].join(60)

    assert errors == []
