"""Runs any program, one at a time for each lock, and again while it reports that its lock is held.

The output of an attempt is kept until it is clear that it was the last one. Otherwise, a caller
would get the output of several attempts.
"""

import os
import random
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from errno import ENOENT
from itertools import count
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
from .failure import understand
from .given_stdin import save_stdin

_FIRST_PAUSE_SECONDS = 0.1
_MAX_PAUSE_SECONDS = 60

_MAX_RESPONSE_BYTES = 64 * 1024
"""How much of the output is searched for a response: the last line of this."""

_SIGNAL_BASE = 128


@dataclass(frozen=True)
class Attempts:
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
class _Scratch:
    """The files of a run."""

    stdin: Path | None
    stdout: Path
    stderr: Path


def run_serialized(
    context: Context,
    argv: list[str],
    lock_name: str,
    attempts: Attempts,
    *,
    passes_stdin: bool,
) -> FinishedRun:
    """Run a program while holding a lock, then write its output. Return how it ended."""
    lock_directory = private_directory(private_directory(state_directory()) / "locks")
    lock_path = lock_directory / f"run-{lock_name}.lock"
    with _scratch_files(context, passes_stdin=passes_stdin) as scratch:
        with context.hold(lock_path, lock_name, "exclusive", PATIENT_WAIT_SECONDS) as hold:
            give_up_at = time.monotonic() + attempts.max_seconds
            for tries in count(1):
                exit_code = _run_once(context, argv, hold, lock_path, scratch)
                pause_seconds = None
                if exit_code != 0:
                    pause_seconds = pause_before_retry(scratch.stdout, exit_code, tries)
                if pause_seconds is None or tries > attempts.retries:
                    break
                if time.monotonic() + pause_seconds > give_up_at:
                    break
                context.progress(
                    f"{lock_name}: its lock is held; trying again in {pause_seconds:.1f} s"
                )
                context.signals.wait(pause_seconds)
                context.signals.check()
        has_written_output = _pass_output_on(context, scratch)
        return FinishedRun(exit_code, tries, has_written_output)


@contextmanager
def _scratch_files(context: Context, *, passes_stdin: bool) -> Iterator[_Scratch]:
    """Yield the files of a run, in a directory that is removed afterwards."""
    directory = private_directory(context.session_directory / context.request_id)
    try:
        stdin = None
        if passes_stdin:
            stdin = directory / "stdin"
            save_stdin(stdin, context.signals)
        yield _Scratch(stdin=stdin, stdout=directory / "stdout", stderr=directory / "stderr")
    finally:
        shutil.rmtree(directory, ignore_errors=True)


def _run_once(
    context: Context,
    argv: list[str],
    hold: Hold,
    lock_path: Path,
    scratch: _Scratch,
) -> int:
    """Run the program once, and return its exit code as a shell reports it."""
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
    """Return how many seconds to wait before the next attempt, or None if there must be none.

    There is another attempt only if the program exited with 75, or if the last line of its output
    is a response with the code LOCK_HELD. Anything else in a response may be about another lock,
    and a program that has done something must not do it again.
    """
    last_lines = output.read_bytes()[-_MAX_RESPONSE_BYTES:].splitlines()[-1:]
    last_line = b"".join(last_lines).decode(errors="replace")
    failure = understand(exit_code, last_line, "", output="", other_pids=(), depth=1)
    if exit_code != ExitStatus.LOCK_HELD and failure.code != "LOCK_HELD":
        return None
    # With a random part, so that many callers do not come back at the same moment.
    pause_seconds: float = _FIRST_PAUSE_SECONDS * 2**tries * random.uniform(1, 1.5)
    if failure.retry_after_seconds is not None:
        pause_seconds = failure.retry_after_seconds
    return min(pause_seconds, _MAX_PAUSE_SECONDS)


def _pass_output_on(context: Context, scratch: _Scratch) -> bool:
    """Write the output of the program. Return whether all of it could be written."""
    stdout = context.take_stdout()
    stderr_content = b""
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
