"""The last lines of a test run: its five slowest tests, and what the whole run cost.

Processor time is the figure to compare between two runs. Unlike wall time, it hardly depends on
what else the machine does. It includes every process that the tests started and waited for.
"""

import resource
import time
from collections import defaultdict

import pytest

_SHOWN_TESTS = 5


class Timing:
    """A pytest plugin that measures one run.

    With xdist, only the process that controls the workers needs it.
    """

    def __init__(self) -> None:
        self._started_at = time.monotonic()
        self._seconds_by_test: defaultdict[str, float] = defaultdict(float)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Add the time of one phase of a test: its setup, its body or its teardown."""
        self._seconds_by_test[report.nodeid] += report.duration

    @pytest.hookimpl(trylast=True)
    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Print the figures. By now the workers have exited, so their processor time is known."""
        if not self._seconds_by_test:
            return
        terminalreporter.section("slowest tests")
        slowest_first = sorted(self._seconds_by_test.items(), key=_seconds, reverse=True)
        for test, seconds in slowest_first[:_SHOWN_TESTS]:
            terminalreporter.write_line(f"{seconds:6.2f} s  {test}")
        wall_seconds = time.monotonic() - self._started_at
        count = len(self._seconds_by_test)
        tests = "1 test" if count == 1 else f"{count} tests"
        terminalreporter.write_line(
            f"{tests} took {wall_seconds:.0f} s, and {processor_seconds():.0f} s of processor time."
        )


def processor_seconds() -> float:
    """Return the processor time of this process and of all its children that have exited."""
    total = 0.0
    for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN):
        usage = resource.getrusage(who)
        total += usage.ru_utime + usage.ru_stime
    return total


def _seconds(entry: tuple[str, float]) -> float:
    return entry[1]
