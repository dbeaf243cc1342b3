"""Find out which tests run which functions, to choose the tests of each mutant.

The whole suite runs once in a copy of the project. There, each function is compiled so that it
calls the recorder (see recorder.py), which appends a line to a log that all processes share.

The result is kept in `build/`, which git ignores. It may be older than the code: it only decides
which tests are tried, and in which order. A function that it does not have is tried with all tests
of its folder.

The suite runs in a pid namespace, as the trials do. A test that fails there is left out.
"""

import json
import tempfile
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

from sampletool.kit.program import PACKAGE

from . import recorder
from .recorded_code import compile_recorded
from .source import Mutant
from .trial import Copy, file_of_test, read_outcomes, run_in_tree
from .trial_plugin import TestOutcome, TestRun, Trial

FILE = "build/coverage-by-test.json"
_SLOW_SECONDS = 5
"""Tests that take longer than this are tried last."""


@dataclass(frozen=True)
class CoverageByTest:
    """The tests that pass without a mutant, and the functions that each of them runs."""

    seconds: dict[str, float] = field(default_factory=dict)
    """Each test that passed, in the order of the suite, and how long it took."""
    failed: dict[str, str] = field(default_factory=dict)
    """The tests that failed without a mutant, with their messages. They are left out."""
    functions: dict[str, list[str]] = field(default_factory=dict)
    """The tests that run each function. A key is a name like `kit/safety/lock.py:Lock._take`."""

    def tests_for(self, mutant: Mutant, tree: Path) -> list[str]:
        """Return the tests to try with this mutant, with the most promising test first.

        These are the tests that run the mutant's function. If there is none, they are all tests of
        its folder. The test files of the mutant's file (see mirror_files) are always among them.
        """
        tests = self._tests_that_run(mutant)
        mirrors = mirror_files(mutant.file, tree)
        folders: tuple[str, ...] = ()
        if not tests:
            folders = tuple(folders_of_tests(mutant.file, tree))
        for test in self.seconds:
            if file_of_test(test) in mirrors or test.startswith(folders):
                tests.add(test)

        # If the suite did not get as far as a test file, none of its tests is known. Name the file
        # itself then: a trial runs all tests in it.
        known_files = {file_of_test(test) for test in self.seconds}
        tests.update(mirror for mirror in mirrors if mirror not in known_files)

        function_counts = self._function_counts()

        def priority(test: str) -> tuple[bool, bool, int, str]:
            is_slow = self.seconds.get(test, 0) > _SLOW_SECONDS
            is_elsewhere = file_of_test(test) not in mirrors
            # Tests that run few functions come first. A test that runs nearly everything checks
            # only a little of it.
            return is_slow, is_elsewhere, function_counts.get(test, 0), test

        return sorted(tests, key=priority)

    def _tests_that_run(self, mutant: Mutant) -> set[str]:
        """Return the tests that run the mutant's function, without those that failed.

        A statement of a class or module belongs to no function. Return the tests that run any
        function of the class or module then.
        """
        name = f"{mutant.file}:{mutant.function}"
        tests = set(self.functions.get(name, ()))
        if not tests:
            for function, tests_of_function in self.functions.items():
                if function.startswith(name):
                    tests.update(tests_of_function)
        return tests & self.seconds.keys()

    def _function_counts(self) -> dict[str, int]:
        """Return how many functions each test runs."""
        counts: dict[str, int] = defaultdict(int)
        for tests in self.functions.values():
            for test in tests:
                counts[test] += 1
        return counts


def mirror_files(file: str, tree: Path) -> list[str]:
    """Return the test files that are about this file, judging by their names.

    The tests of `kit/commands/config/set.py` are in `tests/kit/commands/`, in `test_config_set.py`
    or `test_config.py`. Those of `kit/safety/lock.py` are in `tests/kit/safety/test_lock.py`.
    """
    path = Path(file)
    names = (path.stem, f"{path.parent.name}_{path.stem}", path.parent.name)
    found = []
    for folder in (path.parent, path.parent.parent):
        for name in names:
            mirror = f"tests/{folder.as_posix()}/test_{name}.py"
            if (tree / mirror).is_file() and mirror not in found:
                found.append(mirror)
    return found


def folders_of_tests(file: str, tree: Path) -> list[str]:
    """Return the folder of tests that mirrors the file's folder, or the nearest one above it."""
    folder = Path(file).parent
    while not (tree / "tests" / folder).is_dir():
        folder = folder.parent
    return [f"tests/{folder.as_posix()}/"]


def suite(tree: Path) -> list[str]:
    """Return the options of pytest that leave out the tests about the repository itself.

    The other tests are those of `make test`.
    """
    about_the_repository = [*tree.glob("tests/project"), *tree.glob("tests/*/project")]
    return [f"--ignore={folder.relative_to(tree)}" for folder in about_the_repository]


def read(tree: Path) -> CoverageByTest | None:
    """Return the result of the last measurement, or None if there is none."""
    file = tree / FILE
    if not file.exists():
        return None
    return CoverageByTest(**json.loads(file.read_text()))


def measure(tree: Path, seconds: float) -> CoverageByTest:
    """Run the whole suite in a copy for at most this long. Keep and return the result."""
    with tempfile.TemporaryDirectory(prefix="mutants-") as name:
        directory = Path(name)
        coverage = _measure_in(Copy(tree, directory / "copy"), directory, seconds)
    file = tree / FILE
    file.parent.mkdir(exist_ok=True)
    file.write_text(json.dumps(asdict(coverage)))
    return coverage


def _measure_in(copy: Copy, directory: Path, seconds: float) -> CoverageByTest:
    """Run the suite in this copy. The directory is for other files."""
    log = directory / "functions.log"
    install_recorder(copy.tree, log)

    # The plugin of the trials writes the outcome of each test. No chosen tests means all tests.
    outcomes_file = directory / "outcomes.jsonl"
    trial = Trial(outcomes=str(outcomes_file), tests=[], stops_early=False)
    trial_file = directory / "trial.json"
    trial_file.write_text(json.dumps(asdict(trial)))

    options = ["-q", "-p", "no:cacheprovider", f"--basetemp={directory / 't'}"]
    options += ["-p", "tests.kit.mutants.trial_plugin", f"--trial={trial_file}"]
    arguments = ["-m", "pytest", *options, *suite(copy.tree)]
    run_in_tree(copy, arguments, seconds, is_isolated=True)

    # A process that was killed while it wrote may have left bytes that are not UTF-8.
    lines = log.read_text(errors="replace").splitlines()
    return combined(read_outcomes(outcomes_file), lines)


def install_recorder(tree: Path, log: Path) -> None:
    """Load the recorder in every Python process of this tree, and make all functions call it."""
    (site_packages,) = (tree / ".venv").glob("lib/python*/site-packages")
    recorder_code = Path(recorder.__file__).read_text()
    (site_packages / "mutation_recorder.py").write_text(recorder_code)
    # Python runs each line of a .pth file that begins with "import" when it starts.
    start = f"import mutation_recorder; mutation_recorder.start({str(log)!r})"
    (site_packages / "mutation_recorder.pth").write_text(f"{start}\n")

    package = tree / PACKAGE
    for path in package.rglob("*.py"):
        compile_recorded(path, path.relative_to(package).as_posix())


def combined(runs: Sequence[TestRun], lines: Iterable[str]) -> CoverageByTest:
    """Combine the outcomes of the tests with the log of the recorder.

    Only the process of pytest knows the names of the tests. Other processes record their home
    directory instead, which is inside the temporary directory of a test.
    """
    failed = {}
    for run in runs:
        if run.outcome not in (TestOutcome.PASSED, TestOutcome.SKIPPED):
            failed[run.test] = run.message
    seconds = {}
    for run in runs:
        # A test that passed can still fail in the teardown of a fixture. It has two entries then.
        if run.outcome == TestOutcome.PASSED and run.test not in failed:
            seconds[run.test] = run.seconds

    functions = _tests_by_function(lines, list(seconds))
    return CoverageByTest(seconds=seconds, failed=failed, functions=functions)


def _tests_by_function(lines: Iterable[str], tests: Sequence[str]) -> dict[str, list[str]]:
    """Return which of these tests run each function, in the order of `tests`."""
    test_of_directory, recorded_in = _read_log(lines)
    # Find the test of each home only once. There is a line for each function that ran with it.
    test_of = {test: test for test in tests}
    for owner in set().union(*recorded_in.values()):
        if owner not in test_of:
            test_of[owner] = _test_of(owner, test_of_directory)

    order = {test: index for index, test in enumerate(tests)}
    functions = {}
    for function, owners in sorted(recorded_in.items()):
        running = {test_of[owner] for owner in owners}
        functions[function] = sorted(running & order.keys(), key=lambda test: order[test])
    return functions


def _read_log(lines: Iterable[str]) -> tuple[dict[str, str], dict[str, set[str]]]:
    """Return what the recorder wrote.

    The first dictionary has the test of each temporary directory. The second one has the owners of
    each function: the tests, or the homes of the processes, in which it ran.
    """
    test_of_directory: dict[str, str] = {}
    recorded_in: dict[str, set[str]] = defaultdict(set)
    for line in lines:
        kind, *fields = line.split("\t")
        # A line with fewer fields is incomplete: its process was killed while it wrote.
        if len(fields) != 2:
            continue
        if kind == recorder.OWNER:
            directory, test = fields
            test_of_directory[directory] = test
        elif kind == recorder.RAN:
            owner, function = fields
            recorded_in[function].add(owner)
    return test_of_directory, recorded_in


def _test_of(home: str, test_of_directory: dict[str, str]) -> str:
    """Return the test whose temporary directory contains this home, or "" if there is none."""
    for directory in [Path(home), *Path(home).parents]:
        if str(directory) in test_of_directory:
            return test_of_directory[str(directory)]
    return ""
