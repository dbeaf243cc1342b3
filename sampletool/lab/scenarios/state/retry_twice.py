"""A client books an order, and the response does not arrive in time.

So the client sends the request again. Now the order may be booked twice. From outside, a request
that is slow, one whose response was lost and one that never arrived all look the same. So the
client gives the request a key, and the second attempt uses the same key. Checking the key, booking
the order and storing the key must be one step.
"""

import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path

from ....state.protocol import Once
from ...scenario import History, Mutation, Scenario, Step, Variant
from ._stores import (
    has_value,
    open_shared_store,
    prepare,
    run_key,
    statement_steps,
    store_in,
    transaction_steps,
    without_transaction,
    write_steps,
)

__all__ = ["prepare"]


def naive(worker: str) -> None:
    if no_response_yet():
        open_shared_store().counter_add(run_key("orders"), 1)
        respond()


def wrong_remember_afterwards(worker: str) -> None:
    """Book, then store the key. Wrong: another attempt may look for the key in between."""
    if no_response_yet():
        store = open_shared_store()
        if not has_value(store, "order-17"):
            store.counter_add(run_key("orders"), 1)
            store.state_set(run_key("order-17"), "booked")
        respond()


def wrong_mark_first(worker: str) -> None:
    """Store the key, then book. Wrong: after a kill in between, no attempt books the order."""
    if no_response_yet():
        store = open_shared_store()
        if not has_value(store, "order-17"):
            store.state_set(run_key("order-17"), "being booked")
            store.counter_add(run_key("orders"), 1)
        respond()


def fixed(worker: str) -> None:
    if no_response_yet():
        once = Once(key=run_key("order-17"))
        orders = open_shared_store().counter_add(run_key("orders"), 1, once)
        sys.stdout.write(json.dumps({"booked": orders.value}))
        respond()


def fixed_slow(worker: str) -> None:
    """Do the same as `fixed`. In this variant, B may start before A responds."""
    fixed(worker)


def no_response_yet() -> bool:
    """Return whether no response has arrived. Only then, B starts the second attempt."""
    return "response" not in os.listdir(".")


def respond() -> None:
    """Let the response arrive at the client."""
    Path("response").touch()


def read_state(directory: Path) -> int:
    """Return the number of booked orders."""
    with store_in(directory) as store:
        return store.counter_get(run_key("orders", directory))


def invariant(history: History) -> Iterator[str]:
    """No order is booked twice. It is booked when an attempt has responded, and all agree."""
    booked_orders = history.state
    has_response = bool(history.successful_workers)
    if booked_orders > 1:
        yield f"one order was sent, and {booked_orders} are booked."
    if booked_orders < 1 and (has_response or history.is_finished):
        yield "one order was sent, and none is booked."
    for worker, response in history.responses.items():
        if response.get("booked", 1) != 1:
            yield f"{worker} got another result than the first attempt."


TRANSACTION = transaction_steps(
    "counter_add", {"look for the key": "SELECT DIGEST", "book": "INSERT INTO tool_counters"}
)
_BOOKED_TWICE = "one order was sent, and 2 are booked"


scenario = Scenario(
    title="Duplicate request: a retry books the order twice",
    subtitle="The response is slow or lost, so the client tries again.",
    rule=(
        "Give each request an idempotency key, and store the key in the same transaction as the "
        "effect."
    ),
    happened=(
        "The client of Prefect repeated a request that had timed out, up to six times, and six "
        "runs were created. "
        "Since then, all attempts of one request carry the same idempotency key.",
        "https://github.com/PrefectHQ/prefect/pull/6571",
    ),
    question=(
        "A is slow, or is killed before it responds. The client tries again as B. How many orders "
        "are booked?"
    ),
    shared="booked",
    faults="!",
    one_after_another=True,
    variants={
        "naive": Variant(
            summary="books the order, then responds",
            schedule="A1 A2 A3 A!",
            explanation=(
                "A was killed after its commit and before its response, so B booked the order "
                "again."
            ),
        ),
        "wrong-remember-afterwards": Variant(
            summary="books the order, then stores that it is booked",
            schedule="A1 A2 A3 A4 A!",
            explanation=(
                "Booking and storing the mark were two commits, and A was killed between them."
            ),
        ),
        "wrong-mark-first": Variant(
            summary="stores a mark, then books the order",
            steps=(
                *statement_steps(
                    "any mark?",
                    sql="SELECT key, value, version, expires_at FROM tool_state",
                    verb="state_get",
                ),
                *write_steps("mark", verb="state_set", after_steps=("any mark?",)),
                *write_steps("book", verb="counter_add", after_steps=("mark",)),
            ),
            one_after_another=False,
            faults="",
            schedule="A1 B1 A2 B2 A3 B3",
            explanation="Both looked for a mark before either of them stored one.",
        ),
        "fixed": Variant(
            summary="runs `tool counter add` with a key, which is stored in the same transaction",
            steps=(
                Step(name="any response?", event="os.listdir", file="here"),
                *TRANSACTION,
                Step(name="respond", event="open", file="response", kind="write"),
            ),
            schedule="A1 A2 A3 A4 A5 A!",
            explanation="B found the key and the result of A, and booked nothing.",
        ),
        "fixed-slow": Variant(
            summary="does the same, while A is slow and B starts before A responds",
            steps=TRANSACTION,
            one_after_another=False,
            faults="",
            schedule="A1 B1",
            explanation="B waited for A's transaction, found the key, and booked nothing.",
        ),
    },
    steps=(
        Step(name="any response?", event="os.listdir", file="here"),
        *statement_steps(
            "any mark?",
            sql="SELECT key, value, version, expires_at FROM tool_state",
            verb="state_get",
        ),
        Step(name="book", event="sql", file="state.db", statement="INSERT INTO tool_counters"),
        *statement_steps("commit", sql="COMMIT", verb="counter_add"),
        *write_steps("remember", verb="state_set", after_steps=("commit",)),
        Step(name="respond", event="open", file="response", kind="write"),
    ),
    mechanisms=(
        Mutation(
            function="state/sql.py:SqlStore.write",
            summary="do not store the key",
            original_code="_remember(db, write, data)",
            replacement_code="pass",
            expected_problem=_BOOKED_TWICE,
        ),
        without_transaction(_BOOKED_TWICE),
        Mutation(
            function="state/sql.py:SqlStore.write",
            summary="store the key in a transaction of its own",
            original_code="""\
def body(db: Session) -> Reply:
    ...
    if write.key is not None:
        _remember(db, write, data)
    return Reply(data)

return self.transact(body, write)
""",
            replacement_code="""\
def body(db: Session) -> Reply:
    ...
    return Reply(data)

reply = self.transact(body, write)
if write.key is not None:
    self.transact(lambda db: _remember(db, write, reply.data))
return reply
""",
            expected_problem=_BOOKED_TWICE,
        ),
        Mutation(
            function="state/sql.py:SqlStore.write",
            summary="do not look for the key",
            original_code="earlier_write = _find_earlier_write(db, write)",
            replacement_code="earlier_write = None",
            expected_problem=_BOOKED_TWICE,
        ),
    ),
    production_code="sampletool.state.sql:SqlStore.write",
)
