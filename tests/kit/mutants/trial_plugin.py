"""A plugin of pytest that runs chosen tests in a given order, and writes down each outcome as soon as it is known.

`--trial=FILE` names a file of JSON: see Trial. The lines that it writes are JSON too: see TestRun. When a run is killed
at its limit, everything up to there is known.
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
    """How a test ended, or why it could not begin."""

    __test__ = False  # pytest takes it for a test otherwise

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
    """What pytest is to run."""

    outcomes: str
    """The file for the outcomes."""
    tests: list[str]
    """Tests, with or without their parameters, and files, in the order in which they run; none means all."""
    seconds: float = float("inf")
    """Begin no other test after this long."""
    stops_early: bool = True
    """Stop at the first failed assertion, and at the third failure of another kind.

    Not at the first one of these: the next test may well fail by an assertion, which says more.
    """


_MOST_OTHER_FAILURES = 3


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--trial", help="the file that tells what is to run")


def pytest_configure(config: pytest.Config) -> None:
    file = config.getoption("--trial")
    if file:
        trial = Trial(**json.loads(Path(file).read_text()))
        config.pluginmanager.register(_Runner(trial), "trial-runner")


class _Runner:
    def __init__(self, trial: Trial) -> None:
        self._trial = trial
        self._deadline = time.monotonic() + trial.seconds
        self._other_failures = 0
        # The recorder is there only in the copy in which coverage is measured.
        self._recorder = getattr(sys.modules.get("mutation_recorder"), "recorder", None)

    def pytest_collection_modifyitems(self, config: pytest.Config, items: list[pytest.Item]) -> None:
        if not self._trial.tests:
            return
        places = {name: number for number, name in enumerate(self._trial.tests)}
        chosen = []
        for item in items:
            file = item.nodeid.partition("::")[0]
            names = (item.nodeid, item.nodeid.partition("[")[0], file)
            place = min((places[name] for name in names if name in places), default=None)
            if place is not None:
                chosen.append((place, item))
        chosen.sort(key=lambda pair: pair[0])
        items[:] = [item for _, item in chosen]

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        if self._recorder is not None:
            self._recorder.begin(nodeid)

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_teardown(self, item: pytest.Item) -> None:
        directory = getattr(item, "funcargs", {}).get("tmp_path")
        if self._recorder is not None and directory is not None:
            self._recorder.write("owner", str(directory), item.nodeid)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(self, item: pytest.Item, call: pytest.CallInfo[None]) -> Any:
        report: Any = yield
        if call.excinfo is not None and not report.skipped:
            outcome = outcome_of(call.excinfo.value)
        elif report.skipped:
            outcome = TestOutcome.SKIPPED
        elif call.when == "call":
            outcome = TestOutcome.PASSED
        else:
            return report
        message = str(call.excinfo.value).strip().partition("\n")[0][:300] if call.excinfo is not None else ""
        self._write(TestRun(item.nodeid, outcome, call.duration, message))
        self._stop_if_enough(item.session, outcome)
        return report

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.failed:
            message = str(report.longrepr).strip().rpartition("\n")[2][:300]
            self._write(TestRun(report.nodeid, TestOutcome.IMPORT_ERROR, 0, message))

    def _stop_if_enough(self, session: pytest.Session, outcome: TestOutcome) -> None:
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


def outcome_of(error: BaseException) -> TestOutcome:
    """Return what the error of a test means.

    A test that gives up waiting, whatever it raises then, is a time-out: on a busy machine it would fail as well.
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
