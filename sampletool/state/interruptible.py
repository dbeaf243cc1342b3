"""Wait for a driver that does not look at signals."""

from collections.abc import Callable
from concurrent.futures import Future, wait
from threading import Thread
from typing import Any, TypeVar

from sampletool.kit.safety.signals import Signals

T = TypeVar("T")
_LOOK_SECONDS = 0.05


def interruptibly(signals: Signals, ask: Callable[[], T], close: Callable[[T], Any] = lambda answer: None) -> T:
    """The answer, or an interrupt as soon as one comes: then the thread that asks closes what it gets."""
    asked: Future[T] = Future()

    def work() -> None:
        try:
            asked.set_result(ask())
        except BaseException as error:
            asked.set_exception(error)

    Thread(target=work, daemon=True).start()
    try:
        while not wait([asked], _LOOK_SECONDS).done:
            signals.check()
    except BaseException:
        asked.add_done_callback(lambda late: late.exception() or close(late.result()))
        raise
    return asked.result()
