"""Follow the tree of runs that the data of the explorer contains."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Order:
    """One run in the data of the explorer."""

    schedule: str
    reason: str | None
    """Why the run is broken."""
    events: list[dict[str, Any]]


def orders(variant: dict[str, Any]) -> Iterator[Order]:
    """Yield every run from the root of the tree to an end."""
    return _orders_below(variant, variant["root"], [], [])


def _orders_below(
    variant: dict[str, Any], index: int, path: list[str], events_before: list[dict[str, Any]]
) -> Iterator[Order]:
    event_indexes, next_nodes, *reason = variant["nodes"][index]
    own_events = [variant["events"][event_index] for event_index in event_indexes]
    events = [*events_before, *own_events]
    if not next_nodes:
        yield Order(schedule=" ".join(path), reason=reason[0], events=events)
    for token, next_index in next_nodes.items():
        yield from _orders_below(variant, next_index, [*path, token], events)
