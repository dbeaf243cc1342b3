"""sampletool/state/exchange.py: attempts, and what a caller is told about their outcome."""

import gc
import math
import signal
import weakref
from collections.abc import Callable, Iterator
from dataclasses import replace
from threading import Event, Thread
from typing import Any

import pytest

from sampletool.kit.safety.errors import Interrupted
from sampletool.kit.safety.signals import Signals
from sampletool.state.errors import LeaseLost, OutcomeUnknown, StoreUnavailable
from sampletool.state.exchange import NoReply, Request, Watch, connect_in_thread, send
from sampletool.state.protocol import Repetition
from tests.state.support.outcomes import outcome, raises
from tests.state.support.store_client import make_policy
from tests.state.support.waiting import wait_until

REFUSED = LeaseLost("ann", 1, 1, "free")


class Attempts:
    """A server whose replies the test chooses. An error among them is raised."""

    def __init__(self, *replies: object) -> None:
        self.repetitions: list[bool] = []
        """For each attempt, whether an earlier one is uncertain."""
        self._replies = list(replies)

    def __call__(self, _give_up_at: float, is_repetition: bool) -> Any:
        self.repetitions.append(is_repetition)
        reply = self._replies.pop(0)
        if isinstance(reply, Exception):
            raise reply
        return reply


def change(repetition: Repetition) -> Request:
    return Request("redis://h", "task release ann", repetition)


@pytest.mark.parametrize("repetition", ["harmless", "same key", "same fence"])
def test_a_change_whose_reply_was_lost_is_repeated_if_it_cannot_be_made_twice(
    repetition: Repetition,
) -> None:
    attempts = Attempts(
        NoReply("no connection", was_sent=False),
        NoReply("cut", was_sent=True),
        "done",
    )

    assert outcome(lambda: send(change(repetition), make_policy(), attempts)) == "done"

    assert attempts.repetitions == [False, False, True]


def test_a_change_that_is_unsafe_is_repeated_only_if_it_was_not_sent() -> None:
    not_sent = Attempts(NoReply("no connection", was_sent=False), "done")
    sent = Attempts(NoReply("cut", was_sent=True))

    assert outcome(lambda: send(change("unsafe"), make_policy(), not_sent)) == "done"
    with raises(OutcomeUnknown, match="Lost the connection to redis://h: cut"):
        send(change("unsafe"), make_policy(), sent)


def test_a_request_that_only_reads_is_never_uncertain() -> None:
    attempts = Attempts(NoReply("cut", was_sent=True), REFUSED)

    with raises(LeaseLost):
        send(Request("redis://h"), make_policy(), attempts)

    assert attempts.repetitions == [False, False]


def test_a_refusal_after_a_lost_reply_may_come_from_the_own_change() -> None:
    attempts = Attempts(NoReply("cut", was_sent=True), REFUSED)

    with raises(OutcomeUnknown, match="the second attempt was refused: Claim ann:1 is not current"):
        send(change("harmless"), make_policy(), attempts)


@pytest.mark.parametrize("repetition", ["same key", "same fence"])
def test_a_refusal_of_a_change_that_the_store_remembers_is_certain(repetition: Repetition) -> None:
    attempts = Attempts(NoReply("cut", was_sent=True), REFUSED)

    with raises(LeaseLost):
        send(change(repetition), make_policy(), attempts)


def test_a_refusal_of_the_only_attempt_is_certain() -> None:
    with raises(LeaseLost):
        send(change("harmless"), make_policy(), Attempts(REFUSED))


@pytest.mark.parametrize(("was_sent", "is_uncertain"), [(False, False), (True, True)])
def test_a_signal_ends_the_attempts_and_names_a_change_that_is_uncertain(
    was_sent: bool, is_uncertain: bool
) -> None:
    policy = replace(make_policy(), signals=Signals())

    def interrupted(_give_up_at: float, _is_repetition: bool) -> None:
        policy.signals.receive(signal.SIGTERM)
        raise NoReply("cut", was_sent=was_sent)

    with raises(Interrupted) as error:
        send(change("same key"), policy, interrupted)

    uncertain_change = "task release ann in redis://h" if is_uncertain else None
    assert error.value.uncertain_change == uncertain_change


def test_a_server_that_never_replies_is_unavailable() -> None:
    policy = make_policy(patience=0, min_server_seconds=0)

    with raises(StoreUnavailable, match="Cannot reach redis://h: no connection") as unavailable:
        send(change("harmless"), policy, Attempts(NoReply("no connection", was_sent=False)))

    assert not isinstance(unavailable.value, OutcomeUnknown)


# Connecting in a thread


def ended_in_time(action: Callable[[], object]) -> object:
    """Return the outcome of an action. Fail if it has none after ten seconds."""
    outcomes: list[object] = []
    thread = Thread(target=lambda: outcomes.append(outcome(action)), daemon=True)
    thread.start()
    thread.join(10)
    assert outcomes != [], "it does not end"
    return outcomes[0]


def test_a_connection_that_is_ready_is_returned_and_stays_open(signals: Signals) -> None:
    closed: list[str] = []
    watch = Watch(signals, give_up_at=math.inf)

    connected = ended_in_time(lambda: connect_in_thread(lambda: "socket", watch, closed.append))

    assert connected == "socket"
    assert closed == []


def test_a_connection_that_comes_too_late_is_closed(signals: Signals) -> None:
    is_ready = Event()
    closed: list[str] = []

    def connect() -> str:
        is_ready.wait(60)
        return "socket"

    def connect_in_vain() -> object:
        return connect_in_thread(connect, Watch(signals, give_up_at=0.0), closed.append)

    try:
        given_up = ended_in_time(connect_in_vain)
    finally:
        is_ready.set()

    assert given_up == "IO_ERROR"
    wait_until(lambda: closed)
    assert closed == ["socket"]


@pytest.fixture
def without_garbage_collection() -> Iterator[None]:
    """As in a call of the tool."""
    gc.disable()
    yield
    gc.enable()


class Socket:
    """What a driver opens. It is closed when nobody refers to it any more."""


@pytest.mark.usefixtures("without_garbage_collection")
def test_what_a_failed_attempt_has_opened_is_closed_at_once(signals: Signals) -> None:
    """Naive: a worker without an answer from its server keeps a socket for each attempt."""
    opened: list[weakref.ref[Socket]] = []

    def connect() -> None:
        socket = Socket()
        opened.append(weakref.ref(socket))
        error = ConnectionError(
            "no answer"
        )  # it refers to this frame, and the frame to it, as in psycopg's connect
        raise error

    try:
        connect_in_thread(connect, Watch(signals, give_up_at=math.inf), lambda _: None)
    except ConnectionError:
        pass

    assert [reference() for reference in opened] == [None]
