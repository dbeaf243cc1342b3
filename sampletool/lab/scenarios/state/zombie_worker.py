"""A worker claims an item for a while, and is held up: a full disk, a debugger, a laptop that was closed.

Its time is over, another one claims the item and finishes it. Then the first one wakes up, knows nothing of all that,
and writes its old result over the new one. Looking at the clock or at the store before writing does not help: it may
be held up again right after it looked.
"""

import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from ....state.protocol import UNCONDITIONAL, Claimed, Fence, NewTask, Once
from ...scenario import History, Removal, Scenario, Way
from ._stores import key, open_here, steps, store_in, writes

LEASE_MS = {"A": 1, "B": 60_000}
"""A's time is over as soon as it has claimed."""


def naive(worker: str) -> None:
    if claim(worker):
        write_result(worker)


def wrong_look_first(worker: str) -> None:
    if task := claim(worker):
        (found,) = open_here().task_list(key("queue"), None, 0, 1)
        if found.generation == task.generation:
            write_result(worker)


def fixed(worker: str) -> None:
    if task := claim(worker):
        write_result(worker, Once(fence=Fence(task.id, task.generation)))


def claim(worker: str) -> Claimed | None:
    time.sleep(2 * LEASE_MS["A"] / 1000)
    claimed = open_here().task_claim(key("queue"), worker, lease_ms=LEASE_MS[worker]).tasks
    return claimed[0] if claimed else None


def write_result(worker: str, once: Once = UNCONDITIONAL) -> None:
    open_here().state_set(key("result"), worker, once=once)


def prepare(directory: Path) -> None:
    with store_in(directory) as store:
        store.task_add(key("queue", directory), [NewTask("the item", key("item", directory))])
        store.state_set(key("result", directory), "none")


class Seen(NamedTuple):
    owner: str
    result: str
    version: int

    def __str__(self) -> str:
        return f"owner {self.owner}, result {self.result}"


def look(directory: Path) -> Seen:
    with store_in(directory) as store:
        (task,) = store.task_list(key("queue", directory), None, 0, 1)
        result = store.state_get(key("result", directory))
    return Seen(task.claimed_by or "nobody", str(result.value), result.version)


def invariant(history: History) -> Iterator[str]:
    """A result is written only by the worker whose claim of the item is the newest at that moment."""
    for moment in history.moments:
        before, after = moment.before, moment.after
        if after.version != before.version and before.owner not in ("nobody", moment.worker):
            yield f"{moment.worker} wrote its result while the item was {before.owner}'s."
    if history.is_over and history.now.owner == "B" and history.now.result == "none":
        yield "B has the item, for long enough, and no result was kept."


scenario = Scenario(
    title="A worker that was given up wakes up and writes",
    rule="Only the store can tell who is late: let every write carry the number of its claim.",
    happened=(
        "HBase lost data when a server paused for garbage collection beyond its lease and then wrote on; the number "
        "that grows with each claim, called a fencing token, is the answer.",
        "https://martin.kleppmann.com/2016/02/08/how-to-do-distributed-locking.html",
    ),
    question="A's lease ends, B claims the item and writes its result. Now A wakes up. Whose result is kept?",
    shared="item",
    private=("task.generation",),
    ways={
        "naive": Way(
            says="claim, work, write the result",
            shows="A1 B1 B2 A2",
            because="A did not know that its claim was over, and nobody compared.",
        ),
        "wrong-look-first": Way(
            says="look whether the claim is still one's own, then write",
            shows="A1 A2 B1 B2 B3 A3",
            because="A looked in time, and was held up between looking and writing.",
        ),
        "fixed": Way(
            says="a fenced write: the store compares the claim's number in the same step",
            shows="A1 B1 B2 A2",
            because="A came with claim 1, the item was at claim 2, and the store refused.",
        ),
    },
    steps=(
        *writes("claim", verb="task_claim", after=("start",)),
        *steps("look", sql="WITH CLOCK * SELECT ID, QUEUE", verb="task_list", after=("claim",)),
        *writes("write", verb="state_set", after=("claim", "look")),
    ),
    mechanisms=(
        Removal(
            "state/store.py:Store._write",
            says="no fence, and no key that it implies",
            pattern="key = remembered_key(once, verb, str(name))",
            instead="once, key = (UNCONDITIONAL, None)",
            breaks="wrote its result while the item was B",
        ),
        Removal(
            "state/sql_verbs.py:lock_claim",
            says="not comparing the number of the claim",
            pattern="found.generation != claim.generation",
            instead="found.generation < claim.generation",
            breaks="wrote its result while the item was B",
        ),
        Removal(
            "state/sql.py:SqlStore.write",
            says="looking at the claim before the transaction",
            pattern="""\
def body(db: Session) -> Reply:
    if write.key is not None:
        db.lock_name(write.key)
    remembered = _find_result(db, write)
    is_own_write = remembered is not None and remembered.is_by_claim(write.once.fence)
    if not (db.is_repetition and is_own_write):
        sql_verbs.check_fence(db, write.once.fence)
    ...
""",
            instead="""\
self.look(lambda db: sql_verbs.check_fence(db, write.once.fence))

def body(db: Session) -> Reply:
    if write.key is not None:
        db.lock_name(write.key)
    remembered = _find_result(db, write)
    ...
""",
            breaks="wrote its result while the item was B",
        ),
    ),
    symbol="sampletool.state.sql_verbs:lock_claim",
    still_broken_by="an effect outside of the store, which cannot compare: a mail, a file, a printer.",
)
