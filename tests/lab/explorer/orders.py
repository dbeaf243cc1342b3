"""Follow the graph that the page of the explorer contains."""

from collections.abc import Iterator
from typing import Any


def orders(way: dict[str, Any]) -> Iterator[tuple[str, str | None, list[dict[str, Any]]]]:
    """Every way through the graph: the schedule, what is broken at its end, the events."""

    def walk(number: int, path: list[str], events: list[dict[str, Any]]) -> Iterator[Any]:
        did, then, *end = way["nodes"][number]
        events = [*events, *(way["events"][each] for each in did)]
        if not then:
            yield " ".join(path), end[0], events
        for token, follows in then.items():
            yield from walk(follows, [*path, token], events)

    return walk(way["root"], [], [])
