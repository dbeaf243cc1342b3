"""The program of docs/kit/one-file.md loses nothing, and leaves nothing behind.

The tests run it in real processes. Most of them step a process: it stops before each operation on a
file of its directory, and the test decides what happens there (see tracer.py). So each test goes
through every step, not only through those that luck selects.
"""

import ast
import errno
import json
import os
import signal
import stat
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest
from filelock import UnixFileLock

from sampletool.kit.project import ROOT
from sampletool.kit.stepping.tracer import Ended, Event, SteppedProcess
from sampletool.kit.testing.forked import fork_server, run_python, start_python
from sampletool.kit.testing.waiting import wait_until

_PROGRAM = ROOT / "docs" / "kit" / "one_file" / "stock.py"
_MAX_LINES = 128
_MANY_ADDITIONS_SECONDS = 240
"""The timeout for 200 additions. They take 3 s, and next to sixteen busy loops they took 52 s."""
_LOCK = "with UnixFileLock(LOCK, timeout=lock_timeout, fallback_to_soft=False):"
_KEEP_SIGNALS_BACK = "signal.pthread_sigmask(signal.SIG_BLOCK, STOP_SIGNALS)"
_LET_SIGNALS_IN = "signal.pthread_sigmask(signal.SIG_SETMASK, mask)"

_ADD_MANY = """
import sys
sys.dont_write_bytecode = True
sys.path.insert(0, sys.argv.pop(1))
times = int(sys.argv.pop(1))
import stock
for _ in range(times):
    try:
        stock.main()
    except SystemExit as exited:
        assert not exited.code
"""
_RUN_WITH_CTRL_C_IGNORED = """
import runpy, signal, sys
signal.signal(signal.SIGINT, signal.SIG_IGN)
runpy.run_path(sys.argv.pop(1), run_name="__main__")
"""


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    """Return the directory that the program runs in. There is one screw in stock."""
    directory = tmp_path / "shop"
    directory.mkdir()
    (directory / "stock.json").write_text('{"screw": 1}')
    return directory


def run(
    directory: Path, *arguments: str, program: Path = _PROGRAM
) -> subprocess.CompletedProcess[str]:
    """Run the program to its end."""
    return run_python(program, *arguments, cwd=directory, check=False)


def step(directory: Path, *arguments: str | Path, program: Path = _PROGRAM) -> SteppedProcess:
    """Start the program. It stops before each operation on a file of the directory."""
    command = [str(argument) for argument in (program, *arguments)]
    return SteppedProcess(command, watch=directory, cwd=directory, fork_server=fork_server())


def each_step(directory: Path, *arguments: str) -> Iterator[SteppedProcess]:
    """Yield a new process for each step of the program. It has stopped before that step.

    Before each process starts, there is one screw in stock.
    """
    number_of_steps = 0
    while True:
        (directory / "stock.json").write_text('{"screw": 1}')
        with step(directory, *arguments) as stepped:
            for _ in range(number_of_steps):
                stepped.step()
            if stepped.next_event is None:
                break
            yield stepped
        number_of_steps += 1
    # The lock, the temporary file, the rename and the flushes are more steps than this.
    assert number_of_steps >= 8


def opens_temporary_file(event: Event) -> bool:
    """Return whether the process has read the file, and is about to write the new one."""
    return event.name == "open" and event.path.endswith(".tmp")


def program_without(mechanism: str, replacement: str, directory: Path) -> Path:
    """Return a copy of the program in which a mechanism is replaced."""
    source = _PROGRAM.read_text()
    assert source.count(mechanism) == 1
    copy = directory.parent / "stock_without.py"
    copy.write_text(source.replace(mechanism, replacement))
    return copy


def screws(directory: Path) -> int:
    """Return the number of screws in stock. Raise an error if the file is not complete."""
    number = json.loads((directory / "stock.json").read_text())["screw"]
    assert isinstance(number, int)
    return number


def has_temporary_file(directory: Path) -> bool:
    return set(os.listdir(directory)) - {"stock.json", "stock.json.lock"} != set()


@contextmanager
def held_lock(directory: Path) -> Iterator[None]:
    """Hold the lock in this process until the block ends."""
    with UnixFileLock(directory / "stock.json.lock"):
        yield


def test_200_additions_of_8_processes_at_once_are_all_counted(directory: Path) -> None:
    # filelock serves those that wait in no particular order, so one of them may wait for long.
    command = ["add", "screw", "--lock-timeout", str(_MANY_ADDITIONS_SECONDS)]
    processes = []
    for _ in range(8):
        process = start_python("-c", _ADD_MANY, _PROGRAM.parent, "25", *command, cwd=directory)
        processes.append(process)

    for process in processes:
        _, stderr = process.communicate(timeout=_MANY_ADDITIONS_SECONDS)
        assert (process.returncode, stderr) == (0, b"")

    assert screws(directory) == 1 + 200


def test_an_addition_between_the_read_and_the_write_of_another_has_to_wait(
    directory: Path,
) -> None:
    with step(directory, "add", "screw") as first:
        first.run_until(opens_temporary_file)

        second = run(directory, "add", "screw", "--lock-timeout", "0")
        ended = first.finish()

    assert second.returncode == os.EX_TEMPFAIL
    assert ended.stdout == b"screw: 2\n"
    assert run(directory, "add", "screw").stdout == "screw: 3\n"


def test_without_the_lock_this_addition_is_lost(directory: Path) -> None:
    naive = program_without(_LOCK, "if True:", directory)
    with step(directory, "add", "screw", program=naive) as first:
        first.run_until(opens_temporary_file)

        second = run(directory, "add", "screw", "--lock-timeout", "0", program=naive)
        ended = first.finish()

    assert second.stdout == "screw: 2\n"
    assert ended.stdout == b"screw: 2\n"
    assert screws(directory) == 2


def test_kill_9_before_any_step_leaves_the_old_or_the_new_file_and_the_next_run_works(
    directory: Path,
) -> None:
    found = set()

    for stepped in each_step(directory, "add", "screw"):
        stepped.kill()
        ended = stepped.finish()

        # A count is printed only when it is on the disk. No step comes after that.
        assert ended.stdout == b""
        number = screws(directory)
        found.add(number)
        next_call = run(directory, "add", "screw", "--lock-timeout", "0")
        assert next_call.stdout == f"screw: {number + 1}\n"
        assert not has_temporary_file(directory)

    assert found == {1, 2}


@pytest.mark.parametrize("number", [signal.SIGHUP, signal.SIGINT, signal.SIGTERM])
def test_a_signal_before_any_step_kills_the_process_and_leaves_no_temporary_file(
    directory: Path, number: signal.Signals
) -> None:
    found = set()

    for stepped in each_step(directory, "add", "screw"):
        stepped.signal(number)
        ended = stepped.finish()

        assert (ended.status, ended.stderr) == (-number, b"")
        assert not has_temporary_file(directory)
        assert ended.stdout == b""
        found.add(screws(directory))
        # The lock is free.
        assert run(directory, "add", "screw", "--lock-timeout", "0").returncode == 0

    assert found == {1, 2}


def test_if_signals_are_not_kept_back_a_temporary_file_stays(directory: Path) -> None:
    naive = program_without(_KEEP_SIGNALS_BACK, "set()", directory)
    with step(directory, "add", "screw", program=naive) as stepped:
        stepped.run_until("os.fsync")

        stepped.signal(signal.SIGINT)
        stepped.finish()

    assert has_temporary_file(directory)


@pytest.mark.parametrize("number", [signal.SIGHUP, signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_the_wait_for_the_lock_at_once(
    directory: Path, number: signal.Signals
) -> None:
    with held_lock(directory), step(directory, "add", "screw") as stepped:
        # The first attempt to take the lock has failed, so it waits and tries again.
        stepped.run_until("fcntl.flock", times=2)

        after_the_signal = stepped.signal(number)
        ended = stepped.finish()

    assert after_the_signal is None
    assert ended == Ended(status=-number, stdout=b"", stderr=b"")
    assert run(directory, "add", "screw", "--lock-timeout", "0").stdout == "screw: 2\n"


@contextmanager
def full_pipe() -> Iterator[int]:
    """Yield the writing end of a pipe that is full and that nobody reads, until the block ends."""
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    with suppress(BlockingIOError):
        while True:
            os.write(writer, bytes(4096))
    os.set_blocking(writer, True)
    try:
        yield writer
    finally:
        os.close(reader)
        os.close(writer)


@pytest.mark.parametrize("number", [signal.SIGHUP, signal.SIGINT, signal.SIGTERM])
def test_a_signal_kills_a_process_whose_output_nobody_reads(
    directory: Path, number: signal.Signals
) -> None:
    with full_pipe() as stdout:
        process = start_python(_PROGRAM, "add", "screw", cwd=directory, stdout=stdout)
        wait_until(lambda: screws(directory) == 2)

        process.send_signal(number)
        process.communicate(timeout=_MANY_ADDITIONS_SECONDS)

    assert process.returncode == -number


def test_if_signals_are_not_let_in_again_such_a_process_ignores_them(directory: Path) -> None:
    naive = program_without(_LET_SIGNALS_IN, "pass", directory)
    with full_pipe() as stdout:
        process = start_python(naive, "add", "screw", cwd=directory, stdout=stdout)
        wait_until(lambda: screws(directory) == 2)

        process.send_signal(signal.SIGINT)

        # The kernel holds the signal back, although the file has been written.
        wait_until(lambda: is_pending(process.pid, signal.SIGINT))
        process.kill()
        process.communicate(timeout=_MANY_ADDITIONS_SECONDS)


def is_pending(pid: int, number: signal.Signals) -> bool:
    """Return whether the kernel holds this signal back from the process."""
    status = Path(f"/proc/{pid}/status").read_text()
    pending = 0
    for line in status.splitlines():
        if line.startswith(("SigPnd:", "ShdPnd:")):
            pending |= int(line.partition(":")[2], 16)
    return bool(pending & 1 << (number - 1))


def test_an_addition_that_is_saved_but_cannot_be_printed_is_reported_as_saved(
    directory: Path,
) -> None:
    with Path("/dev/full").open("wb") as full_device:
        process = start_python(_PROGRAM, "add", "screw", cwd=directory, stdout=full_device)
        _, stderr = process.communicate(timeout=_MANY_ADDITIONS_SECONDS)

    # It is 1, or 120 if Python tries to print again when it exits.
    assert process.returncode in (1, 120)
    message = b"Error: The change was saved, but the count cannot be printed: [Errno 28] "
    assert stderr.startswith(message)
    assert screws(directory) == 2


def test_an_addition_whose_flush_fails_after_the_rename_is_reported_as_saved(
    directory: Path,
) -> None:
    with step(directory, "add", "screw") as stepped:
        stepped.run_until("os.fsync", times=2)

        stepped.fail(errno.EIO)
        ended = stepped.finish()

    assert ended.status == 1
    assert ended.stdout == b""
    assert ended.stderr.startswith(
        b"Error: The change was saved, but a power cut can undo it: [Errno 5] Input/output error"
    )
    assert screws(directory) == 2


def test_where_ctrl_c_is_ignored_it_stays_ignored(directory: Path) -> None:
    with step(
        directory, _RUN_WITH_CTRL_C_IGNORED, _PROGRAM, "add", "screw", program=Path("-c")
    ) as stepped:
        stepped.run_until(opens_temporary_file)

        stepped.signal(signal.SIGINT)
        ended = stepped.finish()

    assert ended == Ended(status=0, stdout=b"screw: 2\n", stderr=b"")


def test_a_lock_that_stays_held_is_an_error_that_says_what_to_do(directory: Path) -> None:
    with held_lock(directory):
        ran = run(directory, "add", "screw", "--lock-timeout", "0.01")

    assert ran.returncode == os.EX_TEMPFAIL == 75
    assert ran.stdout == ""
    assert ran.stderr == (
        "Error: Another process holds stock.json.lock. Nothing was changed.\n"
        "Try again. This lists the processes that have it open: fuser stock.json.lock\n"
    )
    assert screws(directory) == 1


def test_a_file_system_without_kernel_locks_is_an_error(directory: Path) -> None:
    with step(directory, "add", "screw") as stepped:
        stepped.run_until("fcntl.flock")

        stepped.fail(errno.ENOSYS)
        ended = stepped.finish()

    assert ended.status == 1
    assert ended.stderr.startswith(b"Error: [Errno 38] Function not implemented")
    assert screws(directory) == 1


def test_reading_does_not_wait_for_the_lock(directory: Path) -> None:
    with held_lock(directory):
        ran = run(directory, "list")

    assert (ran.returncode, ran.stdout) == (0, "screw: 1\n")


def test_the_content_is_flushed_before_the_rename_and_the_directory_after_it(
    directory: Path,
) -> None:
    with step(directory, "add", "screw") as stepped:
        while stepped.next_event is not None:
            stepped.step()

    order = []
    for event in stepped.past_events:
        if event.name in ("os.fsync", "os.rename"):
            order.append((event.name, Path(event.path).name))
    assert order == [
        ("os.fsync", "stock.json.tmp"),
        ("os.rename", "stock.json"),
        ("os.fsync", "shop"),
    ]


@pytest.mark.parametrize("failing_step", ["os.fsync", "os.rename"])
def test_a_full_disk_leaves_the_old_file_and_no_temporary_one(
    directory: Path, failing_step: str
) -> None:
    with step(directory, "add", "screw") as stepped:
        stepped.run_until(failing_step)

        stepped.fail(errno.ENOSPC)
        ended = stepped.finish()

    assert ended.status == 1
    assert ended.stderr.startswith(b"Error: [Errno 28] No space left on device")
    assert ended.stderr.endswith(b". Nothing was changed.\n")
    assert screws(directory) == 1
    assert not has_temporary_file(directory)


def test_the_first_addition_creates_the_file(directory: Path) -> None:
    (directory / "stock.json").unlink()
    assert run(directory, "list").stdout == ""

    run(directory, "add", "nut", "--amount", "20")

    assert run(directory, "list").stdout == "nut: 20\n"


def test_the_permissions_of_the_file_are_kept(directory: Path) -> None:
    (directory / "stock.json").chmod(0o600)

    run(directory, "add", "screw")

    assert stat.S_IMODE((directory / "stock.json").stat().st_mode) == 0o600


def test_a_link_with_the_name_of_the_temporary_file_is_not_followed(directory: Path) -> None:
    victim = directory.parent / "victim"
    victim.write_text("precious")
    (directory / "stock.json.tmp").symlink_to(victim)

    ran = run(directory, "add", "screw")

    assert ran.returncode == 0
    assert victim.read_text() == "precious"
    assert screws(directory) == 2


def test_a_link_that_is_planted_just_before_the_write_is_not_followed(directory: Path) -> None:
    victim = directory.parent / "victim"
    victim.write_text("precious")
    with step(directory, "add", "screw") as stepped:
        stepped.run_until(opens_temporary_file)

        (directory / "stock.json.tmp").symlink_to(victim)
        ended = stepped.finish()

    assert ended.status == 1
    assert victim.read_text() == "precious"
    assert screws(directory) == 1


@pytest.mark.parametrize(
    "content", [b"{", b"", b"[1]", b'{"a": "b"}', b'{"a": true}', b'{"a": 1.5}', b'{"\xff": 1}']
)
def test_a_file_that_contains_no_counts_is_refused_and_stays_as_it_is(
    directory: Path, content: bytes
) -> None:
    (directory / "stock.json").write_bytes(content)

    ran = run(directory, "add", "screw")

    assert ran.returncode == 1
    assert ran.stderr.startswith("Error: stock.json is not valid: ")
    assert ran.stderr.endswith(". Nothing was changed.\n")
    assert ran.stderr.count("\n") == 1
    assert (directory / "stock.json").read_bytes() == content


def test_the_program_stays_short_and_needs_only_typer_and_filelock() -> None:
    source = _PROGRAM.read_text()
    imported: set[str] = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            imported.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.module is not None
            imported.add(node.module)

    not_in_the_library = set()
    for name in imported:
        if name.partition(".")[0] not in sys.stdlib_module_names:
            not_in_the_library.add(name)

    assert not_in_the_library == {"typer", "filelock"}
    assert source.count("\n") <= _MAX_LINES
