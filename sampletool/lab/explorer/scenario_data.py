"""The data of one scenario for the explorer's script: its texts, and the runs of each variant."""

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from ..explore import Exploration
from ..levels import level_of
from ..recording import Recording
from ..scenario import PACKAGE, Scenario, Variant
from ..scratch import scratch
from ..standing import source_of
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
    """Return the texts of a scenario and the recordings of its variants."""
    data = {field: getattr(scenario, field) for field in _TEXTS}
    data["level"] = level_of(scenario.name)
    ways = {}
    for variant_name, exploration in explorations.items():
        ways[variant_name] = _variant_data(
            scenario, scenario.variants[variant_name], exploration.recordings
        )
    data["ways"] = ways
    return data


def schedules_of(variant: Mapping[str, Any]) -> Iterator[tuple[str, str | None]]:
    """Yield each schedule in the data of a variant, and why its run is broken, or None."""

    def walk(index: int, tokens: list[str]) -> Iterator[tuple[str, str | None]]:
        _, next_nodes, *reason = variant["nodes"][index]
        if reason:
            yield " ".join(tokens), reason[0]
        for token, next_index in next_nodes.items():
            yield from walk(next_index, [*tokens, token])

    return walk(variant["root"], [])


def _variant_data(
    scenario: Scenario, variant: Variant, recordings: Sequence[Recording]
) -> dict[str, Any]:
    path = Path(source_of(scenario, variant))
    places = {event.at for run in recordings for event in run.events if event.at}
    source = shown_source(path, _main_function(scenario, variant), places)
    tree = build_run_tree(recordings, source.line_of)
    with scratch(variant) as (directory, _):
        state_before = str(scenario.look(directory))
    return {
        "says": variant.summary,
        "because": variant.explanation,
        "shows": variant.schedule,
        "begins": state_before,
        "root": tree.root,
        "file": path.relative_to(PACKAGE).as_posix(),
        "source": source.lines,
        "events": tree.events,
        "nodes": tree.nodes,
    }


def _main_function(scenario: Scenario, variant: Variant) -> str:
    """Return the name of the function that a variant runs.

    A variant that runs a command of the tool shows the production code that the scenario names.
    """
    if callable(variant.program):
        return variant.program.__name__
    return re.split("[.:]", scenario.symbol)[-1]
