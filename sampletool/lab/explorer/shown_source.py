"""Select the source code that the explorer shows for a variant."""

import ast
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from textwrap import dedent

from ..scenario import PACKAGE

_Function = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True)
class ShownSource:
    """The lines that the page shows."""

    lines: list[str]
    line_of: dict[str, int]
    """Maps a position in the source, such as `lab/scenarios/torn_write.py:40`, to its index."""


def shown_source(path: Path, main_function: str, positions: Iterable[str]) -> ShownSource:
    """Return the main function, then the other functions in which a worker has stopped.

    `positions` are those at which workers stopped before a step.
    """
    text = path.read_text()
    name = path.relative_to(PACKAGE).as_posix()
    functions = [node for node in ast.walk(ast.parse(text)) if isinstance(node, _Function)]
    main_line = next(function.lineno for function in functions if function.name == main_function)
    stopped_lines = sorted(_line_number(position) for position in positions)

    lines: list[str] = []
    line_of: dict[str, int] = {}
    for line in [main_line, *stopped_lines]:
        if f"{name}:{line}" in line_of:
            # The function around this line is shown already.
            continue
        if lines:
            lines.append("")
        function = _function_around(line, functions)
        first_line = _first_line(function)
        block = _source_lines(text, first_line, function)
        for offset in range(len(block)):
            line_of[f"{name}:{first_line + offset}"] = len(lines) + offset
        lines += block
    return ShownSource(lines, line_of)


def _line_number(position: str) -> int:
    """Return the line number of a position in the source."""
    _, _, line = position.rpartition(":")
    return int(line)


def _function_around(line: int, functions: Iterable[_Function]) -> _Function:
    """Return the outermost function around this line."""
    # ast.walk() yields outer functions before inner ones, so the first match is the outermost.
    return next(each for each in functions if each.lineno <= line <= (each.end_lineno or 0))


def _first_line(function: _Function) -> int:
    """Return the number of the first line of a function, or of its first decorator."""
    decorator_lines = [decorator.lineno for decorator in function.decorator_list]
    return min([function.lineno, *decorator_lines])


def _source_lines(text: str, first_line: int, function: _Function) -> list[str]:
    """Return the lines of a function without their common indent."""
    block = text.splitlines()[first_line - 1 : function.end_lineno]
    return dedent("\n".join(block)).splitlines()
