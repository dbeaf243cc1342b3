"""Many workers add one to the same counter: visits, retries, invoices.

Each worker reads the number, adds one, and writes the result back. Two workers that read the same
number also write the same number, so one of them is not counted. The counter reports 73 after 100
visits. A list that is stored as one value loses items in the same way.
"""

import threading
from collections.abc import Iterator
from pathlib import Path

from ...scenario import History, Scenario, Variant
from ._stores import key, open_here, steps, store_in, transaction, unprotected, writes


def naive(worker: str) -> None:
    store = open_here()
    count = store.state_get(key("count")).value
    store.state_set(key("count"), count + 1)


def wrong_thread_lock(worker: str) -> None:
    with threading.Lock():
        naive(worker)


def fixed(worker: str) -> None:
    open_here().counter_add(key("count"), 1)


def prepare(directory: Path) -> None:
    """Store a count of 0."""
    with store_in(directory) as store:
        store.state_set(key("count", directory), 0)


def look(directory: Path) -> int:
    """Return the count of the key that this variant uses."""
    with store_in(directory) as store:
        counter = store.counter_get(key("count", directory))
        if counter:
            return counter
        return int(store.state_get(key("count", directory)).value)


def invariant(history: History) -> Iterator[str]:
    """Each worker that has reported success is counted, and no worker fails."""
    reported = len(history.succeeded)
    if history.now < reported:
        yield f"{reported} workers reported success, but the counter is {history.now}."
    for letter in history.failed:
        yield f"{letter} failed to count."


scenario = Scenario(
    title="Lost increment: a counter that is too low",
    subtitle="Two workers add one, and the counter rises by one.",
    rule="Ask the store to add. Do not read a number and write it back.",
    happened=(
        "ctcache locked its counters to read them, and locked them again to write them. Updates "
        "between the two locks "
        "were lost, until one lock covered both.",
        "https://github.com/matus-chochlik/ctcache/pull/46",
    ),
    question=(
        "The counter is at 0. A and B each add 1, and both succeed. What can it be afterwards?"
    ),
    shared="counter",
    private=("count",),
    variants={
        "naive": Variant(
            summary="reads the number, adds one, writes it back",
            explanation="Both read 0, and both wrote 1.",
        ),
        "wrong-thread-lock": Variant(
            summary="does the same under a lock for threads",
            explanation="Each process has a lock of its own, so the locks exclude nobody.",
        ),
        "fixed": Variant(
            summary="runs `tool counter add`, which reads and writes in one transaction",
            steps=transaction(
                "counter_add",
                {"read": "SELECT VALUE FROM tool_counters", "write": "INSERT INTO tool_counters"},
            ),
            schedule="A1 B1",
            explanation="B waited until A had committed, and added one to the new number.",
        ),
    },
    steps=(
        *steps("read", sql="SELECT", verb="state_get", after=("start",)),
        *writes("write", verb="state_set"),
    ),
    mechanisms=unprotected("reported success, but the counter is", "failed to count"),
    symbol="sampletool.state.sql_verbs:counter_add",
)
