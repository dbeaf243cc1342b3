"""Try mutants: put each into a copy of the project, run tests until one notices, restore the file.

* A *mutant* is one file of the package with one change in it (see source.py).
* A *copy* is a copy of the project's tree, with a virtual environment of its own.
* A *trial* is one run of pytest in a copy. The plugin in trial_plugin.py reads from a file which
  tests it should run, and appends the outcome of each test to another file.
* The *workshop* has several copies, and tries one mutant in each of them at the same time.

A mutant that is drawn at random is tried in a pid namespace of its own. The code under test looks
for processes and kills them, and a mutant of it may find all processes of the machine.
A few tests fail inside a namespace: the kernel does not report there which process took a lock, if
that process has exited. So the mechanisms of the guarantees are tried without a namespace.
"""

import json
import os
import py_compile
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

from sampletool.kit.program import PACKAGE, env_variable
from sampletool.kit.testing.trees import commit, copy_tree, make_environment

from .reaper import LIMIT_REACHED
from .source import Mutant
from .trial_plugin import TestOutcome, TestRun, Trial

_REAPER = Path(__file__).with_name("reaper.py")
_SECONDS_TO_EXIT = 2
"""How much longer than its tests a run of pytest may take, before it is killed."""
_UNUSED_PLUGINS = ("no:cacheprovider", "no:valkey", "no:anyio", "no:junitxml", "no:pastebin")
"""Values of `-p` that switch off plugins that no test needs. Each would make every start slower."""


class Outcome(StrEnum):
    """The outcome of all tests of a mutant.

    Only NOTICED, a failed assertion, shows that a test checks the behaviour that is broken.
    """

    NOTICED = "noticed"
    EXCEPTION = "only an exception"
    TIMEOUT = "only a time-out"
    IMPORT_ERROR = "import error"
    NOT_NOTICED = "NOT NOTICED"
    SKIPPED = "its tests are skipped here"
    NOT_TRIED = "not tried: the time was over"


@dataclass(frozen=True)
class Limits:
    """The limits of one trial, and of all trials together."""

    seconds_per_test: float = 20
    seconds_per_mutant: float = 60
    is_isolated: bool = True
    """Whether the tests run in a pid namespace of their own."""
    deadline: float = float("inf")
    """A moment of the monotonic clock. A mutant that might take longer than this is not tried."""


@dataclass(frozen=True)
class Task:
    """A mutant and the tests that may notice it, with the most promising test first."""

    mutant: Mutant
    tests: Sequence[str]
    place: str = ""
    """The file or folder from which the mutant was drawn, as the user named it."""


@dataclass(frozen=True)
class Result:
    """The outcome of one task."""

    task: Task
    outcome: Outcome
    test: str = ""
    """The test that has this outcome, if there is one."""
    tests_run: int = 0
    seconds: float = 0


class Copy:
    """A copy of the tree with an environment of its own, in which mutants are tried one by one."""

    def __init__(self, source: Path, directory: Path) -> None:
        self.tree = copy_tree(source, directory / "tree")
        # try_mutant() resets the tree to this commit.
        commit(self.tree)
        self.python = make_environment(self.tree)
        # pytest creates the temporary directories of the tests in here.
        self._temporary_directories = directory / "t"
        self._trial_file = directory / "trial.json"
        self._outcomes_file = directory / "outcomes.jsonl"
        compile_all: list[str | Path] = [self.python, "-m", "compileall", "-q", PACKAGE, "tests"]
        subprocess.run(compile_all, cwd=self.tree, check=True)

    def try_mutant(self, task: Task, limits: Limits) -> Result:
        """Put the mutant into the copy, run its tests, and restore the copy."""
        began = time.monotonic()
        if began + limits.seconds_per_mutant > limits.deadline:
            return Result(task, Outcome.NOT_TRIED)
        with self._mutated(task.mutant):
            runs = self.run(task.tests, limits)
        return result_of(task, runs, time.monotonic() - began)

    def failing(self, tests: Sequence[str], limits: Limits) -> list[str]:
        """Return the tests that fail twice in a row without a mutant.

        A time-out does not count as a failure: usually, the machine was only too busy.
        """
        not_failed = (TestOutcome.PASSED, TestOutcome.SKIPPED, TestOutcome.TIMEOUT)
        failing = list(tests)
        # The second run has only the tests that failed in the first one.
        for _ in range(2):
            if not failing:
                break
            runs = self.run(failing, limits, stops_early=False)
            failing = [run.test for run in runs if run.outcome not in not_failed]
        return failing

    @contextmanager
    def _mutated(self, mutant: Mutant) -> Iterator[None]:
        """Replace a file with the mutant, and restore the whole copy on exit."""
        path = self.tree / PACKAGE / mutant.file
        original = path.read_text(encoding="utf-8")
        try:
            _write(path, mutant.content)
            yield
        finally:
            # git would restore the file too, but not its bytecode.
            _write(path, original)
            # The code of a mutant may have created or deleted other files in the copy.
            self._git("checkout", "-q", "--", ".")
            self._git("clean", "-fdq", "-e", ".venv", "-e", "__pycache__")

    def _git(self, *arguments: str) -> None:
        subprocess.run(["git", *arguments], cwd=self.tree, check=True)

    def run(
        self,
        tests: Sequence[str],
        limits: Limits,
        *,
        stops_early: bool = True,
    ) -> list[TestRun]:
        """Run these tests in this order. Return the outcomes that are known at the time limit."""
        if not tests:
            # Without names, pytest would run all tests.
            return []
        trial = Trial(
            outcomes=str(self._outcomes_file),
            tests=list(tests),
            seconds=limits.seconds_per_mutant,
            stops_early=stops_early,
        )
        self._trial_file.write_text(json.dumps(asdict(trial)))
        self._outcomes_file.unlink(missing_ok=True)

        # The plugin ends the run after `seconds_per_mutant`, but only between two tests.
        seconds = limits.seconds_per_mutant + _SECONDS_TO_EXIT
        arguments = self._pytest_arguments(tests, limits)
        exit_code = run_in_tree(self, arguments, seconds, is_isolated=limits.is_isolated)
        # Not shutil.rmtree(): it is recursive, and a mutant can leave a very deep tree.
        subprocess.run(["rm", "-rf", self._temporary_directories], check=False)

        runs = read_outcomes(self._outcomes_file)
        if not runs and exit_code == LIMIT_REACHED:
            # The first test did not end.
            return [TestRun(tests[0], TestOutcome.TIMEOUT, seconds)]
        return runs

    def _pytest_arguments(self, tests: Sequence[str], limits: Limits) -> list[str]:
        """Return the arguments of Python that run pytest with our plugin."""
        options = ["-o", "addopts=--import-mode=importlib", "-n0", "--tb=no", "-q"]
        for plugin in (*_UNUSED_PLUGINS, "tests.kit.mutants.trial_plugin"):
            options += ["-p", plugin]
        options += [f"--trial={self._trial_file}"]
        options += [f"--timeout={limits.seconds_per_test}", "--timeout-method=signal"]
        options += [f"--basetemp={self._temporary_directories}"]
        # pytest collects whole files, each once. The plugin then selects and sorts the tests.
        files = dict.fromkeys(file_of_test(test) for test in tests)
        return ["-m", "pytest", *options, *files]


def file_of_test(test: str) -> str:
    """Return the file of a test that is named as pytest does: `tests/test_x.py::test_name`."""
    return test.partition("::")[0]


def run_in_tree(copy: Copy, arguments: Sequence[str], seconds: float, *, is_isolated: bool) -> int:
    """Run Python in the copy for at most this long, and return its exit code.

    No process that it started is left behind: reaper.py kills them all.
    """
    isolation = namespace() if is_isolated else ()
    reaper: list[str | Path] = [copy.python, _REAPER, str(seconds)]
    process = subprocess.Popen(
        [*isolation, *reaper, copy.python, *arguments],
        cwd=copy.tree,
        env=environment(),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        return process.wait()
    except BaseException:
        # We were told to stop. The end of `unshare` kills everything in its namespace. Without a
        # namespace, the reaper has to do that itself, so it must not be killed.
        if is_isolated:
            process.kill()
        else:
            process.terminate()
        process.wait()
        raise


def result_of(task: Task, runs: Sequence[TestRun], seconds: float) -> Result:
    """Return the result of a mutant whose tests had these outcomes.

    If the outcomes differ, the first one in the list below counts.
    """
    by_priority = (
        (TestOutcome.ASSERTION, Outcome.NOTICED),
        (TestOutcome.EXCEPTION, Outcome.EXCEPTION),
        (TestOutcome.TIMEOUT, Outcome.TIMEOUT),
        (TestOutcome.IMPORT_ERROR, Outcome.IMPORT_ERROR),
        (TestOutcome.PASSED, Outcome.NOT_NOTICED),
        (TestOutcome.SKIPPED, Outcome.SKIPPED),
    )
    for test_outcome, outcome in by_priority:
        for run in runs:
            if run.outcome == test_outcome:
                return Result(task, outcome, run.test, len(runs), seconds)
    if not task.tests:
        return Result(task, Outcome.NOT_NOTICED, seconds=seconds)
    # pytest could not even start. Its plugins import the package before it collects any test.
    return Result(task, Outcome.IMPORT_ERROR, seconds=seconds)


def read_outcomes(file: Path) -> list[TestRun]:
    """Return the outcomes that the plugin wrote. There are none if the file is missing."""
    if not file.exists():
        return []
    runs = []
    for line in file.read_text().splitlines():
        # If pytest was killed while it wrote the last line, that line is incomplete.
        if not line.endswith("}"):
            continue
        fields = json.loads(line)
        fields["outcome"] = TestOutcome(fields["outcome"])
        runs.append(TestRun(**fields))
    return runs


def environment() -> dict[str, str]:
    """Return the environment of this process, without some variables that would reach the tests.

    These variables would start a coverage measurement, or turn a skipped test into a failure.
    """
    removed = (
        "PYTHONPATH",
        env_variable("TEST_REQUIRE"),
        "COVERAGE_PROCESS_START",
        "COVERAGE_PROCESS_CONFIG",
    )
    return {name: value for name, value in os.environ.items() if name not in removed}


@cache
def namespace() -> tuple[str, ...]:
    """Return the command that runs another one in a pid namespace.

    Raise SystemExit if this user cannot create a pid namespace here.
    """
    as_root = ("unshare", "--pid", "--fork", "--kill-child", "--mount-proc")
    as_user = (*as_root, "--user", "--map-root-user")
    for command in (as_root, as_user):
        if _succeeds([*command, "true"]):
            return command
    requirement = "Mutants need a pid namespace, or one of them may kill your processes."
    raise SystemExit(f"{requirement} `unshare --pid` fails here.")


def _succeeds(command: Sequence[str]) -> bool:
    """Return whether the command exists and exits with 0."""
    try:
        completed = subprocess.run(command, capture_output=True, check=False)
    except FileNotFoundError:
        return False
    return completed.returncode == 0


def _write(path: Path, text: str) -> None:
    """Write a file. If it is Python, also replace its bytecode.

    Python would take the old bytecode for current: it only compares the size of the file and the
    second of its last change, and both can be the same for a mutant and the original.
    """
    path.write_text(text, encoding="utf-8")
    if path.suffix == ".py":
        Path(cache_from_source(str(path))).unlink(missing_ok=True)
        # Some mutants do not compile, such as one with `break` outside of a loop. Without bytecode,
        # the tests get the same error when they import the file.
        with suppress(py_compile.PyCompileError):
            py_compile.compile(str(path), doraise=True)


class Workshop:
    """A pool of worker processes. Each worker has a copy of its own."""

    def __init__(self, tree: Path, workers: int, directory: Path) -> None:
        self._workers = workers
        # The pool calls `_take_copy` with the same arguments in each new worker. So the workers
        # cannot be given different copies, but each can take the next one from a shared queue.
        copies: SimpleQueue[Copy] = SimpleQueue()
        for index in range(workers):
            copies.put(Copy(tree, directory / str(index)))
        self._pool = ProcessPoolExecutor(workers, initializer=_take_copy, initargs=(copies,))

    def try_all(self, tasks: Iterable[Task], limits: Limits) -> Iterator[Result]:
        """Try all mutants, and yield each result as soon as it is known."""
        futures: list[Future[Result]] = []
        for task in tasks:
            futures.append(self._pool.submit(_try_mutant, task, limits))
        for future in as_completed(futures):
            yield future.result()

    def failing(self, tests: Iterable[str], limits: Limits) -> list[str]:
        """Return the tests that fail without a mutant."""
        all_tests = sorted(set(tests))
        futures = []
        for index in range(self._workers):
            # Every n-th test for each of n workers.
            share = all_tests[index :: self._workers]
            if share:
                futures.append(self._pool.submit(_failing, share, limits))
        failing = []
        for future in futures:
            failing += future.result()
        return sorted(failing)

    def close(self) -> None:
        """Wait for the running trials, and end the workers."""
        self._pool.shutdown(cancel_futures=True)


@contextmanager
def workshop(tree: Path, workers: int) -> Iterator[Workshop]:
    """Create the copies, and delete them on exit."""
    with tempfile.TemporaryDirectory(prefix="mutants-") as directory:
        opened = Workshop(tree, workers, Path(directory))
        try:
            yield opened
        finally:
            opened.close()


# The functions below run in the workers. They are not methods, because the pool sends the function
# to the worker by its name.

_copy: Copy
"""The copy of this worker."""


def _take_copy(copies: "SimpleQueue[Copy]") -> None:
    global _copy
    _copy = copies.get()


def _try_mutant(task: Task, limits: Limits) -> Result:
    return _copy.try_mutant(task, limits)


def _failing(tests: Sequence[str], limits: Limits) -> list[str]:
    return _copy.failing(tests, limits)
