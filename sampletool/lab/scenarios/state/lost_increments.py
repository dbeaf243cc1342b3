"""A counter that many raise by one: visits, retries, invoices. Each reads it, adds one, and writes it back.

A hundred were counted, and the counter says seventy-three. Two workers that read the same number write the same
number, and one of them might as well not have come.

By name: `INCR` on Redis, `UPDATE ... SET count = count + 1` in SQL.
"""

import threading
from collections.abc import Iterator
from pathlib import Path

from ...scenario import History, Scenario, Way
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
    with store_in(directory) as store:
        store.state_set(key("count", directory), 0)


def look(directory: Path) -> int:
    """Wherever this way counts."""
    with store_in(directory) as store:
        return store.counter_get(key("count", directory)) or int(store.state_get(key("count", directory)).value)


def invariant(history: History) -> Iterator[str]:
    """At every moment the counter is as high as the number of workers that were answered that they are counted."""
    if history.now < len(history.served):
        asked = len(history.served)
        yield f"{asked} were answered that they are counted, and the counter says {history.now}."
    for letter in history.failed:
        yield f"{letter} could not be counted."


scenario = Scenario(
    title="Two increments, counted as one",
    rule="Adding one is three steps: let the store do them as one.",
    happened=(
        "ctcache locked its counters for reading, and again for writing; what came between the two was lost, until "
        "one lock went around both.",
        "https://github.com/matus-chochlik/ctcache/pull/46",
    ),
    question="The counter is at 0. A and B each add 1, and both succeed. What can it say afterwards?",
    shared="counter",
    private=("count",),
    ways={
        "naive": Way(
            says="read the number, add one, write it back",
            because="both read 0, and both wrote 1.",
        ),
        "wrong-thread-lock": Way(
            says="the same, under a lock for threads",
            because="each process has a lock of its own, and nobody shares it.",
        ),
        "fixed": Way(
            says="tool counter add: the store reads and writes as one step",
            steps=transaction(
                "counter_add", {"read": "SELECT VALUE FROM tool_counters", "write": "INSERT INTO tool_counters"}
            ),
            shows="A1 B1",
            because="B had to wait until A's number was committed, and added to that.",
        ),
    },
    steps=(
        *steps("read", sql="SELECT", verb="state_get", after=("start",)),
        *writes("write", verb="state_set"),
    ),
    mechanisms=unprotected("were answered that they are counted", "could not be counted"),
    symbol="sampletool.state.sql_verbs:counter_add",
    still_broken_by="counting beside the store: a number that a program keeps for itself and writes now and then.",
)
