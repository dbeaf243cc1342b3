"""Runs any program, one at a time for each lock, and again while it reports that its lock is held.

The output of an attempt is kept until it is clear that it was the last one. Otherwise, a caller
would get the output of several attempts.
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
from ..kit.places import state_directory
from ..kit.program import env_variable
from ..kit.safety.children import Children
from ..kit.safety.lock import Hold
from ..kit.safety.private_directory import private_directory
from ..kit.stdout import STDERR, write_response
from .errors import ProgramNotRunnable
from .failure import parse_failure
from .given_stdin import save_stdin

_FIRST_PAUSE_SECONDS = 0.1
_MAX_PAUSE_SECONDS = 60

_MAX_RESPONSE_BYTES = 64 * 1024
"""How much of the output is searched for a response: the last line of this."""

_SIGNAL_BASE = 128
"""A shell reports a program that signal 9 has killed with the exit code 128 + 9."""


@dataclass(frozen=True)
class RetryLimits:
    """When to stop trying again."""

    retries: int
    """How often to try again after the first attempt."""
    max_seconds: float
    """After this long, no attempt starts."""


@dataclass(frozen=True)
class FinishedRun:
    """The last attempt."""

    exit_code: int
    tries: int
    has_written_output: bool


@dataclass(frozen=True)
class _ScratchFiles:
    """The input and the output of an attempt."""

    stdin: Path | None
    """The input of every attempt. None means that the program gets no input."""
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
    """Run a program while holding a lock, then write its output. Return how it ended."""
    lock_directory = private_directory(private_directory(state_directory()) / "locks")
    lock_path = lock_directory / f"run-{lock_name}.lock"
    with _scratch_files(context, passes_stdin=passes_stdin) as scratch:
        with context.hold(lock_path, lock_name, "exclusive", PATIENT_WAIT_SECONDS) as hold:
            run_once = partial(_run_once, context, argv, hold, lock_path, scratch)
            exit_code, tries = _run_with_retries(context, run_once, limits, lock_name, scratch)
        # Others need not wait until our caller has read the output.
        has_written_output = _pass_output_on(context, scratch)
        return FinishedRun(exit_code, tries, has_written_output)


def _run_with_retries(
    context: Context,
    run_once: Callable[[], int],
    limits: RetryLimits,
    lock_name: str,
    scratch: _ScratchFiles,
) -> tuple[int, int]:
    """Run the program until it need not or may not be tried again.

    Return the exit code of the last attempt, and the number of attempts.
    """
    give_up_at = time.monotonic() + limits.max_seconds
    tries = 0
    while True:
        exit_code = run_once()
        tries += 1
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
    """Yield the files of a run, in a directory that is removed afterwards."""
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
    # The file of the previous attempt. The file of stdout is overwritten below.
    scratch.stderr.unlink(missing_ok=True)
    stdin_path = os.devnull if scratch.stdin is None else scratch.stdin
    with (
        open(stdin_path, "rb") as stdin,
        scratch.stdout.open("wb") as stdout,
        # The program carries the lock: if we are killed with -9, it keeps the lock until it exits.
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
                # The program itself was found before.
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
    """Return how many seconds to wait before the next attempt. `tries` attempts have failed.

    Return None if the program must not be tried again. It is tried again only if it exited with 75,
    or if the last line of its output is a response with the code LOCK_HELD. A program that failed
    for another reason may have done something, and must not do it again.
    """
    last_line = _read_last_line(output)
    # With a depth of 1, a code deeper in the response does not count: it may be about another lock.
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
    # The random part keeps many callers from coming back at the same moment.
    pause_seconds: float = _FIRST_PAUSE_SECONDS * 2**tries * random.uniform(1, 1.5)
    return min(pause_seconds, _MAX_PAUSE_SECONDS)


def _read_last_line(output: Path) -> str:
    """Return the last line of a file. It is empty if the file is."""
    end = output.read_bytes()[-_MAX_RESPONSE_BYTES:]
    lines = end.splitlines()
    if not lines:
        return ""
    return lines[-1].decode(errors="replace")


def _pass_output_on(context: Context, scratch: _ScratchFiles) -> bool:
    """Write the output of the last attempt. Return whether all of it could be written."""
    stdout = context.take_stdout()
    stderr_content = b""
    # The file is created when the program prints something to stderr.
    if scratch.stderr.exists():
        stderr_content = scratch.stderr.read_bytes()
    if stderr_content and not stderr_content.endswith(b"\n"):
        # Our own response follows on stderr, and begins a line.
        stderr_content += b"\n"
    failures = 0
    failures += write_response(STDERR, stderr_content, 0, context.signals)
    failures += write_response(stdout, scratch.stdout.read_bytes(), 0, context.signals)
    os.close(stdout)
    return failures == 0
