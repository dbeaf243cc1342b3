"""What takes mechanisms out knows a test that notices from one that only fails."""

from collections import Counter
from pathlib import Path

import pytest

from sampletool.kit.program import PACKAGE
from tests.kit.trees import FEW_PLUGINS

from . import trial
from .__main__ import status
from .changes import Change
from .trial import (
    BROKEN,
    FAILS_ANYWAY,
    NOT_APPLIED,
    NOT_NOTICED,
    NOT_TRIED,
    NOTICED,
    ONCE,
    SKIPPED,
    TIME_LIMIT,
    UNNOTICED,
    Limits,
    try_changes,
)  # fmt: skip

_CODE = '''"""A mechanism."""

LIMIT = 3


def limited(number: int) -> int:
    return min(number, LIMIT)  # once
'''
_TESTS = f"""
import subprocess, time
import pytest
from {PACKAGE}.kit import small

@pytest.mark.parametrize("number", [1, 4])
def test_limit(number):
    assert small.limited(number) <= 3

def test_any():
    assert small.limited(0) == 0

def test_ends():
    subprocess.Popen(["sleep", "600"])
    while small.limited(4) > 3:
        time.sleep(0.01)

def test_the_third_time():
    with open(__file__ + ".runs", "a+") as runs:
        runs.write("x")
        assert small.limited(4) <= 3 or runs.tell() < 3

def test_skipped():
    pytest.skip("never here")

def test_red():
    assert False
"""


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    tree = tmp_path / "project"
    (tree / PACKAGE / "kit").mkdir(parents=True)
    (tree / PACKAGE / "kit" / "small.py").write_text(_CODE)
    (tree / "tests").mkdir()
    (tree / "tests" / "test_small.py").write_text(_TESTS)
    (tree / "pyproject.toml").write_text(f"[tool.pytest.ini_options]\naddopts = {['-n', 'auto', *FEW_PLUGINS]}\n")
    return tree


def change(test: str, *, line: str = "min(number, LIMIT)", instead: str = "number", **more: str) -> Change:
    return Change(
        "kit/small.py", test or "none", line, instead, (f"tests/test_small.py::{test}",) if test else (), **more
    )


def outcome(tree: Path, *changes: Change, limits: Limits = ONCE) -> list[str]:
    outcomes = {tried: outcome for tried, outcome, _ in try_changes([*changes], tree, 1, limits)}
    return [outcomes[each] for each in changes]


def test_a_test_notices_a_change_only_by_an_assertion_or_an_exception(
    tree: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(trial, "SECONDS_PER_TEST", 5)

    outcomes = outcome(
        tree,
        change("test_limit"),
        change("test_limit[4]"),
        change("test_limit", instead="int(None)"),
        change("test_any"),
        change("test_ends"),
        change("test_any", line="LIMIT = 3", instead="LIMIT = nothing"),
        change("test_any", line="LIMIT = 3", instead="LIMIT = ("),
        change("test_skipped"),
        change("test_red"),
    )

    assert outcomes == [
        *(NOTICED[0], NOTICED[0], NOTICED[1]),
        *(NOT_NOTICED, TIME_LIMIT, BROKEN, BROKEN, SKIPPED, FAILS_ANYWAY),
    ]
    assert (tree / PACKAGE / "kit" / "small.py").read_text() == _CODE


def test_a_change_that_cannot_be_tried_is_a_failure_with_its_reason(tree: Path) -> None:
    changes = [
        change("test_any", line="not there"),
        change("test_any", line="LIMIT"),
        change("test_gone"),
        change(""),
        change("test_any", unnoticed="why"),
        Change("kit/gone.py", "none", "a", "b"),
    ]

    reasons = [(outcome, reason) for _, outcome, reason in try_changes(changes, tree, 1)]

    assert reasons == [
        (NOT_APPLIED, "the text is in the file 0 times"),
        (NOT_APPLIED, "the text is in the file 2 times"),
        (NOT_APPLIED, "there is no test tests/test_small.py::test_gone"),
        (NOT_APPLIED, "it needs either tests or the reason why none can notice it"),
        (NOT_APPLIED, "it needs either tests or the reason why none can notice it"),
        (NOT_APPLIED, "there is no such file"),
    ]


def test_a_line_that_no_test_can_guard_is_listed_with_its_reason(tree: Path) -> None:
    listed = change("", unnoticed="only a power cut shows it")

    assert [*try_changes([listed], tree, 1)] == [(listed, UNNOTICED, "only a power cut shows it")]


@pytest.mark.parametrize(
    ("counts", "expected"),
    [
        ({NOTICED[0]: 19, NOTICED[1]: 1}, 0),
        ({NOTICED[0]: 18, NOTICED[1]: 2}, 1),
        ({NOTICED[0]: 18, NOT_NOTICED: 2}, 1),
        ({NOTICED[0]: 18, TIME_LIMIT: 2}, 1),
        ({NOTICED[0]: 10, SKIPPED: 10, UNNOTICED: 3}, 0),
        ({NOTICED[0]: 100, NOT_APPLIED: 1}, 1),
        ({NOTICED[0]: 100, FAILS_ANYWAY: 1}, 1),
    ],
)
def test_the_status_is_good_from_95_assertions_of_100(counts: dict[str, int], expected: int) -> None:
    assert status(Counter(counts)) == expected


def test_in_a_sample_an_exception_and_a_time_limit_count_as_well() -> None:
    counts = Counter({NOTICED[0]: 16, NOTICED[1]: 2, TIME_LIMIT: 1, NOT_NOTICED: 1, NOT_TRIED: 9})

    assert (status(counts), status(counts, is_sample=True)) == (1, 0)
    assert status(Counter({NOTICED[0]: 18, NOT_NOTICED: 2}), is_sample=True) == 1


def test_what_is_not_noticed_can_be_tried_again_until_the_time_is_over(tree: Path) -> None:
    sometimes = change("test_the_third_time")

    assert outcome(tree, sometimes, limits=Limits(attempts=2)) == [NOTICED[0]]
    assert outcome(tree, sometimes, limits=Limits(deadline=0)) == [NOT_TRIED]
