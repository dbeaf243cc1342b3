"""Store the recordings of one variant as a tree. Each path from the root is a schedule.

Schedules with the same beginning share a branch. Equal branches are stored only once, so the tree
of 178 schedules takes about 10 KB.

A schedule consists of *tokens*, such as `A1` (the first step of worker A). A node is a list:

1. the events of the token that leads to the node, as indexes into the table of events
2. the next nodes by their tokens, as indexes into the table of nodes
3. only in a node without next nodes: the problem of the run, or null if the run holds
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ...kit.contract.response import to_data
from ..recording import Event, Recording

_FIELDS_LEFT_OUT = ("seq", "number", "at")
_EMPTY_VALUES: tuple[object, ...] = ([], False, None)


@dataclass(frozen=True)
class RunTree:
    """The tables of events and nodes, and the index of the root in the table of nodes."""

    events: list[dict[str, Any]]
    nodes: list[list[Any]]
    root: int


@dataclass(frozen=True)
class _Run:
    """A recording with its events grouped by token."""

    tokens: list[str]
    events_by_depth: list[list[Event]]
    """The events before the first token, then those of each token."""
    reason: str | None


class _Builder:
    """Builds the two tables.

    Each table maps the JSON of an entry to its index, so that equal entries are stored once.
    """

    def __init__(self, line_of: Mapping[str, int]) -> None:
        self._line_of = line_of
        self.events: dict[str, int] = {}
        self.nodes: dict[str, int] = {}

    def add_node(self, runs: Sequence[_Run], depth: int) -> int:
        """Add the node of runs that begin with the same `depth` tokens. Return its index.

        First add the nodes to which the next tokens of these runs lead.
        """
        # The runs are the same so far, so any of them has the events.
        any_run = runs[0]
        event_indexes = [self._add_event(event) for event in any_run.events_by_depth[depth]]
        next_nodes = {}
        for token, group in _group_by_token(runs, depth).items():
            next_nodes[token] = self.add_node(group, depth + 1)
        node: list[Any] = [event_indexes, next_nodes]
        if not next_nodes:
            node.append(any_run.reason)
        return _index_in(self.nodes, node)

    def _add_event(self, event: Event) -> int:
        """Add an event without its empty fields. Return its index."""
        data = to_data(event)
        data["line"] = self._line_of.get(event.at or "")
        shown_data = {}
        for name, value in data.items():
            if name not in _FIELDS_LEFT_OUT and value not in _EMPTY_VALUES:
                shown_data[name] = value
        return _index_in(self.events, shown_data)


def _index_in(table: dict[str, int], entry: Any) -> int:
    """Return the index of an entry in a table of _Builder. Add the entry if it is not there."""
    return table.setdefault(json.dumps(entry), len(table))


def build_run_tree(recordings: Sequence[Recording], line_of: Mapping[str, int]) -> RunTree:
    """Return the tree of these recordings.

    `line_of` maps a position in the source, such as `lab/scenarios/torn_write.py:40`, to a line of
    the code on the page.
    """
    builder = _Builder(line_of)
    root = builder.add_node([_run_of(recording) for recording in recordings], 0)
    return RunTree(
        events=[json.loads(event) for event in builder.events],
        nodes=[json.loads(node) for node in builder.nodes],
        root=root,
    )


def _run_of(recording: Recording) -> _Run:
    """Return a recording with its events grouped by token."""
    tokens = recording.schedule.split()
    events_by_depth: list[list[Event]] = [[]]
    for event in recording.events:
        if _begins_token(event):
            events_by_depth.append([])
        events_by_depth[-1].append(event)
    # The last tokens may have no events, for example those of a worker that was killed.
    while len(events_by_depth) < len(tokens) + 1:
        events_by_depth.append([])
    return _Run(tokens=tokens, events_by_depth=events_by_depth, reason=recording.reason)


def _begins_token(event: Event) -> bool:
    """Return whether the schedule has a token for this event.

    There is no token if a blocked worker continues, or if a worker exits before its first step.
    """
    if event.is_fault:
        return True
    is_step = event.number > 0
    return is_step and event.outcome != "resumed"


def _group_by_token(runs: Sequence[_Run], depth: int) -> dict[str, list[_Run]]:
    """Return the runs by their token at this depth. Leave out runs that end before it."""
    groups: dict[str, list[_Run]] = {}
    for run in runs:
        if len(run.tokens) > depth:
            groups.setdefault(run.tokens[depth], []).append(run)
    return groups
