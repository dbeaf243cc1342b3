"""Ask a server through a driver that does not look at signals: not beyond a signal, and again until the deadline."""

import time
from collections.abc import Callable
from concurrent.futures import Future, wait
from threading import Thread
from traceback import clear_frames
from typing import Any, TypeVar

from ..kit.safety.signals import Signals
from .errors import OutcomeUnknown, StoreUnavailable
from .retry_policy import RetryPolicy
from .store_url import no_store, shown_url

T = TypeVar("T")
_LOOK_SECONDS = _PAUSE_SECONDS = 0.05


def until_answered(terms: RetryPolicy, url: str, ask: Callable[[float], T]) -> T:
    """Ask; ask again until the deadline, which `ask` gets, unless that could do something twice: OutcomeUnknown."""
    deadline = time.monotonic() + terms.seconds(terms.answer_seconds)
    while True:
        try:
            return ask(deadline)
        except StoreUnavailable as error:
            if isinstance(error, OutcomeUnknown) or time.monotonic() >= deadline:
                raise
        except UnicodeError:
            raise no_store(url, f"{shown_url(url)} names no host that there can be") from None
        terms.signals.wait(_PAUSE_SECONDS)
        terms.signals.check()


def interruptibly(signals: Signals, ask: Callable[[], T], close: Callable[[T], Any] = lambda answer: None) -> T:
    """The answer, or an interrupt as soon as one comes: then the thread that asks closes what it gets."""
    asked: Future[T] = Future()

    def work() -> None:
        try:
            asked.set_result(ask())
        except BaseException as error:
            # psycopg's `connect` keeps the error in a local variable, so they would keep each other, and its socket,
            # which garbage collection alone would close: the tool runs without it.
            clear_frames(error.__traceback__)
            asked.set_exception(error)

    Thread(target=work, daemon=True).start()
    try:
        while not wait([asked], _LOOK_SECONDS).done:
            signals.check()
    except BaseException:
        asked.add_done_callback(lambda late: late.exception() or close(late.result()))
        raise
    return asked.result()
