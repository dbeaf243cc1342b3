"""A list of things to do, kept as one value, to which many agents add. Each adds two items that belong together.

Each reads the list, appends its items, and writes the list back. The items that others added in between are not on it,
and their work is never done. Looking afterwards whether one's own item is there does not help: it is, until the next
one writes the list that it read earlier.
"""

from collections.abc import Iterator
from pathlib import Path

from ....state.protocol import NewTask
from ...scenario import History, Removal, Scenario, Way
from ._stores import key, no_transaction, open_here, steps, store_in, transaction, writes


def naive(worker: str) -> None:
    store = open_here()
    items = store.state_get(key("list")).value
    store.state_set(key("list"), [*items, *items_of(worker)])


def wrong_look_afterwards(worker: str) -> None:
    naive(worker)
    store = open_here()
    items = store.state_get(key("list")).value
    if not set(items_of(worker)) <= set(items):
        store.state_set(key("list"), [*items, *items_of(worker)])


def fixed(worker: str) -> None:
    open_here().task_add(key("list"), [NewTask(item) for item in items_of(worker)])


def items_of(worker: str) -> list[str]:
    return [f"{worker}1", f"{worker}2"]


def prepare(directory: Path) -> None:
    with store_in(directory) as store:
        store.state_set(key("list", directory), [])


def look(directory: Path) -> str:
    """Wherever this way keeps its list."""
    with store_in(directory) as store:
        items = [task.body for task in store.task_list(key("list", directory), None, 0, 10)]
        items += store.state_get(key("list", directory)).value
    return " ".join(items) or "(empty)"


def invariant(history: History) -> Iterator[str]:
    """Both items of a worker come onto the list at one moment, and are there, once, when it is answered so."""
    found = history.now.split()
    for letter in history.letters:
        times = [found.count(f"{letter}{number}") for number in (1, 2)]
        if times[0] != times[1]:
            yield f"one of the two items of {letter} is on the list without the other."
        elif times != [1, 1] and letter in history.served:
            yield f"{letter} was answered that its items are on the list, and they are there {times[0]} times."


scenario = Scenario(
    title="An item that was on the list, and is not any more",
    rule="A list that many change is not one value: add to it in one transaction.",
    happened=(
        "A plug-in for coding agents kept the index of its jobs in one file; two sessions at once lost entries, and "
        "what the lost entries named was then deleted as rubbish.",
        "https://github.com/openai/codex-plugin-cc/pull/460",
    ),
    question="A and B each add two items and look afterwards whether they are there. They are. Are they at the end?",
    shared="list",
    private=("items",),
    ways={
        "naive": Way(
            says="read the list, append, write the list back",
            because="B wrote the list that it had read before A's items were on it.",
        ),
        "wrong-look-afterwards": Way(
            says="the same, then look whether the items are there",
            shows="A1 B1 A2 A3 B2 B3",
            because="A looked when its items were there; B's list was already on its way.",
        ),
        "fixed": Way(
            says="tool task add: one transaction adds the items to what is there",
            steps=transaction("task_add", {"add": "INSERT INTO tool_tasks"}),
            shows="A1 B1",
            because="nobody wrote a list: each added its own items, one after the other.",
        ),
    },
    steps=(
        *steps("read", sql="SELECT", verb="state_get", after=("start",)),
        *writes("write", verb="state_set", after=("read",)),
        *steps(
            "look", sql="SELECT key, value, version, expires_at FROM tool_state", verb="state_get", after=("write",)
        ),
        *writes("repair", verb="state_set", after=("look",)),
    ),
    mechanisms=(
        no_transaction("is on the list without the other"),
        Removal(
            "state/sqlite.py:SqliteStore.transact",
            says="the lock, and no transaction under it",
            pattern="with self._transaction(db):\n    self._read_version(db)\n    return body(db)",
            instead="return body(db)",
            breaks="is on the list without the other",
        ),
    ),
    symbol="sampletool.state.sql_verbs:task_add",
    still_broken_by="a program that still writes the whole list: all have to use the verb.",
)
