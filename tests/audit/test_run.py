"""sampletool/audit/run.py"""

import os
import signal
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Protocol

import pytest

from sampletool.audit import run as module
from sampletool.audit.run import Run, max_concurrent
from sampletool.kit.safety.signals import Signals
from sampletool.kit.testing.failing import outcome_of
from sampletool.kit.testing.forked import start_python
from tests.audit.support import eventually, is_gone, is_stopped


class Start(Protocol):
    def __call__(self, *words: str) -> Run: ...


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    runs: list[Run] = []

    def start(*words: str) -> Run:
        runs.append(Run(list(words), dict(os.environ), tmp_path, tmp_path / f"run-{len(runs)}"))
        return runs[-1]

    yield start
    for run in runs:
        run.kill()


def _finish(run: Run) -> None:
    has_exited = outcome_of(lambda: eventually(run.poll))
    assert has_exited is True, repr(has_exited)
    # Otherwise, Popen would wait for a process that was reaped, or warn that it is running.
    assert run._process.returncode == run.exit_code


def test_what_it_printed_and_how_it_ended_are_known(start: Start) -> None:
    run = start("sh", "-c", "echo out; echo err >&2; exit 7")

    _finish(run)

    seen = outcome_of(lambda: (run.stdout, run.stderr, run.exit_code))
    assert seen == ("out\n", "err\n", 7)


def test_a_run_has_no_input_and_leads_a_group_in_its_directory(
    start: Start,
    tmp_path: Path,
) -> None:
    look = "readlink /proc/self/fd/0; pwd; cut -d ' ' -f 5 /proc/$$/stat; echo $$"
    run = start("sh", "-c", look)

    _finish(run)

    assert run.stdout.split("\n")[:-1] == ["/dev/null", str(tmp_path), str(run.pid), str(run.pid)]


def test_of_endless_output_only_the_end_is_kept(start: Start) -> None:
    run = start("sh", "-c", "head -c 1000000 /dev/zero; echo end")

    _finish(run)

    assert run.stdout.endswith("end\n")
    assert len(run.stdout) == 64 * 1024


def test_stopping_stops_what_it_started_too_and_it_goes_on_when_let_go(
    start: Start, signals: Signals
) -> None:
    run = start("sh", "-c", "sleep 600 & echo $!; wait $!; echo went on")
    assert eventually(lambda: run.stdout.endswith("\n"))
    child = int(run.stdout)

    assert run.stop(signals)

    assert eventually(lambda: is_stopped(child))
    run.resume()
    os.kill(child, signal.SIGKILL)
    _finish(run)
    assert run.stdout.endswith("went on\n")


class CountedSignals(Signals):
    """Signals that count how often a run is waited for, and give up after the thousandth time."""

    def __init__(self, run: Run) -> None:
        super().__init__()
        self.checks = 0
        self._run = run
        self._waits = 0

    def check(self, uncertain_change: str | None = None) -> None:
        self.checks += 1
        super().check(uncertain_change)

    def wait(self, seconds: float, descriptors: Sequence[int] = ()) -> list[int]:
        self._waits += 1
        assert not self._run.is_stopped, "it waits for a run that is stopped"
        assert self._waits < 1000, "it waits without a limit"
        return super().wait(seconds, descriptors)


def test_a_run_that_is_stopped_is_waited_for_no_longer(start: Start) -> None:
    run = start("sleep", "600")

    assert run.stop(CountedSignals(run))

    assert not run.poll()
    assert run.is_stopped


def test_a_run_that_no_signal_reaches_is_waited_for_up_to_a_limit(
    start: Start,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It may belong to another user."""
    run = start("sleep", "600")
    polls: list[bool] = []
    poll = run.poll

    def count_polls() -> bool:
        polls.append(poll())
        assert len(polls) < 1000, "it waits without a limit"
        return polls[-1]

    with monkeypatch.context() as patches:
        patches.setattr(module, "_END_SECONDS", 0.02)
        patches.setattr(run, "send", lambda _signal: None)
        patches.setattr(run, "poll", count_polls)

        signals = CountedSignals(run)
        assert not run.stop(signals)
        run.kill()

    assert len(polls) >= 4
    assert signals.checks > 0, "a signal does not end the wait"
    assert run.exit_code is None


def test_after_its_end_a_run_sends_no_signal_to_a_group_that_may_belong_to_others(
    start: Start,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    run = start("true")
    _finish(run)
    sent: list[object] = []
    monkeypatch.setattr(os, "killpg", lambda *arguments: sent.append(arguments))

    run.send(signal.SIGCONT)

    assert sent == []


@pytest.mark.parametrize(
    ("periods", "most"),
    [
        ([], 0),
        ([(0, None), (0, None)], 0),
        ([(0, 2), (1, 3), (2, 4)], 3),
        ([(0, 1), (2, 3)], 1),
        ([(0, 9), (1, 2), (3, 4)], 2),
    ],
)
def test_runs_overlap_if_one_was_loaded_while_another_was_seen_running(
    periods: list[tuple[float, float | None]],
    most: int,
) -> None:
    runs: list[Any] = []
    for running_since, last_seen in periods:
        runs.append(SimpleNamespace(running_since=running_since, last_seen_running_at=last_seen))

    assert max_concurrent(runs) == most


def test_who_is_over_cannot_be_stopped(start: Start, signals: Signals) -> None:
    run = start("true")
    _finish(run)

    assert not run.stop(signals)


def test_ending_kills_a_stopped_run_and_what_it_started(start: Start, signals: Signals) -> None:
    run = start("sh", "-c", "sleep 600 & echo $!; wait")
    assert eventually(lambda: run.stdout.endswith("\n"))
    run.stop(signals)

    run.kill()

    assert run.exit_code == -signal.SIGKILL
    assert eventually(lambda: is_gone(int(run.stdout)))


def test_runs_one_after_the_other_did_not_overlap_and_runs_side_by_side_did(start: Start) -> None:
    one = start("true")
    _finish(one)
    two = start("true")
    _finish(two)
    three, four = start("sleep", "600"), start("sleep", "600")
    for run in (three, four, three):
        run.poll()

    assert max_concurrent([one, two]) < 2
    assert max_concurrent([one, two, three, four]) == 2


def test_the_time_before_it_was_let_go_does_not_count_as_overlap(
    start: Start, signals: Signals
) -> None:
    one, two = start("sleep", "600"), start("sleep", "600")
    one.stop(signals)
    for run in (one, two, one):
        run.poll()
    two.kill()

    one.resume()
    one.poll()

    assert max_concurrent([one, two]) == 1


def test_a_stopped_run_does_not_outlive_an_auditor_that_is_killed(tmp_path: Path) -> None:
    auditor_code = (
        "import os, sys, time; from pathlib import Path; from sampletool.audit.run import Run;"
        "from sampletool.kit.safety.signals import Signals;"
        "run = Run(['sleep', '600'], dict(os.environ), Path.cwd(), Path(sys.argv[1]));"
        "run.stop(Signals()); print(run.pid, flush=True); time.sleep(600)"
    )
    with start_python("-c", auditor_code, tmp_path / "run") as auditor:
        assert auditor.stdout is not None
        pid = int(auditor.stdout.readline())
        assert is_stopped(pid)

        auditor.kill()

    assert eventually(lambda: is_gone(pid))


def test_how_long_it_took_is_measured_when_it_ends(start: Start) -> None:
    run = start("true")

    _finish(run)

    assert len({run.elapsed_seconds for _ in range(100)}) == 1
