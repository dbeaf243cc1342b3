"""One order, which is sent twice: of the scenarios about trying again."""

from collections.abc import Iterator
from pathlib import Path

from ...scenario import History, Removal
from ._stores import key, no_transaction, store_in


def look(directory: Path) -> int:
    with store_in(directory) as store:
        return store.counter_get(key("orders", directory))


def invariant(history: History) -> Iterator[str]:
    """One order was made: never are two booked, one is as soon as a try succeeds, and every try returns the same."""
    if history.now > 1:
        yield f"one order was made, and {history.now} are booked."
    if history.now < 1 and (history.served or history.is_over):
        yield "one order was made, and none is booked."
    for letter, response in history.answers.items():
        if "booked" in response and response["booked"] != 1:
            yield f"{letter} got another result than the first try."


BOOKED_ONCE = (
    Removal(
        "state/sql.py:SqlStore.write",
        says="not remembering the key",
        pattern="_remember(db, write, data)",
        instead="pass",
        breaks="one order was made, and 2 are booked",
    ),
    no_transaction("one order was made, and 2 are booked"),
)
