"""The lock of the kernel: who is kept out, who waits, and what a waiter leaves behind."""

import errno
import fcntl
import os
import resource
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from select import select

import pytest
from filelock import FileLock, Timeout

from sampletool.kit.safety.flock import EXCLUSIVE, SHARED, Waiter, try_lock, unlock
from sampletool.kit.testing.forked import run_python

PATIENCE_SECONDS = 10
"""How long to wait for an event that is certain to come. A busy machine may need seconds."""


@pytest.fixture
def descriptors(tmp_path: Path) -> Iterator[list[int]]:
    """Three open files of one lock file: what the first one locks is locked for the others."""
    opened = [os.open(tmp_path / "lock", os.O_RDWR | os.O_CREAT, 0o600) for _ in range(3)]
    yield opened
    for descriptor in opened:
        os.close(descriptor)


def can_lock(descriptor: int, operation: int) -> bool:
    """Take the lock without the code under test, which might wait without end."""
    try:
        fcntl.flock(descriptor, operation | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


# All of it

_TAKE_LOCKS = """
import os, select, signal, sys
from sampletool.kit.safety.flock import EXCLUSIVE, SHARED, Waiter, try_lock, unlock

signal.alarm(15)  # rather than wait without end

def is_over(waiter):
    return select.select([waiter.done_descriptor], [], [], 10)[0] == [waiter.done_descriptor]

files_before = os.listdir("/proc/self/fd")
first, second, third = [os.open(sys.argv[1], os.O_RDWR | os.O_CREAT) for _ in range(3)]
print("shared", try_lock(first, SHARED), try_lock(second, SHARED), try_lock(third, EXCLUSIVE))
unlock(first)
unlock(second)
print("exclusive", try_lock(first, EXCLUSIVE), try_lock(second, SHARED))
with Waiter(second, SHARED) as waiter:
    print("waiting", waiter.is_done, waiter.has_lock())
    unlock(first)
    print("won", is_over(waiter), waiter.is_done, waiter.has_lock())
print("held", try_lock(first, EXCLUSIVE))
with Waiter(third, EXCLUSIVE) as waiter:
    os.close(third)
    os.close(second)
    print("given up", is_over(waiter), try_lock(first, EXCLUSIVE))
os.close(first)
print("closed", os.listdir("/proc/self/fd") == files_before)
"""


def test_another_process_takes_locks_waits_for_them_and_gives_up(tmp_path: Path) -> None:
    printed = run_python("-c", _TAKE_LOCKS, tmp_path / "lock", check=False)

    assert printed.stderr == ""
    assert printed.stdout.splitlines() == [
        "shared True True False",
        "exclusive True False",
        "waiting False False",
        "won True True True",
        "held False",
        "given up True True",
        "closed True",
    ]


# Trying


_TRY_EACH_PAIR = """
import os, signal, sys
from sampletool.kit.safety.flock import EXCLUSIVE, SHARED, try_lock

signal.alarm(15)  # rather than wait without end
for held in (EXCLUSIVE, SHARED):
    for wanted in (EXCLUSIVE, SHARED):
        first, second = [os.open(sys.argv[1], os.O_RDWR | os.O_CREAT) for _ in range(2)]
        print(try_lock(first, held), try_lock(second, wanted))
        os.close(first)
        os.close(second)
"""


def test_only_shared_locks_are_held_together(tmp_path: Path) -> None:
    printed = run_python("-c", _TRY_EACH_PAIR, tmp_path / "lock", check=False)

    assert printed.stderr == ""
    assert printed.stdout.splitlines() == [
        "True False",  # exclusive, exclusive
        "True False",  # exclusive, shared
        "True False",  # shared, exclusive
        "True True",  # shared, shared
    ]


@pytest.mark.parametrize("operation", [EXCLUSIVE, SHARED])
def test_a_lock_that_is_unlocked_is_free(descriptors: list[int], operation: int) -> None:
    first, second, _third = descriptors
    try_lock(first, operation)

    unlock(first)

    assert can_lock(second, EXCLUSIVE)


@pytest.mark.parametrize("operation", [EXCLUSIVE, SHARED])
def test_a_file_lock_of_another_program_is_kept_out(
    tmp_path: Path,
    descriptors: list[int],
    operation: int,
) -> None:
    first, _second, _third = descriptors
    try_lock(first, operation)

    with pytest.raises(Timeout):
        FileLock(tmp_path / "lock").acquire(timeout=0)


# Waiting


def is_readable(descriptor: int, seconds: float = 0) -> bool:
    readable, _writable, _exceptional = select([descriptor], [], [], seconds)
    return descriptor in readable


def test_a_waiter_gets_the_lock_when_it_is_released(descriptors: list[int]) -> None:
    holder, waiting, other = descriptors
    try_lock(holder, EXCLUSIVE)
    with Waiter(waiting, EXCLUSIVE) as waiter:
        assert not is_readable(waiter.done_descriptor)
        assert not waiter.has_lock()

        unlock(holder)

        assert is_readable(waiter.done_descriptor, PATIENCE_SECONDS)
        assert waiter.has_lock()
    assert not can_lock(other, SHARED)


def test_a_waiter_for_a_shared_lock_shares_it(descriptors: list[int]) -> None:
    holder, waiting, other = descriptors
    try_lock(holder, EXCLUSIVE)
    with Waiter(waiting, SHARED) as waiter:
        unlock(holder)
        assert is_readable(waiter.done_descriptor, PATIENCE_SECONDS)

    assert can_lock(other, SHARED)
    assert not can_lock(holder, EXCLUSIVE)


def test_a_lock_that_is_won_by_a_waiter_is_released_with_the_descriptor_of_its_caller(
    tmp_path: Path,
) -> None:
    with (tmp_path / "lock").open("w") as lock, Waiter(lock.fileno(), EXCLUSIVE) as waiter:
        assert is_readable(waiter.done_descriptor, PATIENCE_SECONDS)

    with (tmp_path / "lock").open("w") as next_lock:
        assert can_lock(next_lock.fileno(), EXCLUSIVE)


def test_a_lock_that_is_won_after_its_caller_has_given_up_is_released(
    tmp_path: Path,
    descriptors: list[int],
) -> None:
    holder, other, _third = descriptors
    try_lock(holder, EXCLUSIVE)
    with (tmp_path / "lock").open("w") as lock, Waiter(lock.fileno(), EXCLUSIVE) as waiter:
        lock.close()

        unlock(holder)

        assert is_readable(waiter.done_descriptor, PATIENCE_SECONDS)
    assert can_lock(other, EXCLUSIVE)


_GIVE_UP = """
import signal, sys
from sampletool.kit.safety.flock import EXCLUSIVE, Waiter

signal.alarm(15)  # rather than wait without end
with open(sys.argv[1], "w") as lock, Waiter(lock.fileno(), EXCLUSIVE) as waiter:
    print(waiter.has_lock())
"""


def test_a_process_that_has_given_up_exits_while_its_thread_still_waits(
    tmp_path: Path,
    descriptors: list[int],
) -> None:
    holder, _second, _third = descriptors
    try_lock(holder, EXCLUSIVE)

    completed = run_python("-c", _GIVE_UP, tmp_path / "lock", check=False)

    assert completed.returncode == 0
    assert completed.stdout == "False\n"


# Waiting that fails


def test_the_error_of_the_kernel_is_raised_to_who_asks(descriptors: list[int]) -> None:
    no_operation = 0
    with Waiter(descriptors[0], no_operation) as waiter:
        assert is_readable(waiter.done_descriptor, PATIENCE_SECONDS)

        with pytest.raises(OSError, match=os.strerror(errno.EINVAL)):
            waiter.has_lock()


def test_a_thread_that_cannot_be_started_is_an_error_of_the_wait(
    descriptors: list[int],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The limit of threads counts those of all processes of a user, so the error is not real."""

    def refuse(_thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", refuse)
    with Waiter(descriptors[0], EXCLUSIVE) as waiter:
        assert is_readable(waiter.done_descriptor)

        with pytest.raises(OSError, match="can't start new thread") as raised:
            waiter.has_lock()
    assert raised.value.errno == errno.EAGAIN


@contextmanager
def few_descriptors(more: int) -> Iterator[None]:
    """Let this process open only a few more descriptors."""
    next_descriptor = os.dup(0)
    os.close(next_descriptor)
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (next_descriptor + more, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@pytest.mark.parametrize("more", [0, 1, 2])
def test_a_waiter_that_cannot_be_made_leaves_no_descriptor_open(
    descriptors: list[int],
    more: int,
) -> None:
    before = os.listdir("/proc/self/fd")

    with few_descriptors(more), pytest.raises(OSError, match=os.strerror(errno.EMFILE)):
        Waiter(descriptors[0], EXCLUSIVE)

    assert os.listdir("/proc/self/fd") == before


def test_a_waiter_leaves_no_descriptor_open(descriptors: list[int]) -> None:
    before = set(os.listdir("/proc/self/fd"))

    with Waiter(descriptors[0], EXCLUSIVE) as waiter:
        assert is_readable(waiter.done_descriptor, PATIENCE_SECONDS)

    assert set(os.listdir("/proc/self/fd")) == before
