"""Try a mutant: put it into a copy of the tree, run tests until one notices, restore the file.

A mutant that is drawn by chance is tried in a pid namespace of its own. The code under test looks for processes and
kills them, and a mutant of it may find all processes of the machine. A few tests fail inside a namespace: the kernel
does not tell there which process took a lock once that has exited. The mechanisms of the lists are tried without one.
"""

import json
import os
import py_compile
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from enum import StrEnum
from functools import cache
from importlib.util import cache_from_source
from multiprocessing import SimpleQueue
from pathlib import Path

from sampletool.kit.program import PACKAGE, variable
from tests.kit.trees import commit, copy_tree, make_environment

from .reaper import LIMIT_REACHED
from .source import Mutant
from .trial_plugin import TestOutcome, TestRun, Trial

_REAPER = Path(__file__).with_name("reaper.py")


class Outcome(StrEnum):
    """What the tests say about a mutant. Only the first one means that a test understands what is broken."""

    NOTICED = "noticed"
    EXCEPTION = "only an exception"
    TIMEOUT = "only a time-out"
    IMPORT_ERROR = "import error"
    NOT_NOTICED = "NOT NOTICED"
    SKIPPED = "its tests are skipped here"
    NOT_TRIED = "not tried: the time was over"


@dataclass(frozen=True)
class Limits:
    seconds_per_test: float = 20
    seconds_per_mutant: float = 60
    is_isolated: bool = True
    """Whether the tests run in a pid namespace of their own."""
    deadline: float = float("inf")
    """A mutant that could not end before this moment of the monotonic clock is not tried."""


@dataclass(frozen=True)
class Task:
    """A mutant, and the tests that may notice it, the most promising first."""

    mutant: Mutant
    tests: Sequence[str]


@dataclass(frozen=True)
class Result:
    task: Task
    outcome: Outcome
    test: str = ""
    """The test that decided."""
    tests_run: int = 0
    seconds: float = 0


class Copy:
    """A copy of the tree with an environment of its own, in which mutants are tried one at a time."""

    def __init__(self, source: Path, directory: Path) -> None:
        self.tree = copy_tree(source, directory / "tree")
        commit(self.tree)
        self.python = make_environment(self.tree)
        self._scratch = directory / "t"
        self._trial = directory / "trial.json"
        self._outcomes = directory / "outcomes.jsonl"
        subprocess.run([self.python, "-m", "compileall", "-q", PACKAGE, "tests"], cwd=self.tree, check=True)

    def try_mutant(self, task: Task, limits: Limits) -> Result:
        """Run the tests of the mutant with the mutant in its place."""
        if time.monotonic() + limits.seconds_per_mutant > limits.deadline:
            return Result(task, Outcome.NOT_TRIED)
        began = time.monotonic()
        with self._mutated(task.mutant):
            runs = self.run(task.tests, limits)
        return result_of(task, runs, time.monotonic() - began)

    def failing(self, tests: Sequence[str], limits: Limits) -> list[str]:
        """Return those of the tests that fail twice without a mutant. A time-out says more about the machine."""
        failing = list(tests)
        fine = (TestOutcome.PASSED, TestOutcome.SKIPPED, TestOutcome.TIMEOUT)
        for _ in range(2):
            runs = self.run(failing, limits, stops_early=False) if failing else []
            failing = [run.test for run in runs if run.outcome not in fine]
        return failing

    @contextmanager
    def _mutated(self, mutant: Mutant) -> Iterator[None]:
        path = self.tree / PACKAGE / mutant.file
        before = path.read_text(encoding="utf-8")
        try:
            _write(path, mutant.content)
            yield
        finally:
            _write(path, before)
            # A mutant may have written into the copy, or deleted something.
            for command in (["checkout", "-q", "--", "."], ["clean", "-fdq", "-e", ".venv", "-e", "__pycache__"]):
                subprocess.run(["git", *command], cwd=self.tree, check=True)

    def run(self, tests: Sequence[str], limits: Limits, *, stops_early: bool = True) -> list[TestRun]:
        """Run these tests, in this order, and return what is known at the limit."""
        trial = Trial(str(self._outcomes), list(tests), limits.seconds_per_mutant, stops_early)
        self._trial.write_text(json.dumps(asdict(trial)))
        self._outcomes.unlink(missing_ok=True)
        files = dict.fromkeys(test.partition("::")[0] for test in tests)
        # Plugins that no test needs: each takes its time at the start of every run.
        options = ["-o", "addopts=--import-mode=importlib", "-n0", "-p", "no:cacheprovider"]
        options += ["-p", "no:valkey", "-p", "no:anyio", "-p", "no:junitxml", "-p", "no:pastebin"]
        options += ["-p", "tests.kit.mutants.trial_plugin", f"--trial={self._trial}", "--tb=no", "-q"]
        options += [f"--timeout={limits.seconds_per_test}", "--timeout-method=signal", f"--basetemp={self._scratch}"]
        # The plugin ends the run in time, unless a test does not end.
        seconds = limits.seconds_per_mutant + 2
        exit_code = run_in_tree(self, ["-m", "pytest", *options, *files], seconds, is_isolated=limits.is_isolated)
        shutil.rmtree(self._scratch, ignore_errors=True)
        runs = read_outcomes(self._outcomes)
        if not runs and exit_code == LIMIT_REACHED:
            return [TestRun(tests[0], TestOutcome.TIMEOUT, seconds)]
        return runs


def run_in_tree(copy: Copy, arguments: Sequence[str], seconds: float, *, is_isolated: bool) -> int:
    """Run Python in the copy for at most this long, leave no process of it behind, and return the exit code."""
    isolation = namespace() if is_isolated else ()
    ran = subprocess.run(
        [*isolation, copy.python, _REAPER, str(seconds), copy.python, *arguments],
        cwd=copy.tree,
        env=environment(),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
        check=False,
    )
    return ran.returncode


def result_of(task: Task, runs: Sequence[TestRun], seconds: float) -> Result:
    """Return what the runs of its tests say about a mutant: an assertion counts more than anything else."""
    by_weight = (
        (TestOutcome.ASSERTION, Outcome.NOTICED),
        (TestOutcome.EXCEPTION, Outcome.EXCEPTION),
        (TestOutcome.TIMEOUT, Outcome.TIMEOUT),
        (TestOutcome.IMPORT_ERROR, Outcome.IMPORT_ERROR),
        (TestOutcome.PASSED, Outcome.NOT_NOTICED),
        (TestOutcome.SKIPPED, Outcome.SKIPPED),
    )
    for test_outcome, outcome in by_weight:
        for run in runs:
            if run.outcome == test_outcome:
                return Result(task, outcome, run.test, len(runs), seconds)
    if not task.tests:
        return Result(task, Outcome.NOT_NOTICED, "", 0, seconds)
    return Result(task, Outcome.IMPORT_ERROR, "", 0, seconds)  # pytest could not even begin


def read_outcomes(file: Path) -> list[TestRun]:
    if not file.exists():
        return []
    entries = [json.loads(line) for line in file.read_text().splitlines() if line.endswith("}")]
    return [TestRun(**{**entry, "outcome": TestOutcome(entry["outcome"])}) for entry in entries]


def environment() -> dict[str, str]:
    """Return this process's environment without what would measure the tests, or turn a skip into a failure."""
    removed = ("PYTHONPATH", variable("TEST_REQUIRE"), "COVERAGE_PROCESS_START", "COVERAGE_PROCESS_CONFIG")
    return {name: value for name, value in os.environ.items() if name not in removed}


@cache
def namespace() -> tuple[str, ...]:
    """Return the command that runs another one in a pid namespace. Raise SystemExit where there is none."""
    usual = ("unshare", "--pid", "--fork", "--kill-child", "--mount-proc")
    as_user = (*usual, "--user", "--map-root-user")
    for command in (usual, as_user):
        with suppress(FileNotFoundError):
            if subprocess.run([*command, "true"], capture_output=True, check=False).returncode == 0:
                return command
    raise SystemExit(
        "Mutants need a pid namespace, or one of them may kill your processes. `unshare --pid` fails here."
    )


def _write(path: Path, text: str) -> None:
    """Write the file and its bytecode. Python compares only the size and the second of the change."""
    path.write_text(text, encoding="utf-8")
    if path.suffix == ".py":
        Path(cache_from_source(str(path))).unlink(missing_ok=True)
        with suppress(py_compile.PyCompileError):
            py_compile.compile(str(path), doraise=True)


class Workshop:
    """One process with a copy of its own for each processor."""

    def __init__(self, tree: Path, workers: int, directory: Path) -> None:
        self._workers = workers
        copies: SimpleQueue[Copy] = SimpleQueue()
        for number in range(workers):
            copies.put(Copy(tree, directory / str(number)))
        self._pool = ProcessPoolExecutor(workers, initializer=_take_copy, initargs=(copies,))

    def try_all(self, tasks: Iterable[Task], limits: Limits) -> Iterator[Result]:
        """Yield each result as soon as it is known."""
        futures: list[Future[Result]] = [self._pool.submit(_try_mutant, task, limits) for task in tasks]
        for future in as_completed(futures):
            yield future.result()

    def failing(self, tests: Iterable[str], limits: Limits) -> list[str]:
        """Return the tests that fail without a mutant."""
        every = sorted(set(tests))
        shares = [every[number :: self._workers] for number in range(self._workers)]
        futures = [self._pool.submit(_failing, share, limits) for share in shares if share]
        return sorted(test for future in futures for test in future.result())

    def close(self) -> None:
        self._pool.shutdown()


@contextmanager
def workshop(tree: Path, workers: int) -> Iterator[Workshop]:
    """Make the copies, and remove them in the end."""
    with tempfile.TemporaryDirectory(prefix="mutants-") as directory:
        opened = Workshop(tree, workers, Path(directory))
        try:
            yield opened
        finally:
            opened.close()


_copy: Copy


def _take_copy(copies: "SimpleQueue[Copy]") -> None:
    global _copy
    _copy = copies.get()


def _try_mutant(task: Task, limits: Limits) -> Result:
    return _copy.try_mutant(task, limits)


def _failing(tests: Sequence[str], limits: Limits) -> list[str]:
    return _copy.failing(tests, limits)
