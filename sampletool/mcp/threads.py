"""Work in a thread, for a coroutine that waits for it."""

import asyncio
from collections.abc import Callable
from concurrent.futures import Future, InvalidStateError
from contextlib import suppress
from threading import Thread
from typing import TypeVar

T = TypeVar("T")


async def in_thread(work: Callable[[], T]) -> T:
    """Return what `work` returns, or raise what it raises.

    A thread of asyncio's own pool would keep the process from exiting until the work is done.
    """
    done: Future[T] = Future()

    def run() -> None:
        # The future is cancelled if nothing waits for the work any more.
        with suppress(InvalidStateError):
            try:
                done.set_result(work())
            except Exception as error:
                done.set_exception(error)

    Thread(target=run, daemon=True).start()
    return await asyncio.wrap_future(done)
