"""A list of things to do, kept as one value, to which many agents add.

Each reads the list, appends its item, and writes the list back. The items that others added in between are not on it,
and their work is never done. Looking afterwards whether one's own item is there does not help: it is, until the next
one writes the list that it read earlier.
"""

from pathlib import Path

from sampletool.lab.scenario import Outcome, Removal, Scenario, Step, Way
from sampletool.lab.scenarios.state._stores import LOCK, key, open_here, steps, writes
from sampletool.state.promises import NewTask


def naive(worker: str) -> None:
    store = open_here()
    items = store.state_get(key("list")).value
    store.state_set(key("list"), [*items, worker])


def look_afterwards(worker: str) -> None:
    store = open_here()
    items = store.state_get(key("list")).value
    store.state_set(key("list"), [*items, worker])
    items = store.state_get(key("list")).value
    if worker not in items:
        store.state_set(key("list"), [*items, worker])


def fixed(worker: str) -> None:
    open_here().task_add(key("list"), [NewTask({"for": worker})])


def prepare(directory: Path) -> None:
    store = open_here(directory)
    store.state_set(key("list", directory), [])
    store.close()


def items_in(directory: Path) -> list[str]:
    """Wherever this way keeps its list."""
    store = open_here(directory)
    items = [task.body["for"] for task in store.task_list(key("list", directory), None, 0, 10)]
    items += store.state_get(key("list", directory)).value
    store.close()
    return items


def look(directory: Path) -> str:
    return f"[{' '.join(items_in(directory))}]"


def check(outcome: Outcome) -> str | None:
    lost = [letter for letter in outcome.served if letter not in items_in(outcome.directory)]
    return f"{lost[0]} was told that its item is on the list, and it is not." if lost else None


def damage(worker: str, before: str, after: str) -> str | None:
    gone = [item for item in before.strip("[]").split() if item not in after]
    return f"{gone[0]}'s item is gone" if gone else None


READ_WRITE = (
    *steps("read", sql="SELECT", verb="state_get", after=("start",)),
    *writes("write", verb="state_set", after=("read",)),
)

scenario = Scenario(
    title="An item that was on the list, and is not any more",
    rule="A list that many change is not one value: add to it in one transaction.",
    happened=(
        "A plug-in for coding agents kept the index of its jobs in one file; two sessions at once lost entries, and "
        "what the lost entries named was then deleted as rubbish.",
        "https://github.com/openai/codex-plugin-cc/pull/460",
    ),
    good="Every item that was added is on the list.",
    question="A and B each add an item and look afterwards whether it is there. It is. Are both there at the end?",
    shared="list",
    private=("items",),
    needs_store=True,
    prepare=prepare,
    look=look,
    check=check,
    damage=damage,
    ways={
        "naive": Way(
            says="read the list, append, write the list back",
            program=naive,
            steps=READ_WRITE,
            shows="A1 B1 A2 B2",
            because="B wrote the list that it had read before A's item was on it.",
        ),
        "wrong-look-afterwards": Way(
            says="the same, then look whether the item is there",
            program=look_afterwards,
            steps=(
                *READ_WRITE,
                *steps("look", sql="SELECT [*] FROM TOOL_STATE", verb="state_get", after=("write",)),
                *writes("repair", verb="state_set", after=("look",)),
            ),
            shows="A1 B1 A2 A3 B2 B3",
            because="A looked when its item was there; B's list was already on its way.",
        ),
        "fixed": Way(
            says="tool task add: one transaction adds the item to what is there",
            program=fixed,
            steps=(
                LOCK,
                Step("add", "sql", "state.db", statement="INSERT INTO TOOL_TASKS"),
                *steps("commit", sql="COMMIT", verb="task_add"),
            ),
            shows="A1 B1",
            because="nobody wrote a list: each added its own item, one after the other.",
        ),
    },
    removal=Removal(
        "state/sqlite.py",
        says="saying that it is done without a commit",
        line='            yield\n            self._patiently(lambda: db.execute("COMMIT"))\n',
        instead="            yield\n",
    ),
    symbol="sampletool.state.sql_verbs:task_add",
    still_broken_by="somebody who still writes the whole list: everybody has to use the verb.",
)
