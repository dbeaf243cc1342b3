"""Check that the tests notice broken code: `make mutate` and `make mutants`.

    python -m tests.kit.mutants mutate      change the code at random
    python -m tests.kit.mutants guarantees  remove the mechanisms behind docs/*/guarantees.md

`mutate` prints the rate of mutants that an assertion noticed. If you name several files or folders,
it draws the same number of mutants from each, and prints a table with their rates.

The rate does not decide about the exit code. The exit code is 1 if the tests fail without a mutant,
if nothing could be tried, or if too many mutants are listed as equivalent. `guarantees` also exits
with 1 if a list does not fit the code, or if assertions notice less than 95% of the mechanisms.
"""

import argparse
import os
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import FrameType

from sampletool.kit.program import PACKAGE
from sampletool.kit.project import ROOT

from . import coverage_by_test
from .coverage_by_test import CoverageByTest
from .draw import Drawn, draw, files_of
from .equivalent import MAX_SHARE, read_equivalents
from .guarantees import Mechanism, lists, read_mechanisms
from .report import line, rate_of, rate_table, summary
from .trial import Limits, Outcome, Result, Task, Workshop, workshop

_DEFAULT_COUNT = 120
_LEAST_NOTICED = 0.95
"""The share of the mechanisms that assertions have to notice."""
_SECONDS_PER_TEST = 60
"""The limit of one test that is expected to pass, or that is about a mechanism."""
_SECONDS_TO_CONFIRM = 300
_MOST_LEFT_OUT = 0.05
"""The share of the tests that may fail while the coverage is measured."""


@dataclass(frozen=True)
class _Tried:
    """What came out of the mutants that were tried."""

    results: Sequence[Result]
    """The results, without those that come from a failing test."""
    failing: Sequence[str]
    """The tests that fail even without a mutant."""


def main() -> int:
    """Run the command that the arguments name, and return its exit code."""
    options = _parser().parse_args()
    # SIGTERM raises an exception, as Ctrl-C does. So the blocks that end processes and remove
    # copies run to their end.
    signal.signal(signal.SIGTERM, _exit)
    try:
        return int(options.run(options))
    except KeyboardInterrupt:
        return 128 + signal.SIGINT


def _exit(number: int, _frame: FrameType | None) -> None:
    sys.exit(128 + number)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m tests.kit.mutants",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1, metavar="N")
    commands = parser.add_subparsers(required=True)
    _add_mutate(commands.add_parser("mutate", help="try mutants that are drawn at random"))
    _add_guarantees(commands.add_parser("guarantees", help="remove the mechanisms of the lists"))
    return parser


def _add_mutate(parser: argparse.ArgumentParser) -> None:
    parser.set_defaults(run=_mutate)
    parser.add_argument(
        "places",
        nargs="*",
        default=[PACKAGE],
        metavar="PLACE",
        help="a file or folder, or a pattern of files [default: the package]",
    )
    parser.add_argument(
        "--count",
        type=int,
        metavar="N",
        help=f"try at most N mutants of each place [default: {_DEFAULT_COUNT}; all of a file]",
    )
    parser.add_argument("--seed", help="draw the same mutants again [default: the commit]")
    parser.add_argument(
        "--seconds",
        type=float,
        default=3600,
        metavar="S",
        help="stop after S seconds [default: %(default)s]",
    )
    parser.add_argument(
        "--seconds-per-mutant",
        type=float,
        default=60,
        metavar="S",
        help="run the tests of a mutant for S seconds [default: %(default)s]",
    )
    parser.add_argument(
        "--coverage-seconds",
        type=float,
        default=900,
        metavar="S",
        help="stop measuring the coverage after S seconds [default: %(default)s]",
    )
    parser.add_argument(
        "--fresh",
        action="store_true",
        help="measure again which tests run which function",
    )


def _add_guarantees(parser: argparse.ArgumentParser) -> None:
    parser.set_defaults(run=_try_guarantees)
    parser.add_argument(
        "lists",
        nargs="*",
        type=Path,
        metavar="FILE",
        help="a list of mechanisms [default: all in tests/*/mutants]",
    )


def _mutate(options: argparse.Namespace) -> int:
    """Try mutants that are drawn at random, and print the rates."""
    seed = options.seed or _commit()
    coverage = _coverage(options)
    drawn_by_place = {}
    for place in options.places:
        drawn_by_place[place] = _draw(place, seed, options.count)

    tasks = []
    equivalent = 0
    for place, drawn in drawn_by_place.items():
        equivalent += len(drawn.equivalent)
        for mutant in drawn.mutants:
            tests = coverage.tests_for(mutant, ROOT)
            tasks.append(Task(mutant, tests, place))

    with workshop(ROOT, options.workers) as opened:
        limits = Limits(
            seconds_per_mutant=options.seconds_per_mutant,
            deadline=time.monotonic() + options.seconds,
        )
        tried = _try(opened, tasks, limits)

    _print_all(summary(tried.results))
    if len(drawn_by_place) > 1:
        _print_all(rate_table(tried.results))
    return _exit_code(tried, equivalent)


def _draw(place: str, seed: str, count: int | None) -> Drawn:
    """Draw the mutants of one place, and print how many there are."""
    files = files_of(ROOT, place)
    if count is None and len(files) > 1:
        count = _DEFAULT_COUNT
    drawn = draw(ROOT, files, seed, count, read_equivalents(ROOT))
    _print(
        f"{len(drawn.mutants)} of {drawn.available} mutants of {place}, drawn with the seed {seed}."
    )
    for mutant, reason in drawn.equivalent:
        _print(f"equivalent        {mutant.diff} ({reason})")
    return drawn


def _try_guarantees(options: argparse.Namespace) -> int:
    """Remove each mechanism of the lists, and print which ones the tests notice."""
    missing = [str(file) for file in options.lists if not file.is_file()]
    if missing:
        listed = ", ".join(missing)
        raise SystemExit(f"No such list: {listed}. The lists are tests/*/mutants/*.toml.")

    mechanisms = read_mechanisms(options.lists or lists(ROOT))
    tasks = _tasks_of(mechanisms)
    with workshop(ROOT, options.workers) as opened:
        limits = Limits(
            seconds_per_test=_SECONDS_PER_TEST,
            seconds_per_mutant=_SECONDS_TO_CONFIRM,
            is_isolated=False,
        )
        tried = _try(opened, tasks, limits)
    _print_all(summary(tried.results))

    exit_code = _exit_code(tried, equivalent=0)
    if len(tasks) < len(mechanisms):
        exit_code = 1
    rate = rate_of(tried.results)
    if rate.noticed < _LEAST_NOTICED * rate.counted:
        least = f"{_LEAST_NOTICED:.0%}"
        _print(f"FAILED            assertions notice less than {least} of the mechanisms")
        exit_code = 1
    return exit_code


def _tasks_of(mechanisms: Sequence[Mechanism]) -> list[Task]:
    """Return the tasks that remove these mechanisms. Print the mechanisms that are not in the code.

    A mechanism that is not in the code has no task.
    """
    tasks = []
    for mechanism in mechanisms:
        fault = mechanism.fault(ROOT)
        if fault:
            _print(f"DOES NOT APPLY    {mechanism.function}: {mechanism.mechanism}: {fault}")
        else:
            tasks.append(Task(mechanism.mutant(ROOT), mechanism.tests))
    return tasks


def _try(opened: Workshop, tasks: Sequence[Task], limits: Limits) -> _Tried:
    """Try all tasks. Then run the tests that failed with a mutant once more, without a mutant."""
    results = []
    for result in opened.try_all(tasks, limits):
        results.append(result)
        if result.outcome != Outcome.NOT_TRIED:
            _print(line(result))

    tests = set()
    for result in results:
        if result.test and result.outcome != Outcome.NOT_NOTICED:
            tests.add(result.test)
    confirming = replace(
        limits,
        seconds_per_test=_SECONDS_PER_TEST,
        seconds_per_mutant=_SECONDS_TO_CONFIRM,
    )
    failing = opened.failing(tests, confirming)
    reliable = [result for result in results if result.test not in failing]
    return _Tried(results=reliable, failing=failing)


def _coverage(options: argparse.Namespace) -> CoverageByTest:
    """Return which tests run which functions: the last measurement, or a new one.

    Raise SystemExit if too many tests failed in it.
    """
    coverage = None
    if not options.fresh:
        coverage = coverage_by_test.read(ROOT)
    if coverage is None:
        coverage = _measure_coverage(options.coverage_seconds)
    for test, message in coverage.failed.items():
        _print(f"left out          {test} fails without a mutant: {message}")
    if len(coverage.failed) > _MOST_LEFT_OUT * len(coverage.seconds):
        raise SystemExit("Too many tests fail without a mutant.")
    return coverage


def _measure_coverage(seconds: float) -> CoverageByTest:
    """Measure which tests run which functions, and print how long it took."""
    _print("Measuring which tests run which function, once.")
    began = time.monotonic()
    coverage = coverage_by_test.measure(ROOT, seconds)
    took = time.monotonic() - began
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    processor_seconds = used.ru_utime + used.ru_stime
    _print(
        f"{len(coverage.seconds)} tests and {len(coverage.functions)} functions in {took:.0f} s "
        f"({processor_seconds:.0f} s of processor time)."
    )
    return coverage


def _exit_code(tried: _Tried, equivalent: int) -> int:
    """Return 1 if the rate means nothing, and print why. Otherwise, return 0.

    `equivalent` is how many mutants were drawn but not tried.
    """
    problems = [f"fails without a mutant: {test}" for test in tried.failing]
    if not any(result.tests_run for result in tried.results):
        problems.append("no test ran with a mutant")
    drawn = len(tried.results) + equivalent
    if equivalent > max(1, MAX_SHARE * drawn):
        allowed = f"{MAX_SHARE:.0%} are allowed"
        problems.append(f"{equivalent} of {drawn} mutants are listed as equivalent; {allowed}")
    for problem in problems:
        _print(f"BROKEN            {problem}")
    if problems:
        return 1
    return 0


def _commit() -> str:
    """Return the commit that is checked out."""
    completed = subprocess.run(
        ["git", "rev-parse", "HEAD"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    return completed.stdout.strip() or "no commit"


def _print_all(texts: Sequence[str]) -> None:
    for text in texts:
        _print(text)


def _print(text: str) -> None:
    # A run takes minutes, and its output often goes to a file: show each line at once.
    print(text, flush=True)


if __name__ == "__main__":
    sys.exit(main())
