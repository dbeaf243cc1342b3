"""Results come in order, whatever the number of workers, and no worker outlives its coordinator."""

import errno
import os
import signal
import time
from contextlib import closing
from pathlib import Path

import pytest

from sampletool.kit.safety.errors import DeadlineExceeded, Interrupted
from sampletool.kit.safety.signals import Signals
from sampletool.kit.testing.forked import start_python
from sampletool.sample.errors import WorkerLost
from sampletool.sample.workers import Check, results_of
from tests.sample.support import PATIENCE_SECONDS, are_gone, kill_all, pid_in, pids_in


def square(task: int, check: Check) -> int:
    check()
    return task * task


def for_long(task: str, check: Check) -> None:
    """Says which process works, in a file of this name."""
    Path(task).write_text(f"{os.getpid()}\n")
    end = time.monotonic() + PATIENCE_SECONDS
    while time.monotonic() < end:
        check()
        time.sleep(0.01)
    Path(f"{task}-is-over").touch()


@pytest.mark.parametrize("jobs", [1, 2, 5])
def test_results_come_in_the_order_of_tasks_whatever_the_number_of_workers(signals: Signals, jobs: int) -> None:
    tasks = [3, 0, 5, 1, 2, 4, 4]

    assert list(results_of(tasks, square, jobs, signals, signals.check)) == [task * task for task in tasks]


def test_results_larger_than_a_pipe_arrive_whole(signals: Signals) -> None:
    def large(task: int, _check: Check) -> bytes:
        return bytes([task]) * 3_000_000

    results = results_of([1, 2, 3], large, 2, signals, signals.check)
    assert all(result == bytes([task]) * 3_000_000 for task, result in zip((1, 2, 3), results, strict=True))


def first_or_for_long(task: str, check: Check) -> None:
    if task.endswith("/0"):
        pid_in(Path(task).with_name("2"))
    else:
        for_long(task, check)


def test_leaving_early_ends_every_worker(signals: Signals, tmp_path: Path) -> None:
    tasks = [f"{tmp_path}/{n}" for n in range(3)]
    with closing(results_of(tasks, first_or_for_long, 3, signals, signals.check)) as results:
        next(results)
        pids = [pid_in(tmp_path / str(n)) for n in (1, 2)]

    assert are_gone(pids)
    assert not [*tmp_path.glob("*-is-over")]


def test_a_worker_that_was_killed_is_an_error_and_not_a_wait(signals: Signals) -> None:
    def die(_task: int, _check: Check) -> None:
        os.kill(os.getpid(), signal.SIGKILL)

    with pytest.raises(WorkerLost, match="died"):
        next(results_of([1], die, 1, signals, signals.check))


def test_a_failure_in_a_worker_comes_with_its_traceback(signals: Signals) -> None:
    def fail(_task: int, _check: Check) -> int:
        raise KeyError("surprise")

    with pytest.raises(KeyError, match="surprise") as caught:
        next(results_of([1], fail, 1, signals, signals.check))

    assert "in fail" in caught.value.__notes__[0]


def test_a_worker_that_cannot_be_started_is_an_error_that_says_why(
    signals: Signals, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse() -> int:
        raise BlockingIOError(errno.EAGAIN, "no")

    monkeypatch.setattr(os, "fork", refuse)  # the limit of processes does not apply to root

    with pytest.raises(WorkerLost, match="could not be started: resource temporarily unavailable"):
        next(results_of([1], square, 1, signals, signals.check))


def test_a_signal_ends_the_wait_for_a_worker_and_the_worker(signals: Signals, tmp_path: Path) -> None:
    def look() -> None:
        if pids_in(tmp_path / "0"):
            signals.received = signal.SIGTERM
        signals.check()

    with pytest.raises(Interrupted):
        next(results_of([f"{tmp_path}/0"], for_long, 1, signals, look))

    assert are_gone(pids_in(tmp_path / "0"))


def test_the_time_limit_ends_the_wait_for_a_worker(signals: Signals, tmp_path: Path) -> None:
    signals.limit(0.2)

    with pytest.raises(DeadlineExceeded):
        next(results_of([f"{tmp_path}/0"], for_long, 1, signals, signals.check))


def test_no_worker_outlives_a_coordinator_that_was_killed(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(
        "from tests.sample.test_workers import for_long\n"
        "from sampletool.kit.safety.signals import Signals\n"
        "from sampletool.sample.workers import results_of\n"
        "signals = Signals()\n"
        f"tasks = ['{tmp_path}/0', '{tmp_path}/1', '{tmp_path}/2']\n"
        "next(results_of(tasks, for_long, 3, signals, signals.check))\n"
    )
    with start_python(program) as coordinator:
        pids = [pid_in(tmp_path / str(n)) for n in range(3)]

        coordinator.kill()
        coordinator.wait()
        try:
            assert are_gone(pids)
        finally:
            kill_all(pids)


def test_a_worker_that_waits_in_its_pipe_ends_with_its_coordinator(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(
        "import os, time\n"
        "from pathlib import Path\n"
        "from sampletool.kit.safety.signals import Signals\n"
        "from sampletool.sample.workers import results_of\n"
        "def large(task, check):\n"
        f"    Path('{tmp_path}', str(task)).write_text(str(os.getpid()) + chr(10))\n"
        "    return bytes(3_000_000 if task > 1 else 1)\n"
        "signals = Signals()\n"
        "results = results_of([1, 2, 3], large, 3, signals, signals.check)\n"
        "next(results)\n"
        "time.sleep(60)\n"
    )
    with start_python(program) as coordinator:
        pids = [pid_in(tmp_path / str(n)) for n in (2, 3)]

        coordinator.kill()
        coordinator.wait()
        try:
            assert are_gone(pids)
        finally:
            kill_all(pids)
