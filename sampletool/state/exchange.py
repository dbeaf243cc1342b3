"""Talk to a server: with a deadline, without ignoring signals, and honest about lost replies.

A driver alone has none of these. Its timeout applies to each piece of a reply, so a server that
sends one byte at a time keeps the driver waiting permanently. While it waits, it ignores Ctrl-C,
because the signal handlers of this program only record a signal.

* A *request* is one verb that is sent to a server.
* An *attempt* sends a request once. If its connection breaks, another attempt may follow.
* An attempt is *uncertain* if its request was sent and no reply arrived. The server may
  have made the change or not.

An uncertain change is never reported as one that was not made. Its error has `outcome: "unknown"`,
whatever ended the wait: a lost connection, a signal, or the deadline.
"""

import time
from collections.abc import Callable
from concurrent.futures import Future, wait
from contextlib import suppress
from dataclasses import dataclass
from threading import Thread
from traceback import clear_frames
from typing import NoReturn, TypeVar

from ..kit.contract.errors import ToolError
from ..kit.safety.signals import Signals
from .errors import OutcomeUnknown, StoreUnavailable
from .protocol import Repetition
from .retry_policy import RetryPolicy

T = TypeVar("T")

_LOOK_SECONDS = 0.05
"""How long to wait for a reply before looking for a signal and at the deadline."""

_PAUSE_SECONDS = 0.05
"""The time between two attempts."""


@dataclass(frozen=True)
class Request:
    """What the attempts of one request have to know about it."""

    store: str
    """The URL of the store without its password, for messages."""

    change: str | None = None
    """The change that the request makes, such as `counter add "hits"`. None if it only reads."""

    repetition: Repetition = "harmless"


class NoReply(Exception):
    """An attempt that got no reply from the server."""

    def __init__(self, reason: str, *, was_sent: bool) -> None:
        """Say why, and whether the request was sent, so that the server may have obeyed it."""
        super().__init__(reason)
        self.reason = reason
        self.was_sent = was_sent


@dataclass
class Watch:
    """The limits of the exchange that is going on: the moment to give up, and the signals."""

    signals: Signals
    give_up_at: float = 0.0
    """On the clock of `time.monotonic`."""

    def is_over(self) -> bool:
        """Return whether the exchange has to end, with or without a reply."""
        return self.signals.is_over() or time.monotonic() >= self.give_up_at


def send(
    request: Request,
    policy: RetryPolicy,
    attempt: Callable[[float, bool], T],
) -> T:
    """Make attempts until one of them gets a reply, and return it.

    `attempt` is called with the moment to give up, on the clock of `time.monotonic`, and with
    whether an earlier attempt is uncertain, so that this one may be a repetition. It raises NoReply
    if it gets no reply, and a ToolError if the server refuses the request.

    Stop at the deadline, after a signal, and if another attempt could make a change twice. Raise
    OutcomeUnknown if the change may have been made then.
    """
    give_up_at = time.monotonic() + policy.seconds_from_now(policy.min_server_seconds)
    # Whether an earlier attempt may have made the change.
    is_uncertain = False
    while True:
        try:
            return attempt(give_up_at, is_uncertain)
        except NoReply as failure:
            if failure.was_sent and request.change is not None:
                is_uncertain = True
            _check_signals(request, policy, is_uncertain)
            is_late = time.monotonic() >= give_up_at
            if is_late or not _may_repeat(request, is_uncertain):
                _give_up(request, failure.reason, is_uncertain)
        except ToolError as refusal:
            may_be_caused_by_first_attempt = is_uncertain and request.repetition == "harmless"
            if may_be_caused_by_first_attempt:
                # If the first attempt has released a claim, for example, the second one is refused
                # because the claim is no longer current. With a key or a fence, the store
                # remembers the change, and does not refuse its repetition.
                reason = f"the second attempt was refused: {refusal.message}"
                raise _outcome_unknown(request, reason) from refusal
            raise
        policy.signals.wait(_PAUSE_SECONDS)
        _check_signals(request, policy, is_uncertain)


def _may_repeat(request: Request, is_uncertain: bool) -> bool:
    """Return whether another attempt cannot make the change twice."""
    if is_uncertain:
        return request.repetition != "unsafe"
    # Certainly, no attempt has made the change.
    return True


def _check_signals(request: Request, policy: RetryPolicy, is_uncertain: bool) -> None:
    """Raise an error if the process has to stop. It names the change if that is uncertain."""
    uncertain_change = None
    if is_uncertain:
        uncertain_change = f"{request.change} in {request.store}"
    policy.signals.check(uncertain_change=uncertain_change)


def _give_up(request: Request, reason: str, is_uncertain: bool) -> NoReturn:
    """Raise the error for a request that got no reply."""
    if is_uncertain:
        raise _outcome_unknown(request, reason)
    raise StoreUnavailable(store=request.store, reason=reason)


def _outcome_unknown(request: Request, reason: str) -> OutcomeUnknown:
    return OutcomeUnknown(store=request.store, reason=reason, repetition=request.repetition)


def connect_in_thread(
    connect: Callable[[], T],
    watch: Watch,
    close: Callable[[T], object],
) -> T:
    """Return `connect()`, or raise what it raises. It runs in a thread.

    A driver that looks up the name of a host cannot be interrupted. The thread can be left alone.
    Raise TimeoutError if the exchange is over first. The connection is then closed as soon as it
    exists: the thread continues until `connect` has returned.
    """
    outcome: Future[T] = Future()

    def run() -> None:
        try:
            outcome.set_result(connect())
        except BaseException as error:
            # psycopg's connect() keeps its error in a local variable, so the error and the frame
            # refer to each other. Only the garbage collector, which is off in this program, would
            # free them, and close the socket.
            clear_frames(error.__traceback__)
            outcome.set_exception(error)

    def close_late_connection(finished: Future[T]) -> None:
        if finished.exception() is None:
            with suppress(Exception):
                close(finished.result())

    Thread(target=run, daemon=True).start()
    while not wait([outcome], _LOOK_SECONDS).done:
        if watch.is_over():
            outcome.add_done_callback(close_late_connection)
            raise TimeoutError
    return outcome.result()
