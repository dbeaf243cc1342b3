"""Runs a program while holding a lock, and again if it reports that its own lock is held.

The output of each attempt goes to files. Only the output of the last attempt is written to our
stdout and stderr. Otherwise, the caller would get the output of several attempts.
"""

import os
import random
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from errno import ENOENT
from functools import partial
from pathlib import Path

from ..kit.context import PATIENT_WAIT_SECONDS, Context
from ..kit.contract.errors import ExitStatus
from ..kit.contract.text import printable_lines
from ..kit.places import state_directory
from ..kit.program import env_variable
from ..kit.safety.children import TAIL_BYTES, Children
from ..kit.safety.errors import DeadlineExceeded, Interrupted
from ..kit.safety.lock import Hold
from ..kit.safety.private_directory import private_directory
from ..kit.stdout import STDERR, write_response
from .errors import ProgramNotRunnable
from .failure import parse_failure
from .given_stdin import save_stdin

_FIRST_PAUSE_SECONDS = 0.1
_MAX_PAUSE_SECONDS = 60

_MAX_RESPONSE_BYTES = 64 * 1024
"""How much of the output is read, from its end, to find its last line."""

_SIGNAL_BASE = 128
"""If signal 9 has killed a program, a shell reports the exit code 128 + 9."""


@dataclass(frozen=True)
class RetryLimits:
    """The limits for running a program again, after it has reported that its lock is held."""

    retries: int
    """How many times to try again after the first attempt."""
    max_seconds: float
    """No attempt starts later than this many seconds after the first one."""


@dataclass(frozen=True)
class FinishedRun:
    """How the program ended in its last attempt."""

    exit_code: int
    tries: int
    """How many attempts there were."""
    has_written_output: bool
    """Whether all of its output could be written to our stdout and stderr."""


@dataclass(frozen=True)
class OutputTail:
    """The end of what a program has printed."""

    stdout: str
    stderr: str
    missing_bytes: int
    """How much it had printed before."""


class RunStopped(Exception):
    """A signal or --timeout has stopped the program. The `__cause__` says which of them."""

    def __init__(self, output: OutputTail, tries: int) -> None:
        """Keep the end of the output, and the number of attempts."""
        super().__init__()
        self.output = output
        self.tries = tries


@dataclass(frozen=True)
class _ScratchFiles:
    """The files for the input and the output of the program."""

    stdin: Path | None
    """The input of every attempt, or None if the program gets no input."""
    stdout: Path
    stderr: Path


def run_serialized(
    context: Context,
    argv: list[str],
    lock_name: str,
    limits: RetryLimits,
    *,
    passes_stdin: bool,
) -> FinishedRun:
    """Run a program while holding a lock, then write its output. Return how the program ended.

    All runs with the same `lock_name` take turns, whichever workspace they are in. If the program
    reports that a lock of its own is held, run it again within the `limits`.

    Raise RunStopped if a signal or --timeout ends the program.
    """
    lock_directory = private_directory(private_directory(state_directory()) / "locks")
    lock_path = lock_directory / f"run-{lock_name}.lock"
    with _scratch_files(context, passes_stdin=passes_stdin) as scratch:
        with context.hold(lock_path, lock_name, "exclusive", PATIENT_WAIT_SECONDS) as hold:
            run_once = partial(_run_once, context, argv, hold, lock_path, scratch)
            exit_code, tries = _run_with_retries(context, run_once, limits, lock_name, scratch)
        # The lock is released now, so other runs do not wait until our caller has read the output.
        has_written_output = _pass_output_on(context, scratch)
        return FinishedRun(exit_code, tries, has_written_output)


def _run_with_retries(
    context: Context,
    run_once: Callable[[], int],
    limits: RetryLimits,
    lock_name: str,
    scratch: _ScratchFiles,
) -> tuple[int, int]:
    """Run the program again and again, as long as `pause_before_retry` and the limits allow it.

    Return the exit code of the last attempt, and the number of attempts. Raise RunStopped if a
    signal or --timeout ends an attempt.
    """
    give_up_at = time.monotonic() + limits.max_seconds
    tries = 0
    while True:
        tries += 1
        try:
            exit_code = run_once()
        except (Interrupted, DeadlineExceeded) as error:
            # The program has been terminated. So this is all that it has printed.
            raise RunStopped(_read_output_tail(scratch), tries) from error
        if exit_code == 0 or tries > limits.retries:
            return exit_code, tries
        pause_seconds = pause_before_retry(scratch.stdout, exit_code, tries)
        if pause_seconds is None or time.monotonic() + pause_seconds > give_up_at:
            return exit_code, tries
        context.progress(f"{lock_name}: its lock is held; trying again in {pause_seconds:.1f} s")
        context.signals.wait(pause_seconds)
        context.signals.check()


@contextmanager
def _scratch_files(context: Context, *, passes_stdin: bool) -> Iterator[_ScratchFiles]:
    """Yield the files for a run, in a directory that is removed at the end of the block."""
    directory = private_directory(context.session_directory / context.request_id)
    try:
        stdin = None
        if passes_stdin:
            stdin = directory / "stdin"
            save_stdin(stdin, context.signals)
        yield _ScratchFiles(stdin=stdin, stdout=directory / "stdout", stderr=directory / "stderr")
    finally:
        shutil.rmtree(directory, ignore_errors=True)


def _run_once(
    context: Context,
    argv: list[str],
    hold: Hold,
    lock_path: Path,
    scratch: _ScratchFiles,
) -> int:
    """Run the program once, and return its exit code as a shell reports it."""
    # Remove the stderr of the previous attempt. Its stdout is overwritten below.
    scratch.stderr.unlink(missing_ok=True)
    stdin_path = os.devnull if scratch.stdin is None else scratch.stdin
    with (
        open(stdin_path, "rb") as stdin,
        scratch.stdout.open("wb") as stdout,
        # The program inherits the lock. If we are killed, the lock is held until it exits.
        Children(context.signals, hold.descriptors, [lock_path]) as children,
    ):
        try:
            children.start(
                argv[0],
                argv,
                cwd=context.cwd,
                env={**os.environ, env_variable("SESSION_ID"): context.session_id},
                make_log_path=lambda: scratch.stderr,
                stdin=stdin.fileno(),
                stdout=stdout.fileno(),
            )
        except OSError as error:
            reason = str(error.strerror).lower()
            if error.errno == ENOENT:
                # The program was found before, so the missing file is its interpreter.
                reason = "its interpreter does not exist"
            raise ProgramNotRunnable(command=argv[0], reason=reason) from None
        child_exit = children.next_exit()
    assert child_exit is not None
    for pid in children.strays:
        context.warn("STRAY_ENDED", f"The program had left process {pid} running. It was killed.")
    if child_exit.exit_code < 0:
        return _SIGNAL_BASE - child_exit.exit_code
    return child_exit.exit_code


def pause_before_retry(output: Path, exit_code: int, tries: int) -> float | None:
    """Return how many seconds to wait before the next attempt, or None if there must be none.

    The program may run again only if it reports that its own lock is held: it exits with 75, or the
    last line of its `output` is a JSON response with the code LOCK_HELD. After any other failure,
    it may have done part of its work, and must not do this work twice.

    The pause is the one that the program asks for. Otherwise, it doubles with each of the `tries`
    that have failed.
    """
    last_line = _read_last_line(output)
    # Search only the outermost object and its `error`. A LOCK_HELD deeper inside may be about
    # another lock.
    failure = parse_failure(
        exit_code,
        last_line,
        stderr="",
        shown_output="",
        other_pids=(),
        max_depth=1,
    )
    if exit_code != ExitStatus.LOCK_HELD and failure.code != "LOCK_HELD":
        return None
    if failure.retry_after_seconds is not None:
        return min(failure.retry_after_seconds, _MAX_PAUSE_SECONDS)
    # The random factor keeps many callers from trying again at the same moment.
    pause_seconds: float = _FIRST_PAUSE_SECONDS * 2**tries * random.uniform(1, 1.5)
    return min(pause_seconds, _MAX_PAUSE_SECONDS)


def _read_last_line(output: Path) -> str:
    """Return the last line of a file, or an empty text if the file is empty."""
    end = output.read_bytes()[-_MAX_RESPONSE_BYTES:]
    lines = end.splitlines()
    if not lines:
        return ""
    return lines[-1].decode(errors="replace")


def _read_output_tail(scratch: _ScratchFiles) -> OutputTail:
    """Return the end of the output of the last attempt."""
    tails = []
    missing_bytes = 0
    for path in (scratch.stdout, scratch.stderr):
        # The file of stderr is created when the program prints something there.
        content = path.read_bytes() if path.exists() else b""
        tail = content[-TAIL_BYTES:]
        missing_bytes += len(content) - len(tail)
        tails.append(printable_lines(tail.decode(errors="backslashreplace")))
    stdout, stderr = tails
    return OutputTail(stdout, stderr, missing_bytes)


def _pass_output_on(context: Context, scratch: _ScratchFiles) -> bool:
    """Write the output of the last attempt to our stdout and stderr.

    Return whether all of it could be written.
    """
    stdout = context.take_stdout()
    stderr_content = b""
    # The file exists only if the program has printed something to stderr.
    if scratch.stderr.exists():
        stderr_content = scratch.stderr.read_bytes()
    if stderr_content and not stderr_content.endswith(b"\n"):
        # Our own response follows on stderr, and has to begin on a new line.
        stderr_content += b"\n"
    # write_response() returns the 0 that it gets, unless writing fails.
    failures = 0
    failures += write_response(STDERR, stderr_content, 0, context.signals)
    failures += write_response(stdout, scratch.stdout.read_bytes(), 0, context.signals)
    os.close(stdout)
    return failures == 0
