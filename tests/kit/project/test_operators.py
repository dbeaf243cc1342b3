"""Each operator changes what its name says, and leaves alone what no test can be about."""

from pathlib import Path

import pytest

from sampletool.kit.program import PACKAGE
from tests.kit.mutants.draw import draw
from tests.kit.mutants.operators import candidates
from tests.kit.mutants.source import Mutant, Source


def source_of(tree: Path, text: str) -> Source:
    (tree / PACKAGE).mkdir(exist_ok=True)
    (tree / PACKAGE / "small.py").write_text(text)
    return Source(tree, "small.py")


def mutants_of(tree: Path, text: str) -> list[Mutant]:
    source = source_of(tree, text)
    mutants = [candidate.mutant(source) for candidate in candidates(source)]
    return [mutant for mutant in mutants if mutant is not None]


def in_function(*lines: str) -> str:
    return "def work(a, b, c):\n" + "".join(f"    {line}\n" for line in lines)


@pytest.mark.parametrize(
    ("line", "operator", "expected"),
    [
        ("return a and b", "drop operand", ["return b", "return a"]),
        ("return a | b", "drop operand", ["return a", "return b"]),
        ("return min(a, b)", "drop operand", ["return a", "return b"]),
        ("return a and b", "negate condition", ["return not a and b", "return a and (not b)"]),
        ("return a < b", "move bound", ["return a <= b"]),
        ("return a >= b", "move bound", ["return a > b"]),
        ("return 1 < a < b", "move bound", ["return 1 <= a < b", "return 1 < a <= b"]),
        ("return a[1:]", "change number", ["return a[2:]"]),
        ("return b is True", "flip flag", ["return b is False"]),
        ("return (a, b)", "drop member", ["return (b,)", "return (a,)"]),
        ("return {'a': 1, 'b': b}", "drop member", ["return {'b': b}", "return {'a': 1}"]),
        ("return a(b, limit=c)", "drop argument", ["return a(b)"]),
        ("return a if b else c", "drop condition", ["return a", "return c"]),
        ("return a if b else c", "negate condition", ["return a if not b else c"]),
        ("return [x for x in a if x]", "drop condition", ["return [x for x in a if True]"]),
        (
            "return (a\n        .b) * (  # why\n        c)",
            "drop operand",
            ["return a.b", "return c"],
        ),
    ],
)
def test_an_operator_changes_an_expression(
    line: str, operator: str, expected: list[str], tmp_path: Path
) -> None:
    mutants = mutants_of(tmp_path, in_function(line))

    assert [mutant.content for mutant in mutants if mutant.operator == operator] == [
        in_function(changed) for changed in expected
    ]


@pytest.mark.parametrize(
    ("before", "operator", "expected"),
    [
        (["a(b)", "return c"], "remove statement", [["pass", "return c"]]),
        (["a.flush()", "return c"], "drop call", [["pass", "return c"]]),
        (["os.fsync(a)", "return c"], "drop call", [["pass", "return c"]]),
        (["a.b = c", "return c"], "remove statement", [["pass", "return c"]]),
        (["a(b)", "b(a)"], "swap statements", [["b(a)", "a(b)"]]),
        (["c = a(b)", "b(c)"], "swap statements", []),
        (["c = a", "return c"], "remove statement", []),
        (["while a:", "    b()"], "drop condition", [["while False:", "    b()"]]),
        (
            ["if a:  # why", "    b()"],
            "drop condition",
            [["if False:  # why", "    b()"], ["if True:  # why", "    b()"]],
        ),
        (["if not a:", "    b()"], "negate condition", [["if a:", "    b()"]]),
        (
            ["with a:", "    b()"],
            "drop context",
            [["with __import__('contextlib').nullcontext():", "    b()"]],
        ),
    ],
)
def test_an_operator_changes_statements(
    before: list[str], operator: str, expected: list[list[str]], tmp_path: Path
) -> None:
    mutants = mutants_of(tmp_path, in_function(*before))

    assert [mutant.content for mutant in mutants if mutant.operator == operator] == [
        in_function(*changed) for changed in expected
    ]


def test_what_no_test_can_be_about_is_left_alone(tmp_path: Path) -> None:
    text = '''"""A module."""
import os
from typing import TYPE_CHECKING, Literal
__all__ = ["work", "other"]
if TYPE_CHECKING:
    from x import y
Kind = dict[str, Literal[1, 2]]

@decorated(3)
def work(a: "tuple[Literal[3], int]") -> Literal[4]:
    """Do it."""
    size: Literal[5]
    assert a > 3
    return f"{a + 1}"
'''

    assert mutants_of(tmp_path, text) == []


def test_a_mutant_that_compiles_to_the_same_code_is_not_offered(tmp_path: Path) -> None:
    mutants = mutants_of(tmp_path, in_function("if 1 < 2:", "    pass", "return"))

    assert [mutant.operator for mutant in mutants if mutant.after == "pass"] == []


def test_the_diff_is_one_line_and_names_the_function(tmp_path: Path) -> None:
    text = "class Lock:\n    def take(self):\n        return (self.a  # first\n            and self.b)\n"

    mutants = mutants_of(tmp_path, text)

    assert (
        mutants[0].diff
        == f"{PACKAGE}/small.py:3 Lock.take: [drop operand] self.a and self.b -> self.b"
    )


def test_of_a_long_diff_only_what_differs_is_shown(tmp_path: Path) -> None:
    names = ", ".join(f"name{number}" for number in range(100))

    mutants = mutants_of(tmp_path, in_function(f"return ({names})"))

    dropped = [mutant.diff for mutant in mutants if mutant.operator == "drop member"][50]
    assert "name50, name51" in dropped
    assert "name10" not in dropped


def test_the_same_seed_draws_the_same_mutants(tmp_path: Path) -> None:
    source_of(tmp_path, in_function("return a < 1 and b < 2 and c < 3"))

    drawn = [
        [mutant.diff for mutant in draw(tmp_path, ["small.py"], seed, 4, []).mutants]
        for seed in ("1", "1", "2")
    ]

    assert len(drawn[0]) == 4
    assert drawn[0] == drawn[1] != drawn[2]
