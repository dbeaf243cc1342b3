"""Two workers take items from one queue. Each looks for a free item, and marks it as its own.

Both saw the same item free. Both mark it, both do the work: the mail goes out twice, the card is charged twice. Looking
again afterwards whether the mark is one's own does not help, because the other one may not have written yet.

By name: on PostgreSQL `SELECT ... FOR UPDATE SKIP LOCKED` inside the `UPDATE`, on Redis a script in Lua.
"""

from pathlib import Path

from ....state.protocol import NewTask
from ...scenario import Scenario, Way
from ._one_job import do_it, invariant, look
from ._stores import key, open_here, steps, store_in, transaction, unprotected, writes

__all__ = ["invariant", "look"]


def naive(worker: str) -> None:
    store = open_here()
    item = store.state_get(key("item")).value
    if item == "free":
        store.state_set(key("item"), worker)
        do_it(worker)


def wrong_look_again(worker: str) -> None:
    store = open_here()
    item = store.state_get(key("item")).value
    if item == "free":
        store.state_set(key("item"), worker)
        if store.state_get(key("item")).value == worker:
            do_it(worker)


def fixed(worker: str) -> None:
    claim = open_here().task_claim(key("queue"), worker, lease_ms=60_000)
    if claim.tasks:
        do_it(worker)


def prepare(directory: Path) -> None:
    with store_in(directory) as store:
        store.state_set(key("item", directory), "free")
        store.task_add(key("queue", directory), [NewTask("the item", key("item", directory))])


scenario = Scenario(
    title="Two workers, one item",
    rule="Claiming is writing: look and take in the same step.",
    happened=(
        "librefang's workers selected a free job and then updated it; two of them ran the same job. The fix made it "
        "one conditional update.",
        "https://github.com/librefang/librefang/issues/5961",
    ),
    question="There is one free item. A looks, B looks, A takes it, B takes it. Who does the work?",
    shared="who did it",
    private=("item",),
    ways={
        "naive": Way(
            says="look for a free item, then mark it",
            because="B took what it had seen free before A took it.",
        ),
        "wrong-look-again": Way(
            says="the same, then look whether the mark is one's own",
            shows="A1 B1 A2 A3 B2 B3",
            because="A looked again before B wrote, and B after it wrote: both found their own mark.",
        ),
        "fixed": Way(
            says="tool task claim: look and take in one transaction",
            steps=transaction(
                "task_claim", {"look": "SELECT ID, GENERATION", "take it": "UPDATE tool_tasks SET STATUS"}
            ),
            shows="A1 B1",
            because="B could look only when A had taken it, and found nothing.",
        ),
    },
    steps=(
        *steps("look: it is free", sql="SELECT", verb="state_get", after=("start",)),
        *writes("take it", verb="state_set"),
        *steps(
            "look again",
            sql="SELECT key, value, version, expires_at FROM tool_state",
            verb="state_get",
            after=("take it",),
        ),
    ),
    mechanisms=unprotected("the one job was done by A and B", "failed"),
    symbol="sampletool.state.sql_verbs:task_claim",
    still_broken_by="work that outlasts its lease: see zombie-worker.",
)
