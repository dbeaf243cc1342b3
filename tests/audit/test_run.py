"""sampletool/audit/run.py"""

import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Protocol

import pytest

from sampletool.audit.run import Run, max_concurrent
from sampletool.kit.safety.signals import Signals
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
    assert eventually(run.poll)


def test_what_it_printed_and_how_it_ended_are_known(start: Start) -> None:
    run = start("sh", "-c", "echo out; echo err >&2; exit 7")

    _finish(run)

    assert (run.stdout, run.stderr, run.exit_code) == ("out\n", "err\n", 7)


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
