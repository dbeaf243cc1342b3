"""The explorer as one HTML file: it carries its style, its script and the recordings, and requests nothing.

The page has no semantics of its own. What it walks is the prefix tree of the recordings of every schedule, in which
equal branches are kept once.
"""

import ast
import json
import re
from base64 import b64encode
from collections.abc import Iterable, Mapping, Sequence
from hashlib import sha256
from itertools import accumulate, groupby
from pathlib import Path
from textwrap import dedent
from typing import Any

from ...kit.contract.response import to_data
from ...kit.program import PROGRAM
from ..explore import Exploration
from ..levels import level_of
from ..recording import Event, Recording
from ..scenario import PACKAGE, STRIKES, Scenario, Way
from ..scratch import scratch
from ..standing import source_of

_LEFT_OUT = ("seq", "number", "at")
_HERE = Path(__file__).parent


def described(scenario: Scenario, explored: Mapping[str, Exploration]) -> dict[str, Any]:
    """One scenario and all of its recordings, as the page takes it."""
    fields = ("name", "story", "title", "subtitle", "rule", "promise", "question", "shared", "happened", "no_verb")
    ways = {variant: _way(scenario, scenario.ways[variant], of.recordings) for variant, of in explored.items()}
    texts = {each: getattr(scenario, each) for each in fields}
    return {**texts, "level": level_of(scenario.name), "ways": ways}


def html(scenarios: Sequence[Mapping[str, Any]]) -> str:
    """The page of these scenarios. Nothing that is in them can end the element that they are in."""
    style, script = ((_HERE / f"explorer.{kind}").read_text() for kind in ("css", "js"))
    data = json.dumps({"program": PROGRAM, "strikes": STRIKES, "scenarios": scenarios}, separators=(",", ":"))
    parts = {
        "style": style,
        "script": script,
        "style_hash": _hash(style),
        "script_hash": _hash(script),
        "data": re.sub("[<>&]", lambda found: f"\\u{ord(found[0]):04x}", data),
    }
    return re.sub(r"\{(\w+)\}", lambda found: parts[found[1]], (_HERE / "page.html").read_text())


def _hash(text: str) -> str:
    """As a Content-Security-Policy names the script or style that may be used."""
    return f"sha256-{b64encode(sha256(text.encode()).digest()).decode()}"


def _way(scenario: Scenario, way: Way, recordings: Sequence[Recording]) -> dict[str, Any]:
    file = Path(source_of(scenario, way))
    seen = {event.at for run in recordings for event in run.events if event.at}
    main = way.program.__name__ if callable(way.program) else re.split("[.:]", scenario.symbol)[-1]
    source, line_of = _source(file, main, seen)
    tokens = {run.schedule: run.schedule.split() for run in recordings}
    events: dict[str, int] = {}
    nodes: dict[str, int] = {}

    def event_number(event: Event) -> int:
        data = {**to_data(event), "line": line_of.get(event.at or "")}
        kept = {name: value for name, value in data.items() if name not in _LEFT_OUT and value not in ([], False, None)}
        return events.setdefault(json.dumps(kept), len(events))

    def node_number(runs: list[Recording], depth: int) -> int:
        """Of runs that begin with the same tokens: what the last one did, and where others lead."""
        turn_of = accumulate(map(_is_of_a_token, runs[0].events))
        did = [event_number(event) for event, turn in zip(runs[0].events, turn_of, strict=True) if turn == depth]
        turns = groupby((run for run in runs if tokens[run.schedule][depth:]), lambda run: tokens[run.schedule][depth])
        then = {token: node_number(list(group), depth + 1) for token, group in turns}
        return nodes.setdefault(json.dumps([did, then] if then else [did, then, runs[0].reason]), len(nodes))

    root = node_number(list(recordings), 0)
    with scratch(way) as (directory, _):
        begins = str(scenario.look(directory))
    words = {"says": way.says, "because": way.because, "shows": way.shows, "begins": begins, "root": root}
    tables = {"events": [*map(json.loads, events)], "nodes": [*map(json.loads, nodes)]}
    return {**words, "file": file.relative_to(PACKAGE).as_posix(), "source": source, **tables}


def _is_of_a_token(event: Event) -> bool:
    """Not what a worker does by itself: it goes on when a lock comes free, or ends before its first step."""
    return event.outcome == "struck" or (event.outcome != "resumed" and event.number > 0)


def _source(file: Path, main: str, seen: Iterable[str]) -> tuple[list[str], dict[str, int]]:
    """The function of this name and those in which something was seen; and where each line of the file is in that."""
    text, name = file.read_text(), file.relative_to(PACKAGE)
    functions = [node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
    shown: list[str] = []
    line_of: dict[str, int] = {}
    lines = sorted(int(at.rpartition(":")[2]) for at in seen)
    for line in [next(each.lineno for each in functions if each.name == main), *lines]:
        if f"{name}:{line}" not in line_of:
            outer = next(each for each in functions if each.lineno <= line <= (each.end_lineno or 0))
            first = min([outer.lineno, *(each.lineno for each in outer.decorator_list)])
            block = dedent("\n".join(text.splitlines()[first - 1 : outer.end_lineno])).splitlines()
            shown += [""] * bool(shown)
            line_of |= {f"{name}:{first + number}": len(shown) + number for number in range(len(block))}
            shown += block
    return shown, line_of
