"""Collect the data of one scenario for the explorer's script: its texts and recorded runs."""

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from ..explore import Exploration
from ..levels import level_of
from ..position import source_of
from ..recording import Recording
from ..scenario import PACKAGE, Scenario, Variant
from ..scratch import scratch_directory
from .run_tree import build_run_tree
from .shown_source import shown_source

_TEXTS = (
    "name",
    "story",
    "title",
    "subtitle",
    "rule",
    "promise",
    "question",
    "shared",
    "happened",
    "no_verb",
)


def scenario_data(scenario: Scenario, explorations: Mapping[str, Exploration]) -> dict[str, Any]:
    """Return the texts of a scenario, and the data of the explored variants."""
    data = {field: getattr(scenario, field) for field in _TEXTS}
    data["level"] = level_of(scenario.name)
    variants = {}
    for variant_name, exploration in explorations.items():
        variants[variant_name] = _variant_data(
            scenario, scenario.variants[variant_name], exploration.recordings
        )
    # The explorer's script reads the variants under this name.
    data["ways"] = variants
    return data


def schedules_of(variant: Mapping[str, Any]) -> Iterator[tuple[str, str | None]]:
    """Yield each schedule of a variant with the problem of its run, or None if the run holds.

    `variant` is the data of a variant in `scenario_data`. run_tree.py describes its nodes.
    """
    return _schedules_below(variant["nodes"], variant["root"], [])


def _schedules_below(
    nodes: Sequence[Sequence[Any]], index: int, tokens: list[str]
) -> Iterator[tuple[str, str | None]]:
    """Yield each schedule that continues from the node at `index`, to which `tokens` lead."""
    _events, next_nodes, *end = nodes[index]
    if not next_nodes:
        # Only a node at the end of a schedule has a third part.
        (problem,) = end
        yield " ".join(tokens), problem
    for token, next_index in next_nodes.items():
        yield from _schedules_below(nodes, next_index, [*tokens, token])


def _variant_data(
    scenario: Scenario, variant: Variant, recordings: Sequence[Recording]
) -> dict[str, Any]:
    """Return the texts, the source and the recorded runs of one variant."""
    path = Path(source_of(scenario, variant))
    source = shown_source(path, _main_function(scenario, variant), _positions_in(recordings))
    tree = build_run_tree(recordings, source.line_of)
    with scratch_directory(variant) as (directory, _):
        initial_state = str(scenario.read_state(directory))
    # These names are the ones that the explorer's script reads.
    return {
        "says": variant.summary,
        "because": variant.explanation,
        "shows": variant.schedule,
        "begins": initial_state,
        "root": tree.root,
        "file": path.relative_to(PACKAGE).as_posix(),
        "source": source.lines,
        "events": tree.events,
        "nodes": tree.nodes,
    }


def _positions_in(recordings: Sequence[Recording]) -> set[str]:
    """Return the positions in the source at which workers have stopped."""
    positions = set()
    for recording in recordings:
        for event in recording.events:
            if event.at is not None:
                positions.add(event.at)
    return positions


def _main_function(scenario: Scenario, variant: Variant) -> str:
    """Return the name of the function that a variant runs.

    A variant that runs a command of the tool shows the production code that the scenario names.
    """
    if callable(variant.program):
        return variant.program.__name__
    # The last part of module:Class.method or module:function.
    return re.split("[.:]", scenario.production_code)[-1]
