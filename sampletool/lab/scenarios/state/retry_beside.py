"""The caller waited ten seconds for its order to be booked, gave up, and sent it again. The first try was only slow.

So both are at work at the same time. The second one asks whether the order is booked already: not yet. A mark "being
booked" is asked for and set in two steps as well. What helps when the first try is dead does not help when it is late:
the question and the booking have to be one step, for both.
"""

import json
import sys

from ....state.protocol import Once
from ...scenario import Scenario, Way
from ._orders import BOOKED_ONCE, invariant, look
from ._stores import has, key, open_here, prepare, steps, transaction, writes

__all__ = ["invariant", "look", "prepare"]


def naive(worker: str) -> None:
    store = open_here()
    if not has(store, "booked-17"):
        store.counter_add(key("orders"), 1)
        store.state_set(key("booked-17"), "yes")


def wrong_mark_first(worker: str) -> None:
    store = open_here()
    if not has(store, "booking-17"):
        store.state_set(key("booking-17"), "yes")
        store.counter_add(key("orders"), 1)


def fixed(worker: str) -> None:
    result = open_here().counter_add(key("orders"), 1, Once(key=key("order-17")))
    sys.stdout.write(json.dumps({"booked": result.value}))


scenario = Scenario(
    title="The second try beside the first",
    rule="A retry carries the key of its first try, and the key is looked for and kept in the step that does the work.",
    happened=(
        "Prefect: when creating a run timed out, its client tried six times more, and there were six runs; since then "
        "every try of one call carries one idempotency key.",
        "https://github.com/PrefectHQ/prefect/pull/6571",
    ),
    question="B is A's second try, and A is still at work. B asks whether the order is booked. What is it answered?",
    shared="booked",
    ways={
        "naive": Way(
            says="ask whether it is booked; if not, book it, and write that down",
            because="when B asked, A had not booked yet.",
        ),
        "wrong-mark-first": Way(
            says="ask for a mark that it is being booked; if there is none, set it, then book",
            because="the mark is a fact like any other: asked for in one step, set in another.",
        ),
        "fixed": Way(
            says="tool counter add --idempotency-key: asked, booked and remembered in one transaction",
            steps=transaction(
                "counter_add", {"look for the key": "SELECT DIGEST", "book": "SELECT VALUE FROM tool_counters"}
            ),
            shows="A1 B1",
            because="B waited until A had committed, and was answered what A was.",
        ),
    },
    steps=(
        *steps("ask: not yet", sql="SELECT key, value, version, expires_at FROM tool_state", verb="state_get"),
        *writes("write", verb="counter_add", after=("ask: not yet",)),
    ),
    mechanisms=BOOKED_ONCE,
    symbol="sampletool.state.sql:SqlStore.write",
    still_broken_by="a caller that makes a new key for each try, and a try that comes when the key is forgotten, which "
    "is after 24 hours.",
)
