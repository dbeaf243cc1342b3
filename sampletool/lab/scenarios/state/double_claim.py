"""Two workers take items from one queue. Each looks for a free item, and marks it as its own.

Both saw the same item free. Both mark it, both do the work: the mail goes out twice, the card is charged twice. Looking
again afterwards whether the mark is one's own does not help, because the other one may not have written yet.

By name: on PostgreSQL `SELECT ... FOR UPDATE SKIP LOCKED` inside the `UPDATE`, on Redis a script in Lua.
"""

from collections.abc import Iterator
from pathlib import Path

from sampletool.lab.scenario import History, Scenario, Step, Way
from sampletool.lab.scenarios.state._stores import (
    LOCK,
    key,
    open_here,
    steps,
    with_reading_first,
    without_transaction,
    writes,
)
from sampletool.state.promises import NewTask


def naive(worker: str) -> None:
    store = open_here()
    item = store.state_get(key("item")).value
    if item == "free":
        store.state_set(key("item"), worker)
        do_it(worker)


def look_again(worker: str) -> None:
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


def do_it(worker: str) -> None:
    Path(f"done-by-{worker}").touch()


def prepare(directory: Path) -> None:
    store = open_here(directory)
    store.state_set(key("item", directory), "free")
    store.task_add(key("queue", directory), [NewTask("the item", key("item", directory))])
    store.close()


def look(directory: Path) -> str:
    return " ".join(sorted(path.name[-1] for path in directory.glob("done-by-*"))) or "nobody"


def invariant(history: History) -> Iterator[str]:
    """The one item is done by one worker, never by two; and by one at the end."""
    if len(history.now.split()) > 1:
        yield f"the one item was done by {' and '.join(history.now.split())}."
    if history.is_over and history.now == "nobody":
        yield "the one item was done by nobody."
    for letter, status in history.statuses.items():
        if status:
            yield f"{letter} failed instead of finding that there is nothing to do."


SELECT_UPDATE = (
    *steps("look: it is free", sql="SELECT", verb="state_get", after=("start",)),
    *writes("take it", verb="state_set"),
)

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
    needs_store=True,
    prepare=prepare,
    look=look,
    invariant=invariant,
    ways={
        "naive": Way(
            says="look for a free item, then mark it",
            program=naive,
            steps=SELECT_UPDATE,
            shows="A1 B1 A2 B2",
            because="B took what it had seen free before A took it.",
        ),
        "wrong-look-again": Way(
            says="the same, then look whether the mark is one's own",
            program=look_again,
            steps=(
                *SELECT_UPDATE,
                *steps("look again", sql="SELECT [*] FROM tool_state", verb="state_get", after=("take it",)),
            ),
            shows="A1 B1 A2 A3 B2 B3",
            because="A looked again before B wrote, and B after it wrote: both found their own mark.",
        ),
        "fixed": Way(
            says="tool task claim: look and take in one transaction",
            program=fixed,
            steps=(
                LOCK,
                Step("look", "sql", "state.db", statement="SELECT ID, GENERATION"),
                Step("take it", "sql", "state.db", statement="UPDATE tool_tasks SET STATUS"),
                *steps("commit", sql="COMMIT", verb="task_claim"),
            ),
            shows="A1 B1",
            because="B could look only when A had taken it, and found nothing.",
        ),
    },
    mechanisms=(
        without_transaction("the one item was done by A and B"),
        with_reading_first("failed"),
    ),
    symbol="sampletool.state.sql_verbs:task_claim",
    still_broken_by="work that outlasts its lease: see zombie-worker.",
)
