"""Wait for a driver that does not look at signals."""

from collections.abc import Callable
from concurrent.futures import Future, InvalidStateError, wait
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
            answer = ask()
        except BaseException as error:
            if not asked.cancelled():
                asked.set_exception(error)
            return
        try:
            asked.set_result(answer)
        except InvalidStateError:
            close(answer)

    Thread(target=work, daemon=True).start()
    try:
        while not wait([asked], _LOOK_SECONDS).done:
            signals.check()
    except BaseException:
        if not asked.cancel() and asked.exception() is None:
            close(asked.result())  # it came at the last moment
        raise
    return asked.result()
