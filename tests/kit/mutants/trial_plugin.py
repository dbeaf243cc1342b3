"""A pytest plugin that runs chosen tests in a given order, and records each outcome at once.

`--trial=FILE` names a file of JSON (see Trial). The plugin appends lines of JSON to another file
(see TestRun). So if the run is killed at its limit, the outcomes up to then are known.
"""

import json
import subprocess
import sys
import time
from dataclasses import asdict, dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any

import pytest


class TestOutcome(StrEnum):
    """The outcome of a test, or the reason why it could not begin."""

    # Otherwise, pytest would take this class for a test.
    __test__ = False

    PASSED = "passed"
    SKIPPED = "skipped"
    ASSERTION = "assertion"
    EXCEPTION = "exception"
    TIMEOUT = "time-out"
    IMPORT_ERROR = "import error"


@dataclass(frozen=True)
class TestRun:
    """One test that has run, with the first line of its error."""

    __test__ = False

    test: str
    outcome: TestOutcome
    seconds: float
    message: str = ""


@dataclass(frozen=True)
class Trial:
    """What pytest should run."""

    outcomes: str
    """The file for the outcomes."""
    tests: list[str]
    """The tests to run, in this order. An empty list means all tests.

    A test can be named without its parameters. The name of a file means all tests in it.
    """
    seconds: float = float("inf")
    """How long the run may take. After that, no other test begins."""
    stops_early: bool = True
    """Whether to stop at the first failed assertion, and at the third failure of another kind.

    After another kind of failure, the next test may fail by an assertion, which says more.
    """


_MOST_OTHER_FAILURES = 3
"""How many failures that are no assertions stop a run."""
_MAX_MESSAGE_CHARACTERS = 300


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option --trial."""
    parser.addoption("--trial", help="Read from this file which tests to run.")


def pytest_configure(config: pytest.Config) -> None:
    """Register the plugin if there is a trial."""
    file = config.getoption("--trial")
    if file:
        trial = Trial(**json.loads(Path(file).read_text()))
        config.pluginmanager.register(_Runner(trial), "trial-runner")


class _Runner:
    """The part of the plugin that knows the trial."""

    def __init__(self, trial: Trial) -> None:
        self._trial = trial
        self._deadline = time.monotonic() + trial.seconds
        self._other_failures = 0
        # Only the copy in which the coverage is measured has a recorder.
        self._recorder = getattr(sys.modules.get("mutation_recorder"), "recorder", None)

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        """Keep only the chosen tests, and sort them."""
        if not self._trial.tests:
            return
        index_by_name = {name: index for index, name in enumerate(self._trial.tests)}
        chosen = []
        for item in items:
            file = item.nodeid.partition("::")[0]
            without_parameters = item.nodeid.partition("[")[0]
            indexes = []
            for name in (item.nodeid, without_parameters, file):
                if name in index_by_name:
                    indexes.append(index_by_name[name])
            if indexes:
                chosen.append((min(indexes), item))
        chosen.sort(key=_index)
        items[:] = [item for _, item in chosen]

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        """Tell the recorder which test begins."""
        if self._recorder is not None:
            self._recorder.begin(nodeid)

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_teardown(self, item: pytest.Item) -> None:
        """Tell the recorder which directory belongs to the test."""
        directory = getattr(item, "funcargs", {}).get("tmp_path")
        if self._recorder is not None and directory is not None:
            self._recorder.write("owner", str(directory), item.nodeid)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(self, item: pytest.Item, call: pytest.CallInfo[None]) -> Any:
        """Record the outcome of a test, or of a fixture that failed or skipped the test."""
        report: Any = yield
        if report.skipped:
            outcome = TestOutcome.SKIPPED
        elif call.excinfo is not None:
            outcome = outcome_of(call.excinfo.value)
        elif call.when == "call":
            outcome = TestOutcome.PASSED
        else:
            # The fixtures of the test were set up or torn down, without a problem.
            return report
        message = ""
        if call.excinfo is not None:
            first_line = str(call.excinfo.value).strip().partition("\n")[0]
            message = first_line[:_MAX_MESSAGE_CHARACTERS]
        self._write(TestRun(item.nodeid, outcome, call.duration, message))
        self._stop_if_enough(item.session, outcome)
        return report

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        """Record a file that could not be imported."""
        if report.failed:
            last_line = str(report.longrepr).strip().rpartition("\n")[2]
            message = last_line[:_MAX_MESSAGE_CHARACTERS]
            self._write(TestRun(report.nodeid, TestOutcome.IMPORT_ERROR, 0, message))

    def _stop_if_enough(self, session: pytest.Session, outcome: TestOutcome) -> None:
        """Begin no other test if the time is over, or if the outcome says enough."""
        if time.monotonic() > self._deadline:
            session.shouldstop = "the time is over"
        if not self._trial.stops_early:
            return
        if outcome in (TestOutcome.ASSERTION, TestOutcome.IMPORT_ERROR):
            session.shouldstop = "noticed"
        elif outcome in (TestOutcome.EXCEPTION, TestOutcome.TIMEOUT):
            self._other_failures += 1
            if self._other_failures == _MOST_OTHER_FAILURES:
                session.shouldstop = "failed often enough"

    def _write(self, run: TestRun) -> None:
        with open(self._trial.outcomes, "a") as outcomes:
            outcomes.write(json.dumps(asdict(run)) + "\n")


def _index(entry: tuple[int, pytest.Item]) -> int:
    return entry[0]


def outcome_of(error: BaseException) -> TestOutcome:
    """Return what the error of a test means.

    If a test gives up waiting, the outcome is a time-out, whatever the test then raises: it would
    fail on a busy machine as well.
    """
    timeouts = (TimeoutError, subprocess.TimeoutExpired)
    if isinstance(error, timeouts) or isinstance(error.__context__, timeouts):
        return TestOutcome.TIMEOUT
    if isinstance(error, pytest.fail.Exception) and str(error).startswith("Timeout"):
        return TestOutcome.TIMEOUT
    if isinstance(error, (AssertionError, pytest.fail.Exception)):
        return TestOutcome.ASSERTION
    if isinstance(error, (ImportError, SyntaxError)):
        return TestOutcome.IMPORT_ERROR
    return TestOutcome.EXCEPTION
