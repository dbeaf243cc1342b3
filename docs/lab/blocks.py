"""The content of the generated blocks in the pages of the races.

A block is a picture, a listing or a number: something that a person cannot keep up to date. It is
never a sentence. The kinds of blocks are

* `picture VARIANT`: the timeline of the variant on the schedule that it shows
* `schedules VARIANT` and `broken VARIANT`: how many schedules there are, and how many break
* `table`: these numbers for all variants
* `code VARIANT`: the code of a variant
* `invariant`: the code that judges each run
* `function NAME`: a function or class in the file of the scenario
* `source MODULE:NAME`: production code, without its docstring if it is long
* `solution`: the functions in which the exercise's solution differs from its starter file
* `removals`: the changes that remove a mechanism from the production code
* `check`: the command that runs all schedules
* `events`: the last two events of the naive run, as JSON
* `rule`: the rule to remember
"""

import ast
import inspect
import json
from collections.abc import Callable, Iterator, Mapping
from importlib import import_module
from pathlib import Path
from textwrap import dedent
from typing import Protocol

from sampletool.kit.contract.response import to_data
from sampletool.kit.program import PROGRAM
from sampletool.lab import scenarios
from sampletool.lab.draw import timeline
from sampletool.lab.explore import Exploration
from sampletool.lab.levels import level_of, names_in_order
from sampletool.lab.recording import Recording
from sampletool.lab.scenario import NAIVE, Scenario, find_scenario, is_right, module_of
from sampletool.lab.starter_files import starter_text

_LONG_SOURCE_LINES = 30
"""The number of lines from which production code is shown without its docstring."""

SOLUTIONS = Path(__file__).parent / "solutions"

_COMMANDS = Path(import_module("sampletool.lab.commands.lab").__file__ or "").parent
_CHECK_COMMAND = "check" if (_COMMANDS / "check.py").exists() else "prove"


class Blocks(Protocol):
    """What fills the blocks of a page."""

    scenario: Scenario

    def content_of(self, what: str) -> str | None:
        """Return the content of a block, or None if there is no such block."""
        ...


class ScenarioBlocks:
    """The blocks of the page of one scenario."""

    def __init__(
        self,
        scenario: Scenario,
        shown_runs: Mapping[str, Recording],
        explorations: Mapping[str, Exploration],
    ) -> None:
        self.scenario = scenario
        self._shown_runs = shown_runs
        self._explorations = explorations

    def content_of(self, what: str) -> str | None:
        """Return the content of a block such as `picture naive`, or None if there is no such block.

        Numbers are content within a line. All other blocks have lines of their own.
        """
        kind, _, argument = what.partition(" ")
        if kind == "schedules":
            return str(len(self._explorations[argument].recordings))
        if kind == "broken":
            return str(len(self._explorations[argument].broken))
        make_block = self._makers().get(kind)
        if make_block is None:
            return None
        # Without the empty lines, a table or a quotation would continue in the next line.
        return f"\n\n{make_block(argument)}\n\n"

    def _makers(self) -> dict[str, Callable[[str], str]]:
        return {
            "picture": self._picture,
            "table": self._table,
            "code": self._code,
            "invariant": lambda _: _python(inspect.getsource(self.scenario.invariant)),
            "function": self._function,
            "source": _production_code,
            "solution": lambda _: _python(self._solution()),
            "removals": self._removals,
            "check": lambda _: _fenced(
                "sh", f"{PROGRAM} lab {_CHECK_COMMAND} {self.scenario.name}"
            ),
            "events": self._events,
            "rule": lambda _: f"> {self.scenario.rule}",
        }

    def _picture(self, variant: str) -> str:
        recording = self._shown_runs[variant]
        lines = [*timeline(recording), "", f"schedule {recording.schedule}"]
        return _fenced("text", "\n".join(lines))

    def _table(self, _: str) -> str:
        rows = [
            "| variant | what it does | schedules | broken | example |",
            "| --- | --- | ---: | ---: | --- |",
        ]
        for name, variant in self.scenario.variants.items():
            exploration = self._explorations[name]
            broken = exploration.broken
            if bool(broken) == is_right(name):
                scenario_name = self.scenario.name
                raise AssertionError(f"{scenario_name}, {name}: {len(broken)} schedules break")
            counts = f"{len(exploration.recordings)} | {len(broken)}"
            rows.append(f"| {name} | {variant.summary} | {counts} | {_shortest_schedule(broken)} |")
        return "\n".join(rows)

    def _code(self, variant: str) -> str:
        program = self.scenario.variants[variant].program
        if callable(program):
            return _python(inspect.getsource(program))
        return _fenced("sh", f"{PROGRAM} {' '.join(program)}")

    def _function(self, name: str) -> str:
        return _python(inspect.getsource(getattr(module_of(self.scenario.name), name)))

    def _solution(self) -> str:
        """Return the functions in which the solution differs from the starter file."""
        name = self.scenario.name
        starter = _functions(starter_text(name))
        solution = _functions(solution_path(name).read_text())
        changed = [source for function, source in solution.items() if source != starter[function]]
        return "\n\n\n".join(changed)

    def _removals(self, _: str) -> str:
        parts = []
        for removal in self.scenario.mechanisms:
            path, _, _ = removal.function.partition(":")
            lines = [f"--- sampletool/{path}"]
            lines += [f"-{line}" for line in removal.original_code.splitlines()]
            lines += [f"+{line}" for line in removal.replacement_code.splitlines()]
            title = f"{removal.summary[0].upper()}{removal.summary[1:]}."
            parts += [f"**{title}**", _fenced("diff", "\n".join(lines))]
        return "\n\n".join(parts)

    def _events(self, _: str) -> str:
        events = self._shown_runs[NAIVE].events[-2:]
        return _fenced("json", "\n".join(json.dumps(to_data(event)) for event in events))


def solution_path(name: str) -> Path:
    """Return the path of the solution of an exercise."""
    scenario_path = Path(module_of(name).__file__)
    return SOLUTIONS / scenario_path.relative_to(Path(scenarios.__file__).parent)


def index_rows(path_of: Callable[[str], str]) -> Iterator[str]:
    """Yield the lines of the table of all races, from easy to hard."""
    yield "| level | race | what happens |"
    yield "| --- | --- | --- |"
    for name in names_in_order():
        scenario = find_scenario(name)
        path = path_of(name)
        folder, _, _ = path.rpartition("/")
        # A line with this mark is removed together with the part that the race is about.
        mark = f" <!-- {folder} -->" if folder else ""
        yield f"| {level_of(name)} | [{scenario.title}]({path}.md) | {scenario.subtitle} |{mark}"


def _shortest_schedule(recordings: list[Recording]) -> str:
    if not recordings:
        return ""
    schedules = [recording.schedule for recording in recordings]
    return f"`{min(schedules, key=lambda schedule: (len(schedule), schedule))}`"


def _production_code(symbol: str) -> str:
    module_name, _, path = symbol.partition(":")
    found = import_module(module_name)
    for attribute in path.split("."):
        found = getattr(found, attribute)
    source = dedent(inspect.getsource(found))
    if len(source.splitlines()) > _LONG_SOURCE_LINES:
        source = _without_docstring(source)
    return _python(source)


def _without_docstring(source: str) -> str:
    definition = ast.parse(source).body[0]
    assert isinstance(definition, ast.FunctionDef)
    docstring = definition.body[0]
    lines = source.splitlines()
    del lines[docstring.lineno - 1 : docstring.end_lineno]
    return "\n".join(lines)


def _functions(text: str) -> dict[str, str]:
    """Return the source of each function of a file, by the name of the function."""
    functions = {}
    for node in ast.parse(text).body:
        if isinstance(node, ast.FunctionDef):
            functions[node.name] = ast.get_source_segment(text, node) or ""
    return functions


def _python(source: str) -> str:
    return _fenced("python", source.strip())


def _fenced(language: str, text: str) -> str:
    return f"```{language}\n{text}\n```"
