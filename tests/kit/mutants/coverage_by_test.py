"""Which tests run a function: one run of the whole suite in a copy, with the recorder in each process.

The result is kept in `build/`, which git ignores. It may be older than the code: it only decides which tests are tried,
and in which order. A function that it does not know is tried with all tests of its folder.

The suite runs in a pid namespace, as the trials do: a test that fails there is left out.
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
from .trial import Copy, read_outcomes, run_in_tree
from .trial_plugin import TestOutcome, TestRun, Trial

FILE = "build/coverage-by-test.json"
_SLOW_SECONDS = 5


@dataclass(frozen=True)
class CoverageByTest:
    seconds: dict[str, float] = field(default_factory=dict)
    """Each test that passed, in the order of the suite, and how long it took."""
    failed: dict[str, str] = field(default_factory=dict)
    """The tests that failed without a mutant, with their messages. They are left out."""
    functions: dict[str, list[str]] = field(default_factory=dict)
    """`kit/safety/lock.py:Lock._take` and so on, with the tests that run it."""

    def tests_for(self, mutant: Mutant, tree: Path) -> list[str]:
        """Return the tests that run the mutant's function, or all tests of its folder if no test is known to run it.

        The tests of the file come first, then those that run few functions: a test that runs nearly everything
        notices least. Slow tests come last.
        """
        tests = self._that_run(mutant)
        mirrors = mirror_files(mutant.file, tree)
        folders = tuple(folders_of_tests(mutant.file, tree)) if not tests else ()
        for test in self.seconds:
            if test.partition("::")[0] in mirrors or test.startswith(folders):
                tests.add(test)
        # Where the time was over before a file of tests could run, all of it is tried.
        known = {test.partition("::")[0] for test in self.seconds}
        tests.update(mirror for mirror in mirrors if mirror not in known)
        sizes = self._functions_per_test
        return sorted(
            tests,
            key=lambda test: (
                self.seconds.get(test, 0) > _SLOW_SECONDS,
                test.partition("::")[0] not in mirrors,
                sizes.get(test, 0),
                test,
            ),
        )

    def _that_run(self, mutant: Mutant) -> set[str]:
        """Return the tests that run the function; for a statement of a class or module, those that run any of it."""
        name = f"{mutant.file}:{mutant.function}"
        found = set(self.functions.get(name, ()))
        if not found:
            for function, tests in self.functions.items():
                if function.startswith(name):
                    found.update(tests)
        return found & self.seconds.keys()

    @property
    def _functions_per_test(self) -> dict[str, int]:
        counts: dict[str, int] = defaultdict(int)
        for tests in self.functions.values():
            for test in tests:
                counts[test] += 1
        return counts


def mirror_files(file: str, tree: Path) -> list[str]:
    """Return the test files that are about this file by their names.

    `kit/commands/config/set.py` is tested by `tests/kit/commands/test_config_set.py` or `test_config.py`.
    """
    path = Path(file)
    found = []
    for folder in (path.parent, path.parent.parent):
        for name in (path.stem, f"{path.parent.name}_{path.stem}", path.parent.name):
            mirror = f"tests/{folder.as_posix()}/test_{name}.py"
            if (tree / mirror).is_file() and mirror not in found:
                found.append(mirror)
    return found


def folders_of_tests(file: str, tree: Path) -> list[str]:
    """Return the folder of tests that mirrors the file's, or the nearest one above it that there is."""
    folder = Path(file).parent
    while not (tree / "tests" / folder).is_dir():
        folder = folder.parent
    return [f"tests/{folder.as_posix()}/"]


def suite(tree: Path) -> list[str]:
    """Return the folders and files of `make test`: without the tests about the repository itself."""
    about_the_repository = [*tree.glob("tests/project"), *tree.glob("tests/*/project")]
    return [f"--ignore={folder.relative_to(tree)}" for folder in about_the_repository]


def read(tree: Path) -> CoverageByTest | None:
    """Return what was measured before, if it was."""
    file = tree / FILE
    return CoverageByTest(**json.loads(file.read_text())) if file.exists() else None


def measure(tree: Path, seconds: float) -> CoverageByTest:
    """Run the whole suite in a copy for at most this long, and keep what it shows."""
    with tempfile.TemporaryDirectory(prefix="mutants-") as directory:
        coverage = _measure_in(Copy(tree, Path(directory, "copy")), Path(directory), seconds)
    (tree / FILE).parent.mkdir(exist_ok=True)
    (tree / FILE).write_text(json.dumps(asdict(coverage)))
    return coverage


def _measure_in(copy: Copy, directory: Path, seconds: float) -> CoverageByTest:
    log, outcomes, trial = directory / "functions.log", directory / "outcomes.jsonl", directory / "trial.json"
    install_recorder(copy.tree, log)
    trial.write_text(json.dumps(asdict(Trial(str(outcomes), [], stops_early=False))))
    options = ["-q", "-p", "no:cacheprovider", "-p", "tests.kit.mutants.trial_plugin", f"--trial={trial}"]
    options += [f"--basetemp={directory / 't'}", *suite(copy.tree)]
    run_in_tree(copy, ["-m", "pytest", *options], seconds, is_isolated=True)
    return combined(read_outcomes(outcomes), log.read_text(errors="replace").splitlines())


def install_recorder(tree: Path, log: Path) -> None:
    """Load the recorder in every Python process of this tree, and compile the package so that it calls the recorder."""
    (packages,) = (tree / ".venv").glob("lib/python*/site-packages")
    (packages / "mutation_recorder.py").write_text(Path(recorder.__file__).read_text())
    start = f"import mutation_recorder; mutation_recorder.start({str(log)!r})"
    (packages / "mutation_recorder.pth").write_text(f"{start}\n")
    for path in (tree / PACKAGE).rglob("*.py"):
        compile_recorded(path, path.relative_to(tree / PACKAGE).as_posix())


def combined(runs: Sequence[TestRun], lines: Iterable[str]) -> CoverageByTest:
    """Find the test of each line of the recorder: it names a test, or a home below the directory of a test."""
    fine = (TestOutcome.PASSED, TestOutcome.SKIPPED)
    bad = {run.test: run.message for run in runs if run.outcome not in fine}
    seconds = {run.test: run.seconds for run in runs if run.outcome == TestOutcome.PASSED and run.test not in bad}
    owners: dict[str, str] = {}
    ran: dict[str, set[str]] = defaultdict(set)
    for line in lines:
        kind, *fields = line.split("\t")
        if kind == recorder.OWNER and len(fields) == 2:
            directory, test = fields
            owners[directory] = test
        elif kind == recorder.RAN and len(fields) == 2:
            owner, function = fields
            ran[function].add(owner)
    order = {test: number for number, test in enumerate(seconds)}
    # Of each home once: it is in a line for each function.
    test_of = {owner: owner if owner in order else _test_of(owner, owners) for owner in set().union(*ran.values())}
    functions = {}
    for function, processes in sorted(ran.items()):
        tests = {test_of[owner] for owner in processes}
        functions[function] = sorted((test for test in tests if test in order), key=lambda test: order[test])
    return CoverageByTest(seconds, bad, functions)


def _test_of(home: str, owners: dict[str, str]) -> str:
    for directory in [Path(home), *Path(home).parents]:
        if str(directory) in owners:
            return owners[str(directory)]
    return ""
