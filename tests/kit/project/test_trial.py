"""A trial distinguishes a test that notices a mutant from one that only fails."""

import os
from collections.abc import Sequence
from pathlib import Path

import pytest

from sampletool.kit.program import PACKAGE
from sampletool.kit.project import ROOT
from tests.kit.mutants.report import rate_table, summary, wilson
from tests.kit.mutants.source import Mutant
from tests.kit.mutants.trial import Copy, Limits, Outcome, Result, Task, namespace, result_of
from tests.kit.mutants.trial_plugin import TestOutcome, TestRun

_CODE = '''"""A mechanism."""

LIMIT = 3


def limited(number: int) -> int:
    return min(number, LIMIT)
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

def test_result():
    subprocess.run(["sleep", "3" if small.limited(4) > 3 else "0"], timeout=1)

def test_skipped():
    pytest.skip("never here")

def test_red():
    assert False
"""


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Copy:
    """Return a copy of a small project, for trials."""
    tree = tmp_path_factory.mktemp("project")
    (tree / PACKAGE / "kit").mkdir(parents=True)
    (tree / PACKAGE / "kit" / "small.py").write_text(_CODE)
    (tree / "tests" / "kit" / "mutants").mkdir(parents=True)
    (tree / "tests" / "test_small.py").write_text(_TESTS)
    plugin = (ROOT / "tests" / "kit" / "mutants" / "trial_plugin.py").read_text()
    (tree / "tests" / "kit" / "mutants" / "trial_plugin.py").write_text(plugin)
    (tree / "pyproject.toml").write_text("[tool.pytest.ini_options]\n")
    return Copy(tree, tmp_path_factory.mktemp("copy"))


def mutant(before: str = "min(number, LIMIT)", after: str = "number") -> Mutant:
    """Return a mutant of the small module."""
    content = _CODE.replace(before, after)
    return Mutant("kit/small.py", "limited", 7, "drop operand", before, after, content)


def ids_of(*names: str) -> list[str]:
    return [f"tests/test_small.py::{name}" for name in names]


def skip_without_namespace() -> None:
    """Skip the test if this user cannot create a pid namespace."""
    try:
        namespace()
    except SystemExit:
        pytest.skip("this user cannot create a pid namespace here")


def test_only_an_assertion_counts_as_noticed(copy: Copy) -> None:
    limits = Limits(seconds_per_test=4, seconds_per_mutant=120, is_isolated=False)
    no_number = mutant(after="int(None)")
    no_name = mutant(before="LIMIT = 3", after="from nowhere import LIMIT")
    no_syntax = mutant(before="LIMIT = 3", after="LIMIT = (")

    tasks = [
        Task(mutant(), ids_of("test_any", "test_limit")),
        Task(mutant(), ids_of("test_result", "test_limit[4]")),
        Task(mutant(), ids_of("test_any", "test_limit[1]")),
        Task(mutant(), ids_of("test_ends")),
        Task(no_number, ids_of("test_any")),
        Task(no_name, ids_of("test_any")),
        Task(no_syntax, ids_of("test_any")),
        Task(mutant(), ids_of("test_skipped")),
    ]

    results = [copy.try_mutant(task, limits) for task in tasks]

    assert [(result.outcome, result.test.rpartition("::")[2]) for result in results] == [
        (Outcome.NOTICED, "test_limit[4]"),
        (Outcome.NOTICED, "test_limit[4]"),
        (Outcome.NOT_NOTICED, "test_any"),
        (Outcome.TIMEOUT, "test_ends"),
        (Outcome.EXCEPTION, "test_any"),
        (Outcome.IMPORT_ERROR, "tests/test_small.py"),
        (Outcome.IMPORT_ERROR, "tests/test_small.py"),
        (Outcome.SKIPPED, "test_skipped"),
    ]
    assert results[2].tests_run == 2
    assert (copy.tree / PACKAGE / "kit" / "small.py").read_text() == _CODE


@pytest.mark.parametrize("is_isolated", [True, False])
def test_no_process_outlives_a_trial(is_isolated: bool, copy: Copy) -> None:
    limits = Limits(seconds_per_test=1, seconds_per_mutant=120, is_isolated=is_isolated)
    if is_isolated:
        skip_without_namespace()

    result = copy.try_mutant(Task(mutant(), ids_of("test_ends")), limits)

    # The mutant's processes work in the copy.
    left = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if os.fsencode(copy.tree.parent) in (process / "cwd").readlink().as_posix().encode():
                left.append(process)
        except OSError:
            continue
    assert result.outcome == Outcome.TIMEOUT
    assert left == []


def test_a_test_that_fails_without_a_mutant_is_named(copy: Copy) -> None:
    failing = copy.failing(
        ids_of("test_any", "test_red", "test_skipped"), Limits(is_isolated=False)
    )

    assert failing == ids_of("test_red")


def test_after_the_deadline_nothing_is_tried(copy: Copy) -> None:
    result = copy.try_mutant(Task(mutant(), ids_of("test_limit")), Limits(deadline=0))

    assert (result.outcome, result.tests_run) == (Outcome.NOT_TRIED, 0)


@pytest.mark.parametrize(
    ("outcomes", "expected"),
    [
        ([TestOutcome.TIMEOUT, TestOutcome.EXCEPTION, TestOutcome.ASSERTION], Outcome.NOTICED),
        ([TestOutcome.TIMEOUT, TestOutcome.EXCEPTION, TestOutcome.PASSED], Outcome.EXCEPTION),
        ([TestOutcome.PASSED, TestOutcome.TIMEOUT], Outcome.TIMEOUT),
        ([TestOutcome.PASSED, TestOutcome.SKIPPED], Outcome.NOT_NOTICED),
        ([], Outcome.IMPORT_ERROR),
    ],
)
def test_an_assertion_says_more_than_any_other_failure(
    outcomes: list[TestOutcome], expected: Outcome
) -> None:
    runs = [TestRun("tests/test_small.py::test_any", outcome, 0.1) for outcome in outcomes]

    assert result_of(Task(mutant(), ids_of("test_any")), runs, 1.0).outcome == expected


@pytest.mark.parametrize(
    ("noticed", "tried", "low", "high"),
    [
        (0, 10, 0.0, 0.2775),
        (10, 10, 0.7225, 1.0),
        (5, 10, 0.2366, 0.7634),
        (90, 120, 0.6656, 0.8189),
    ],
)
def test_the_interval_is_that_of_wilson(noticed: int, tried: int, low: float, high: float) -> None:
    assert wilson(noticed, tried) == pytest.approx((low, high), abs=0.0001)


def test_the_rate_counts_assertions_of_all_but_import_errors() -> None:
    outcomes: Sequence[Outcome] = [
        *[Outcome.NOTICED] * 6,
        Outcome.EXCEPTION,
        Outcome.TIMEOUT,
        Outcome.NOT_NOTICED,
        Outcome.NOT_NOTICED,
        *[Outcome.IMPORT_ERROR] * 3,
        Outcome.NOT_TRIED,
    ]

    counts, rate, _ = summary([Result(Task(mutant(), []), outcome) for outcome in outcomes])

    assert counts.startswith(
        "13 mutants tried: 6 noticed, 1 only an exception, 1 only a time-out, 3 import error"
    )
    assert rate == "Rate: an assertion noticed 6 of 10 = 60% (95% interval: 31% to 83%)."


def test_the_table_has_a_rate_for_each_place() -> None:
    results = [
        Result(Task(mutant(), [], "sampletool/kit"), Outcome.NOTICED),
        Result(Task(mutant(), [], "sampletool/lab"), Outcome.NOT_NOTICED),
        Result(Task(mutant(), [], "sampletool/lab"), Outcome.NOTICED),
        Result(Task(mutant(), [], "sampletool/lab"), Outcome.NOT_TRIED),
    ]

    _, _, kit, lab = rate_table(results)

    assert kit == "| `sampletool/kit` | 1 | 1 | 100% | 21% to 100% |"
    assert lab == "| `sampletool/lab` | 2 | 1 | 50% | 9% to 91% |"
