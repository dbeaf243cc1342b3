"""The style report counts correctly, and no code breaks its rules."""

import ast
from pathlib import Path

import pytest

from tests.project.style import (
    Counts,
    complexity,
    count,
    figures,
    find_violations,
    fragment_docstrings,
    rule_violations,
)

_SOURCE = '''"""A module."""

LIMIT = 3  # a comment


def first(number: int) -> int:
    """Return the number, if it is small."""
    return number if number < LIMIT and number > 0 else 0


def second() -> None:
    """What is left."""
    for _ in range(3):
        pass
'''


def _write(directory: Path, source: str) -> Path:
    file = directory / "example.py"
    file.write_text(source)
    return file


def test_no_code_breaks_a_rule() -> None:
    assert find_violations() == []


def test_the_figures_of_a_file_are_those_that_a_reader_would_count(tmp_path: Path) -> None:
    counts = Counts()

    count(_write(tmp_path, _SOURCE), counts)

    # LIMIT, the two `def` lines, the `return`, the `for` and the `pass`
    assert counts.code_lines == 6
    assert counts.comments == 1
    assert counts.docstrings == 2
    assert counts.statement_decisions == 1
    # the conditional expression and the `and` in it
    assert counts.expression_decisions == 2
    # LIMIT 3, first 10, return 12, second 7, for 8, pass 1
    assert counts.tokens == 41
    row = figures(counts)
    assert row.tokens_per_line == pytest.approx(41 / 6)
    assert row.decisions_in_expressions == pytest.approx(200 / 3)
    assert row.fragment_docstrings == pytest.approx(50)
    assert row.comments_per_line == pytest.approx(100 / 6)


def test_a_docstring_must_begin_with_a_verb(tmp_path: Path) -> None:
    file = _write(tmp_path, _SOURCE)

    (found,) = fragment_docstrings([file])

    assert found.line == 12


@pytest.mark.parametrize(
    ("source", "problem"),
    [
        ("x = 1  # " + 92 * "a", "101 characters"),
        ("x = 1 if a else 2 if b else 3", "contains another one"),
        ("def f(a):\n    return " + " or ".join("a" * 11), "f has complexity 11"),
    ],
)
def test_each_rule_finds_what_it_forbids(tmp_path: Path, source: str, problem: str) -> None:
    file = _write(tmp_path, source)

    (found,) = rule_violations(file)

    assert problem in found.problem
    assert found.line == 1


@pytest.mark.parametrize(
    "source",
    [
        "x = 1  # " + 91 * "a",
        "x = [1 if a else 2, 3 if b else 4]",
        "def f(a):\n    return " + " or ".join("a" * 10),
    ],
)
def test_what_is_just_inside_the_limits_is_allowed(tmp_path: Path, source: str) -> None:
    assert rule_violations(_write(tmp_path, source)) == []


def test_the_complexity_counts_each_decision_and_no_inner_function() -> None:
    source = """
def f(items):
    def inner(x):
        return x and x
    for item in items:
        if item:
            continue
    while items:
        try:
            pass
        except OSError:
            pass
    return [i for i in items if i]
"""
    function = ast.parse(source).body[0]
    assert isinstance(function, ast.FunctionDef)

    # 1, and the for, the if, the while, the except, the comprehension and its condition
    assert complexity(function) == 7
