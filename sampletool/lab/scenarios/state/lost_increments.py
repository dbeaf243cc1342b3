"""Many workers add one to the same counter: visits, retries, invoices.

Each worker reads the number, adds one, and writes the result back. Two workers that read the same
number also write the same number, so one of them is not counted. The counter reports 73 after 100
visits. A list that is stored as one value loses items in the same way.
"""

import threading
from collections.abc import Iterator
from pathlib import Path

from ...scenario import History, Scenario, Variant
from ._stores import (
    mutations_of_write,
    open_shared_store,
    run_key,
    statement_steps,
    store_in,
    transaction_steps,
    write_steps,
)


def naive(worker: str) -> None:
    store = open_shared_store()
    count = store.state_get(run_key("count")).value
    store.state_set(run_key("count"), count + 1)


def wrong_thread_lock(worker: str) -> None:
    with threading.Lock():
        naive(worker)


def fixed(worker: str) -> None:
    open_shared_store().counter_add(run_key("count"), 1)


def prepare(directory: Path) -> None:
    """Store a count of 0."""
    with store_in(directory) as store:
        store.state_set(run_key("count", directory), 0)


def read_state(directory: Path) -> int:
    """Return the count. A variant keeps it in a counter of the store, or in a value."""
    with store_in(directory) as store:
        counter = store.counter_get(run_key("count", directory))
        value = store.state_get(run_key("count", directory)).value
    # A variant uses only one of the two, and the other one stays at 0.
    uses_counter = counter != 0
    if uses_counter:
        return counter
    return int(value)


def invariant(history: History) -> Iterator[str]:
    """Each worker that has reported success is counted, and no worker fails."""
    count = history.state
    successes = len(history.successful_workers)
    if count < successes:
        yield f"{successes} workers reported success, but the counter is {count}."
    for worker in history.failed_workers:
        yield f"{worker} failed to count."


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
    private_variables=("count",),
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
            steps=transaction_steps(
                "counter_add",
                {"read": "SELECT VALUE FROM tool_counters", "write": "INSERT INTO tool_counters"},
            ),
            schedule="A1 B1",
            explanation="B waited until A had committed, and added one to the new number.",
        ),
    },
    steps=(
        *statement_steps("read", sql="SELECT", verb="state_get", after_steps=("start",)),
        *write_steps("write", verb="state_set"),
    ),
    mechanisms=mutations_of_write("reported success, but the counter is", "failed to count"),
    production_code="sampletool.state.sql_verbs:counter_add",
)
