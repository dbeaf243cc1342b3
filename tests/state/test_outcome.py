"""sampletool/state/exchange.py on real servers: lost replies, slow replies, signals, deadlines.

A proxy between the store and the server loses a reply, cuts it off, or lets it trickle. What the
caller is told must be true whatever happens: a change that may have been made is never reported as
one that was not made.
"""

import signal
import time
from collections.abc import Callable
from threading import Thread

import pytest

from sampletool.kit.contract.expected import to_tool_error
from sampletool.kit.safety.errors import DeadlineExceeded, Interrupted
from sampletool.state.errors import LeaseLost, OutcomeUnknown, StoreUnavailable
from sampletool.state.protocol import Fence, NewTask, Once
from sampletool.state.retry_policy import RetryPolicy
from sampletool.state.store import Store
from tests.state.conftest import ThroughProxy
from tests.state.support.outcomes import raises
from tests.state.support.proxy import FaultyProxy
from tests.state.support.store_client import make_policy
from tests.state.support.waiting import wait_until

LONG_MS = 3_600_000
PROMPT_SECONDS = 3.0
"""A wait that ends by itself takes 10 s or more. This leaves time for a busy machine."""


def impatient_policy() -> RetryPolicy:
    return make_policy(patience=0.1, min_server_seconds=0.5)


def interrupt_once_struck(policy: RetryPolicy, proxy: FaultyProxy) -> Thread:
    """Send this store a signal as soon as the server has got its change."""

    def interrupt() -> None:
        proxy.struck.wait(30)
        policy.signals.receive(signal.SIGTERM)

    thread = Thread(target=interrupt)
    thread.start()
    return thread


def seconds_taken(call: Callable[[], object]) -> float:
    began = time.monotonic()
    call()
    return time.monotonic() - began


# A signal or the deadline, after a change was sent


@pytest.mark.parametrize("once", [Once(), Once("k")], ids=["no key", "key"])
def test_a_signal_after_a_change_was_sent_reports_that_the_outcome_is_unknown(
    through_proxy: ThroughProxy, once: Once
) -> None:
    """Naive: "nothing is half done; run it again", and the counter has two instead of one."""
    policy = make_policy()
    policy.signals.listen()
    store, direct, proxy = through_proxy("swallow", policy=policy)
    thread = interrupt_once_struck(policy, proxy)

    with raises(Interrupted) as interrupted:
        store.counter_add("hits", 1, once)

    thread.join()
    policy.signals.close()
    error = to_tool_error(interrupted.value)
    assert error.context["outcome"] == "unknown"
    assert "counter add hits" in error.context["change"]
    wait_until(lambda: direct.counter_get("hits") == 1)


def test_the_deadline_after_a_change_was_sent_reports_that_the_outcome_is_unknown(
    through_proxy: ThroughProxy,
) -> None:
    policy = make_policy()
    store, direct, _proxy = through_proxy("swallow", policy=policy)
    policy.signals.limit(1.0)

    with raises(DeadlineExceeded) as exceeded:
        store.counter_add("hits", 1)

    assert to_tool_error(exceeded.value).context["outcome"] == "unknown"
    wait_until(lambda: direct.counter_get("hits") == 1)


def test_a_signal_while_reading_leaves_no_outcome_open(through_proxy: ThroughProxy) -> None:
    policy = make_policy()
    policy.signals.listen()
    store, _direct, proxy = through_proxy("swallow", policy=policy)
    proxy.struck.set()
    thread = Thread(target=policy.signals.receive, args=(signal.SIGTERM,))

    def read_without_end() -> None:
        while True:
            store.counter_get("hits")

    thread.start()
    with raises(Interrupted) as interrupted:
        read_without_end()

    thread.join()
    policy.signals.close()
    assert "outcome" not in to_tool_error(interrupted.value).context


# A lost reply


@pytest.mark.parametrize("fault", ["cut reply", "cut half"])
def test_with_a_key_a_lost_reply_is_requested_again(
    through_proxy: ThroughProxy, fault: str
) -> None:
    store, direct, proxy = through_proxy("cut half" if fault == "cut half" else "cut reply")

    added = store.counter_add("hits", 1, Once("k"))

    assert proxy.struck.is_set()
    assert (added.value, added.replayed) == (1, True)
    assert direct.counter_get("hits") == 1


@pytest.mark.parametrize("fault", ["cut reply", "cut half"])
def test_without_a_key_a_lost_reply_is_an_unknown_outcome(
    through_proxy: ThroughProxy, fault: str
) -> None:
    store, direct, _proxy = through_proxy("cut half" if fault == "cut half" else "cut reply")

    with raises(OutcomeUnknown) as unknown:
        store.counter_add("hits", 1)

    assert not unknown.value.describe()["retryable"]
    assert direct.counter_get("hits") == 1


def test_with_a_key_an_unknown_outcome_says_to_repeat_it_with_the_same_key(
    through_proxy: ThroughProxy,
) -> None:
    """Naive: "cannot be reached", as if nothing had happened."""
    store, direct, _proxy = through_proxy("swallow", policy=impatient_policy())

    with raises(StoreUnavailable) as unknown:
        store.counter_add("hits", 1, Once("k"))

    error = unknown.value.describe()
    assert (error["context"].get("outcome"), error["retryable"]) == ("unknown", True)
    assert "with the same --idempotency-key" in error["suggestion"]
    wait_until(lambda: direct.counter_get("hits") == 1)
    assert direct.counter_add("hits", 1, Once("k")).replayed


def test_a_change_that_is_harmless_to_repeat_has_an_unknown_outcome_too(
    through_proxy: ThroughProxy,
) -> None:
    store, direct, _proxy = through_proxy("swallow", "task_finish", policy=impatient_policy())
    direct.task_add("work", [NewTask("x", "a")])
    (task,) = direct.task_claim("work", "ann", lease_ms=LONG_MS).tasks

    with raises(OutcomeUnknown) as unknown:
        store.task_finish("a", task.generation)

    assert unknown.value.describe()["retryable"]
    wait_until(lambda: direct.task_list("work", "done", 0, 9) != [])


def test_a_refused_repetition_does_not_hide_that_the_first_attempt_may_have_succeeded(
    through_proxy: ThroughProxy,
) -> None:
    """Between the two attempts, somebody takes the claim away. Naive: LEASE_LOST."""
    store, direct, proxy = through_proxy("cut reply", "task_renew")
    direct.task_add("work", [NewTask("x", "a")])
    (task,) = direct.task_claim("work", "ann", lease_ms=LONG_MS).tasks
    proxy.on_strike = lambda: direct.task_release("a", task.generation)

    with raises(OutcomeUnknown, match="was refused"):
        store.task_renew("a", task.generation, lease_ms=LONG_MS)

    with raises(LeaseLost):
        store.task_renew("a", task.generation, lease_ms=LONG_MS)


def test_a_fenced_write_whose_reply_was_lost_is_replayed_although_the_claim_has_ended_since(
    through_proxy: ThroughProxy,
) -> None:
    """The store remembers that this claim has written. Naive: LEASE_LOST, although it has."""
    store, direct, proxy = through_proxy("cut reply", "state_set")
    direct.task_add("work", [NewTask("x", "a")])
    (task,) = direct.task_claim("work", "ann", lease_ms=LONG_MS).tasks
    proxy.on_strike = lambda: direct.task_release("a", task.generation)

    written = store.state_set("result", "ann", once=Once(fence=Fence("a", task.generation)))

    assert (written.version, written.replayed) == (1, True)
    assert direct.state_get("result").value == "ann"


# A slow reply


def fill(direct: Store) -> None:
    direct.state_set("large", "x" * 100_000)


def test_a_reply_that_trickles_ends_at_the_deadline(through_proxy: ThroughProxy) -> None:
    """The driver's timeout starts again with each byte. Naive: this takes hours."""
    store, direct, proxy = through_proxy("trickle", policy=impatient_policy())
    fill(direct)
    proxy.struck.set()

    def read() -> None:
        with raises(StoreUnavailable):
            store.state_get("large")

    assert seconds_taken(read) < 0.5 + PROMPT_SECONDS


def test_a_signal_ends_the_wait_for_a_reply_that_trickles(through_proxy: ThroughProxy) -> None:
    policy = make_policy(patience=600)
    policy.signals.listen()
    store, direct, proxy = through_proxy("trickle", policy=policy)
    fill(direct)
    proxy.struck.set()
    interrupted_at: list[float] = []

    def interrupt() -> None:
        proxy.is_trickling.wait(30)
        interrupted_at.append(time.monotonic())
        policy.signals.receive(signal.SIGINT)

    thread = Thread(target=interrupt)
    thread.start()

    with raises(Interrupted):
        store.state_get("large")

    thread.join()
    assert time.monotonic() - interrupted_at[0] < PROMPT_SECONDS
    policy.signals.close()


def test_a_change_whose_reply_trickles_has_an_unknown_outcome_at_the_deadline(
    through_proxy: ThroughProxy,
) -> None:
    store, direct, _proxy = through_proxy("trickle", policy=impatient_policy())

    with raises(OutcomeUnknown):
        store.counter_add("hits", 1)

    wait_until(lambda: direct.counter_get("hits") == 1)
