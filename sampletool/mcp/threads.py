"""A function for coroutines that runs blocking work in a thread."""

import asyncio
from collections.abc import Callable
from concurrent.futures import Future, InvalidStateError
from contextlib import suppress
from threading import Thread
from typing import TypeVar

T = TypeVar("T")


async def in_thread(work: Callable[[], T]) -> T:
    """Run `work` in a new thread, and return what it returns, or raise what it raises.

    Use this instead of asyncio.to_thread(), whose threads keep the process from exiting until their
    work is done. These threads do not, because some of them may wait permanently.
    """
    done: Future[T] = Future()

    def run() -> None:
        # The future is cancelled already if the coroutine does not wait any more.
        with suppress(InvalidStateError):
            try:
                done.set_result(work())
            except Exception as error:
                done.set_exception(error)

    Thread(target=run, daemon=True).start()
    return await asyncio.wrap_future(done)
