"""work/workers.py: in order, whatever the number of workers, and none outlives its coordinator."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from sampletool.kit.contract.errors import Interrupted, TimedOut
from sampletool.kit.safety.signals import Signals
from sampletool.sample.errors import WorkerLost
from sampletool.sample.workers import Check, workers


def squares(task: int, check: Check) -> Iterator[int]:
    check()
    for n in range(task):
        yield n * n


def for_ever(_task: int, check: Check) -> Iterator[int]:
    yield os.getpid()
    while True:
        check()


@pytest.mark.parametrize("jobs", [1, 2, 5])
def test_results_come_in_the_order_of_tasks_whatever_the_number_of_workers(signals: Signals, jobs: int) -> None:
    tasks = [3, 0, 5, 1, 2, 4, 4]

    with workers(tasks, squares, jobs, signals) as results:
        collected = [(task, list(pieces)) for task, pieces in results]

    assert collected == [(task, [n * n for n in range(task)]) for task in tasks]


def test_results_larger_than_a_pipe_arrive_whole(signals: Signals) -> None:
    def large(task: int, _check: Check) -> Iterator[bytes]:
        yield bytes([task]) * 3_000_000

    with workers([1, 2, 3], large, 2, signals) as results:
        sizes = [(task, next(pieces) == bytes([task]) * 3_000_000, list(pieces)) for task, pieces in results]

    assert sizes == [(1, True, []), (2, True, []), (3, True, [])]


def test_leaving_early_ends_every_worker(signals: Signals) -> None:
    with workers([1, 2], for_ever, 2, signals) as results:
        _, pieces = next(results)
        pid = next(pieces)

    assert is_gone(pid)


def test_a_worker_that_was_killed_is_an_error_and_not_a_wait(signals: Signals) -> None:
    with workers([1], for_ever, 1, signals) as results:
        _, pieces = next(results)
        os.kill(next(pieces), signal.SIGKILL)

        with pytest.raises(WorkerLost, match="SIGKILL"):
            next(pieces)


def test_a_failure_in_a_worker_is_told_with_its_traceback(signals: Signals) -> None:
    def fail(_task: int, _check: Check) -> Iterator[int]:
        yield 1
        raise KeyError("surprise")

    with pytest.raises(RuntimeError, match="surprise"), workers([1], fail, 1, signals) as results:
        list(next(results)[1])


def test_a_signal_ends_the_wait_for_a_worker_and_the_worker(signals: Signals) -> None:
    with workers([1], for_ever, 1, signals) as results:
        _, pieces = next(results)
        pid = next(pieces)
        signals.received = signal.SIGTERM

        with pytest.raises(Interrupted):
            next(pieces)

    assert is_gone(pid)


def test_the_time_limit_ends_the_wait_for_a_worker(signals: Signals) -> None:
    signals.limit(0.2)

    with pytest.raises(TimedOut), workers([1], for_ever, 1, signals) as results:
        list(next(results)[1])


def test_workers_ignore_signals_because_the_coordinator_decides(signals: Signals, tmp_path: Path) -> None:
    sent = tmp_path / "sent"

    def wait_for_signals(_task: int, _check: Check) -> Iterator[int]:
        yield os.getpid()
        while not sent.exists():
            time.sleep(0.001)
        yield os.getpid()

    with workers([1], wait_for_signals, 1, signals) as results:
        _, pieces = next(results)
        pid = next(pieces)
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT):
            os.kill(pid, number)
        sent.touch()

        assert next(pieces) == pid


def test_no_worker_outlives_a_coordinator_that_was_killed(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(
        "from tests.sample.test_workers import for_ever\n"
        "from sampletool.kit.safety.signals import Signals\n"
        "from sampletool.sample.workers import workers\n"
        "with workers([1, 2, 3], for_ever, 3, Signals()) as results:\n"
        "    for task, pieces in results:\n"
        "        print(next(pieces), flush=True)\n"
        "        if task == 3: list(pieces)\n"
        "        pieces.close()\n"
    )
    with subprocess.Popen([sys.executable, program], stdout=subprocess.PIPE) as coordinator:
        assert coordinator.stdout is not None
        pids = [int(coordinator.stdout.readline()) for _ in range(3)]

        coordinator.kill()
        coordinator.wait()
        left = [pid for pid in pids if not is_gone(pid)]
        for pid in left:
            os.kill(pid, signal.SIGKILL)

    assert left == []


def is_gone(pid: int, patience_seconds: float = 5.0) -> bool:
    """Gone, or a zombie that nobody has reaped yet; a moment is allowed, for the end may be under way."""
    deadline = time.monotonic() + (patience_seconds if _runs(pid) else 0)
    while _runs(pid) and time.monotonic() < deadline:
        time.sleep(0.005)
    return not _runs(pid)


def _runs(pid: int) -> bool:
    try:
        os.kill(pid, 0)
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (ProcessLookupError, FileNotFoundError):
        return False
