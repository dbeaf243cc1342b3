"""sampletool/kit/work/workers.py: results in order, and no worker that outlives its coordinator."""

import errno
import os
import signal
import time
from functools import partial
from pathlib import Path

import pytest

from sampletool.kit.contract.errors import InvalidValues, KeyNotFound, Mistake, WorkerLost
from sampletool.kit.safety.errors import DeadlineExceeded, Interrupted
from sampletool.kit.safety.processes import is_running
from sampletool.kit.safety.signals import Signals
from sampletool.kit.testing.forked import function_program, run_python, start_python
from sampletool.kit.testing.waiting import wait_until
from sampletool.kit.work.workers import running_workers

_LONG_SECONDS = 90
"""How long a task takes if nothing kills its worker. The test then fails."""

_INTERRUPTED_SECONDS = 10
"""How long a task takes if nothing ends the wait for it. The test then fails."""

_LONGEST_EXIT_SECONDS = 30
"""How long a process may take to exit, on a busy machine."""


def square(task: int) -> int:
    return task * task


def write_pid_and_sleep(path: Path, seconds: float = _LONG_SECONDS) -> None:
    """Do a task that lasts until its worker is killed."""
    # Rename the file, so that a test never reads a part of the number.
    new_path = path.with_suffix(".new")
    new_path.write_text(str(os.getpid()))
    new_path.rename(path)
    time.sleep(seconds)


def pid_in(path: Path) -> int:
    """Wait for the pid that a worker writes, and return it."""
    wait_until(path.exists)
    return int(path.read_text())


def all_exit(pids: list[int]) -> bool:
    """Wait until these processes have exited. Return False, and kill them, if they do not."""
    deadline = time.monotonic() + _LONGEST_EXIT_SECONDS
    running = pids
    while running and time.monotonic() < deadline:
        running = [pid for pid in running if is_running(pid)]
        time.sleep(0.005)
    for pid in running:
        os.kill(pid, signal.SIGKILL)
    return running == []


def paths_for_workers(directory: Path, count: int) -> list[Path]:
    return [directory / str(number) for number in range(count)]


@pytest.mark.parametrize("jobs", [1, 2, 5])
def test_results_arrive_in_the_order_of_the_tasks(signals: Signals, jobs: int) -> None:
    tasks = [3, 0, 5, 1, 2, 4, 4]

    with running_workers(square, tasks, jobs, signals) as results:
        squares = list(results)

    assert squares == [9, 0, 25, 1, 4, 16, 16]


def test_without_tasks_there_are_no_results(signals: Signals) -> None:
    tasks: list[int] = []

    with running_workers(square, tasks, 2, signals) as results:
        assert list(results) == []


def test_a_slow_task_does_not_change_the_order(signals: Signals, tmp_path: Path) -> None:
    second_has_run = tmp_path / "second"

    def wait_for_the_second(task: str) -> str:
        if task == "first":
            wait_until(second_has_run.exists)
        else:
            second_has_run.touch()
        return task

    with running_workers(wait_for_the_second, ["first", "second"], 2, signals) as results:
        assert list(results) == ["first", "second"]


def test_no_more_workers_run_than_allowed(signals: Signals, tmp_path: Path) -> None:
    def count_running(task: int) -> int:
        running = tmp_path / str(task)
        running.touch()
        count = len(list(tmp_path.iterdir()))
        running.unlink()
        return count

    with running_workers(count_running, list(range(12)), 3, signals) as results:
        assert max(results) <= 3


def test_a_result_larger_than_a_pipe_arrives_whole(signals: Signals) -> None:
    def repeat(task: int) -> bytes:
        return bytes([task]) * 3_000_000

    with running_workers(repeat, [1, 2, 3], 2, signals) as results:
        for task, result in zip((1, 2, 3), results, strict=True):
            assert result == bytes([task]) * 3_000_000


def test_an_error_that_is_returned_is_a_result(signals: Signals) -> None:
    with running_workers(ValueError, ["text"], 1, signals) as results:
        (error,) = results

    assert isinstance(error, ValueError)


# Errors


def test_the_error_of_the_function_is_raised_with_its_traceback(signals: Signals) -> None:
    def fail(_task: int) -> int:
        raise OSError(errno.EIO, "surprise", "data.csv")

    with (
        pytest.raises(OSError, match="surprise") as caught,
        running_workers(fail, [1], 1, signals) as results,
    ):
        next(results)

    assert (caught.value.errno, caught.value.filename) == (errno.EIO, "data.csv")
    assert "in fail" in caught.value.__notes__[0]


def test_an_error_of_a_command_keeps_its_facts_and_its_hint(signals: Signals) -> None:
    expected = KeyNotFound(key="jobs", where="tool.toml")

    def fail(_task: int) -> int:
        raise KeyNotFound(key="jobs", where="tool.toml")

    with (
        pytest.raises(KeyNotFound) as caught,
        running_workers(fail, [1], 1, signals) as results,
    ):
        next(results)

    assert caught.value.describe() == expected.describe()
    assert str(caught.value) == str(expected)


def test_several_mistakes_are_raised_together(signals: Signals) -> None:
    mistakes = [Mistake("a", "INVALID_VALUE", "a is wrong"), Mistake("b", "MISSING", "no b")]

    def fail(_task: int) -> int:
        raise InvalidValues(*mistakes)

    with (
        pytest.raises(InvalidValues) as caught,
        running_workers(fail, [1], 1, signals) as results,
    ):
        next(results)

    assert caught.value.mistakes == mistakes


class _CannotBeRestored(Exception):
    def __init__(self, first: str, second: str) -> None:
        super().__init__(f"{first} and {second}")


def test_an_error_that_cannot_be_sent_is_described(signals: Signals) -> None:
    def fail(_task: int) -> int:
        raise _CannotBeRestored("one", "two")

    with (
        pytest.raises(RuntimeError, match=r"^_CannotBeRestored: one and two\n") as caught,
        running_workers(fail, [1], 1, signals) as results,
    ):
        next(results)

    assert "in fail" in caught.value.__notes__[0]


def test_a_result_that_cannot_be_sent_is_an_error_that_says_so(signals: Signals) -> None:
    with (
        pytest.raises(Exception, match="lambda"),
        running_workers(lambda _task: lambda: None, [1], 1, signals) as results,
    ):
        next(results)


def test_a_worker_that_was_killed_is_reported(signals: Signals) -> None:
    def die(_task: int) -> None:
        os.kill(os.getpid(), signal.SIGKILL)

    with (
        pytest.raises(WorkerLost, match="was killed") as caught,
        running_workers(die, [1], 1, signals) as results,
    ):
        next(results)

    assert caught.value.context["pid"] > 0


def test_a_worker_that_exits_in_the_middle_of_its_result_is_reported(
    signals: Signals, monkeypatch: pytest.MonkeyPatch
) -> None:
    from sampletool.kit.work import workers as module

    def write_half(descriptor: int, content: bytes) -> None:
        os.write(descriptor, content[: len(content) // 2])

    monkeypatch.setattr(module, "write_all", write_half)

    with (
        pytest.raises(WorkerLost),
        running_workers(square, [1000], 1, signals) as results,
    ):
        next(results)


def _refuse_fork() -> int:
    # A limit of processes would not do: it does not apply to root.
    raise BlockingIOError(errno.EAGAIN, "no")


def test_a_worker_that_cannot_be_started_is_an_error_that_says_why(
    signals: Signals, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "fork", _refuse_fork)

    with (
        pytest.raises(WorkerLost, match="could be started: Resource temporarily unavailable"),
        running_workers(square, [1], 1, signals) as results,
    ):
        next(results)


def test_if_there_is_no_room_for_another_worker_it_waits_for_one_that_runs(
    signals: Signals, monkeypatch: pytest.MonkeyPatch
) -> None:
    fork = os.fork
    attempts: list[int] = []

    def refuse_each_second_time() -> int:
        attempts.append(len(attempts))
        if len(attempts) % 2 == 0:
            return _refuse_fork()
        return fork()

    monkeypatch.setattr(os, "fork", refuse_each_second_time)

    with running_workers(square, [1, 2, 3], 3, signals) as results:
        assert list(results) == [1, 4, 9]
    assert len(attempts) > 3


# The end of workers


def test_leaving_the_block_kills_the_workers_that_run(signals: Signals, tmp_path: Path) -> None:
    paths = paths_for_workers(tmp_path, 3)

    def first_returns_at_once(path: Path) -> None:
        if path != paths[0]:
            write_pid_and_sleep(path)

    with running_workers(first_returns_at_once, paths, 3, signals) as results:
        next(results)
        pids = [pid_in(path) for path in paths[1:]]

    assert not any(is_running(pid) for pid in pids)


def test_after_the_block_no_worker_is_started(signals: Signals) -> None:
    with running_workers(square, [1, 2, 3], 1, signals) as results:
        first = next(results)

    assert (first, list(results)) == (1, [])


def test_a_signal_ends_the_wait_and_the_workers(signals: Signals, tmp_path: Path) -> None:
    path = tmp_path / "0"
    work = partial(write_pid_and_sleep, seconds=_INTERRUPTED_SECONDS)

    def interrupt_once_it_runs() -> None:
        if path.exists():
            signals.receive(signal.SIGTERM)

    with (
        pytest.raises(Interrupted),
        running_workers(work, [path], 1, signals, interrupt_once_it_runs) as results,
    ):
        next(results)

    assert not is_running(pid_in(path))


def test_the_deadline_ends_the_wait(signals: Signals, tmp_path: Path) -> None:
    signals.limit(0.1)
    work = partial(write_pid_and_sleep, seconds=_INTERRUPTED_SECONDS)

    with (
        pytest.raises(DeadlineExceeded),
        running_workers(work, [tmp_path / "0"], 1, signals) as results,
    ):
        next(results)


def run_workers_for_long(directory: str) -> None:
    """Be a coordinator whose workers run until they are killed. A test runs this in a process."""
    signals = Signals()
    signals.install()
    paths = paths_for_workers(Path(directory), 3)
    with running_workers(write_pid_and_sleep, paths, 3, signals) as results:
        next(results)


def test_no_worker_outlives_a_coordinator_that_is_killed(tmp_path: Path) -> None:
    program = function_program("tests.kit.work.test_workers:run_workers_for_long", str(tmp_path))

    with start_python(*program) as coordinator:
        pids = [pid_in(path) for path in paths_for_workers(tmp_path, 3)]
        coordinator.kill()
        coordinator.wait()

    assert all_exit(pids)


def fill_a_pipe(directory: str) -> None:
    """Be a coordinator that does not read the large result of its worker."""

    def return_much(path: Path) -> bytes:
        path.write_text(str(os.getpid()))
        path.rename(path.with_suffix(".pid"))
        return bytes(3_000_000)

    with running_workers(
        return_much, paths_for_workers(Path(directory), 2), 2, Signals()
    ) as results:
        next(results)
        time.sleep(_LONG_SECONDS)


def test_a_worker_that_waits_in_its_pipe_ends_with_its_coordinator(tmp_path: Path) -> None:
    program = function_program("tests.kit.work.test_workers:fill_a_pipe", str(tmp_path))

    with start_python(*program) as coordinator:
        pid = pid_in(tmp_path / "1.pid")
        coordinator.kill()
        coordinator.wait()

    assert all_exit([pid])


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM], ids=["SIGINT", "SIGTERM"])
def test_a_signal_to_a_worker_alone_changes_nothing(
    signals: Signals, tmp_path: Path, number: signal.Signals
) -> None:
    may_end = tmp_path / "may-end"

    def signal_itself(_task: int) -> str:
        os.kill(os.getpid(), number)
        wait_until(may_end.exists)
        return "done"

    signals.install()
    try:
        with running_workers(
            signal_itself, [1], 1, signals, while_waiting=may_end.touch
        ) as results:
            ended = list(results)
        # Nothing has woken up the coordinator: a signal would make this return at once, each time.
        started_at = time.monotonic()
        signals.wait(0.05)
        waited_seconds = time.monotonic() - started_at
    finally:
        signals.uninstall()

    assert ended == ["done"]
    assert waited_seconds >= 0.05
    assert signals.received is None


def lose_a_worker_without_its_exit_code() -> None:
    """Be a coordinator whose exit codes of children the kernel discards."""
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)

    def exit_at_once(_task: int) -> None:
        os._exit(0)

    try:
        with running_workers(exit_at_once, [1, 2], 2, Signals()) as results:
            next(results)
    except WorkerLost as error:
        print(error.code)


def test_a_worker_is_lost_also_if_its_exit_code_is() -> None:
    name = "tests.kit.work.test_workers:lose_a_worker_without_its_exit_code"

    completed = run_python(*function_program(name))

    assert completed.stdout == "WORKER_LOST\n"


def test_while_waiting_is_called_again_and_again(signals: Signals, tmp_path: Path) -> None:
    calls: list[int] = []
    enough = tmp_path / "enough"

    def count_calls() -> None:
        calls.append(1)
        if len(calls) == 3:
            enough.touch()

    def wait_for_the_third_call(_task: int) -> None:
        wait_until(enough.exists)

    with running_workers(
        wait_for_the_third_call, [1], 1, signals, while_waiting=count_calls
    ) as results:
        list(results)

    assert len(calls) >= 3
