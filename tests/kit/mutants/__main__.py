"""`make mutate` changes the code by chance, `make mutants` takes out the mechanisms of the guarantees: do tests notice?

The rate that `make mutate` prints does not decide about its exit code: it is 1 only if the tests fail without a mutant,
if nothing could be tried, or if too many mutants are listed as equivalent. `make mutants` also exits with 1 if a list
does not fit the code, or if assertions notice fewer than 95 of 100 mechanisms.
"""

import argparse
import os
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from sampletool.kit.program import PACKAGE
from sampletool.kit.project import ROOT

from . import coverage_by_test
from .coverage_by_test import CoverageByTest
from .draw import draw, files_of
from .equivalent import MOST, read_equivalents
from .guarantees import lists, read_mechanisms
from .report import NOT_COUNTED, line, summary
from .trial import Limits, Outcome, Result, Task, Workshop, workshop

_LEAST_NOTICED = 0.95
_SECONDS_TO_CONFIRM = 300
_MOST_LEFT_OUT = 0.05


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.kit.mutants", description=__doc__)
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1, metavar="N")
    commands = parser.add_subparsers(required=True)

    mutate = commands.add_parser("mutate", help="try mutants that are drawn by chance")
    mutate.add_argument("where", nargs="?", default=PACKAGE, help="a file or folder, or a pattern of files")
    mutate.add_argument("--count", type=int, metavar="N", help="try at most N [default: all of a file, else 120]")
    mutate.add_argument("--seed", help="draw the same mutants again [default: the commit]")
    mutate.add_argument("--seconds", type=float, default=3600, metavar="S", help="stop after S seconds")
    mutate.add_argument("--seconds-per-mutant", type=float, default=60, metavar="S", help="run its tests for S seconds")
    mutate.add_argument(
        "--coverage-seconds", type=float, default=900, metavar="S", help="stop measuring after S seconds"
    )
    mutate.add_argument("--fresh", action="store_true", help="measure again which tests run which function")
    mutate.set_defaults(run=_mutate)

    guarantees = commands.add_parser("guarantees", help="take out the mechanisms of the lists")
    guarantees.add_argument("lists", nargs="*", type=Path, metavar="FILE", help="[default: all of tests/*/mutants]")
    guarantees.set_defaults(run=_try_guarantees)

    options = parser.parse_args()
    # As with Ctrl-C: the blocks that end processes and remove copies are left in order.
    signal.signal(signal.SIGTERM, lambda number, _frame: sys.exit(128 + number))
    try:
        return int(options.run(options))
    except KeyboardInterrupt:
        return 128 + signal.SIGINT


def _mutate(options: argparse.Namespace) -> int:
    files = files_of(ROOT, options.where)
    count = options.count
    if count is None and len(files) > 1:
        count = 120
    seed = options.seed or _commit()
    coverage = _coverage(options)
    drawn = draw(ROOT, files, seed, count, read_equivalents(ROOT))
    _print(f"{len(drawn.mutants)} of {drawn.available} mutants of {options.where}, drawn with the seed {seed}.")
    for mutant, reason in drawn.equivalent:
        _print(f"equivalent        {mutant.diff} ({reason})")
    tasks = [Task(mutant, coverage.tests_for(mutant, ROOT)) for mutant in drawn.mutants]
    with workshop(ROOT, options.workers) as opened:
        limits = Limits(
            seconds_per_mutant=options.seconds_per_mutant,
            deadline=time.monotonic() + options.seconds,
        )
        results, failing = _try(opened, tasks, limits)
    for text in summary(results):
        _print(text)
    return _status(results, failing, len(drawn.equivalent))


def _try_guarantees(options: argparse.Namespace) -> int:
    missing = [str(file) for file in options.lists if not file.is_file()]
    if missing:
        raise SystemExit(f"No such list: {', '.join(missing)}. The lists are tests/*/mutants/*.toml.")
    mechanisms = read_mechanisms(options.lists or lists(ROOT))
    faults = [(mechanism, mechanism.fault(ROOT)) for mechanism in mechanisms]
    tasks = []
    for mechanism, fault in faults:
        if fault:
            _print(f"DOES NOT APPLY    {mechanism.function}: {mechanism.mechanism}: {fault}")
        else:
            tasks.append(Task(mechanism.mutant(ROOT), mechanism.tests))
    with workshop(ROOT, options.workers) as opened:
        limits = Limits(seconds_per_test=60, seconds_per_mutant=300, is_isolated=False)
        results, failing = _try(opened, tasks, limits)
    for text in summary(results):
        _print(text)
    counted = [result for result in results if result.outcome not in NOT_COUNTED]
    noticed = [result for result in counted if result.outcome == Outcome.NOTICED]
    is_too_few = len(noticed) < _LEAST_NOTICED * len(counted)
    if is_too_few:
        _print(f"FAILED            assertions notice fewer than {_LEAST_NOTICED:.0%} of the mechanisms")
    has_faults = any(fault for _, fault in faults)
    return max(_status(results, failing, 0), int(is_too_few or has_faults))


def _try(opened: Workshop, tasks: Sequence[Task], limits: Limits) -> tuple[list[Result], list[str]]:
    """Try them all, and see whether the tests that noticed something pass without a mutant."""
    results = []
    for result in opened.try_all(tasks, limits):
        results.append(result)
        if result.outcome != Outcome.NOT_TRIED:
            _print(line(result))
    tests = {result.test for result in results if result.test and result.outcome != Outcome.NOT_NOTICED}
    confirming = replace(limits, seconds_per_test=60, seconds_per_mutant=_SECONDS_TO_CONFIRM)
    failing = opened.failing(tests, confirming)
    return [result for result in results if result.test not in failing], failing


def _coverage(options: argparse.Namespace) -> CoverageByTest:
    coverage = None if options.fresh else coverage_by_test.read(ROOT)
    if coverage is None:
        _print("Measuring which tests run which function, once.")
        began = time.monotonic()
        coverage = coverage_by_test.measure(ROOT, options.coverage_seconds)
        took = time.monotonic() - began
        used = resource.getrusage(resource.RUSAGE_CHILDREN)
        _print(
            f"{len(coverage.seconds)} tests and {len(coverage.functions)} functions in {took:.0f} s "
            f"({used.ru_utime + used.ru_stime:.0f} s of the processors)."
        )
    for test, message in coverage.failed.items():
        _print(f"left out          {test} fails without a mutant: {message}")
    if len(coverage.failed) > _MOST_LEFT_OUT * len(coverage.seconds):
        raise SystemExit("Too many tests fail without a mutant.")
    return coverage


def _status(results: Sequence[Result], failing: Sequence[str], equivalent: int) -> int:
    """Return 1 if the instrument is broken."""
    problems = [f"fails without a mutant: {test}" for test in failing]
    if not any(result.tests_run for result in results):
        problems.append("no test ran with a mutant")
    drawn = len(results) + equivalent
    if equivalent > max(1, MOST * drawn):
        problems.append(f"{equivalent} of {drawn} mutants are listed as equivalent; {MOST:.0%} are allowed")
    for problem in problems:
        _print(f"BROKEN            {problem}")
    return int(bool(problems))


def _commit() -> str:
    ran = subprocess.run(["git", "rev-parse", "HEAD"], cwd=ROOT, capture_output=True, text=True, check=False)
    return ran.stdout.strip() or "no commit"


def _print(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
