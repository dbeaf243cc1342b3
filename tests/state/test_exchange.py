"""sampletool/state/exchange.py: the error of a failed request. test_faults.py tests its waits."""

import gc
import math
import weakref
from collections.abc import Iterator

import pytest

from sampletool.kit.safety.signals import Signals
from sampletool.state.exchange import Watch, connect_in_thread


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
