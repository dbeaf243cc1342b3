"""Run any program while holding a lock, and again if it reports that its own lock is held."""

import os
import re
import shutil
from dataclasses import dataclass
from typing import Annotated

import typer

from ...kit.context import Context
from ...kit.contract.command_spec import CommandSpec
from ...kit.contract.duration import parse_limit
from ...kit.contract.errors import ProgramNotFound, ToolError
from ...kit.contract.expected import EXPECTED, to_tool_error
from ...kit.contract.mistyped import check_name
from ...kit.contract.response import UNTRUSTED
from ...kit.contract.text import quoted
from ...kit.global_options import DryRunOption, checked_by
from ..errors import OutputLost, ProgramFailed, ProgramNotRunnable
from ..given_stdin import has_unread_stdin, refuse_unread_stdin
from ..serialized_run import RetryLimits, RunStopped, run_serialized

spec = CommandSpec(
    effect="files",
    errors=(ProgramNotFound, ProgramNotRunnable, ProgramFailed, OutputLost),
    locks=("session", "program"),
    reads=("stdin",),
    idempotent=False,
    runs_what_it_is_given=True,
    takes_stdout=True,
    examples=("run-safely --dry-run --lock git --until 2m -- git gc",),
)

_LOCK_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}", re.ASCII)


@dataclass(frozen=True)
class SerializedRun:
    """A finished run of the program, or the forecast of a run for `--dry-run`.

    This response goes to stderr, because stdout belongs to the program.
    """

    program: str
    lock: str
    status: int | None = None
    """The exit code of the program, or None in a forecast."""
    tries: int = 0
    """How many times the program was run."""
    stdout_tail: Annotated[str | None, UNTRUSTED] = None
    """The end of the program's stdout, if a signal or --timeout has stopped it."""
    stderr_tail: Annotated[str | None, UNTRUSTED] = None
    missing_bytes: int | None = None
    """How much the program had printed before these ends."""

    @property
    def truncated(self) -> bool:
        """Whether the program had printed more than the response has."""
        return bool(self.missing_bytes)

    def lines(self) -> list[str]:
        """Return a line about a forecast or about several attempts, or the output until a stop."""
        if self.stdout_tail is not None and self.stderr_tail is not None:
            return [*self.stdout_tail.splitlines(), *self.stderr_tail.splitlines()]
        if self.status is None:
            return [f"{self.program} would run while holding the lock {self.lock}."]
        if self.tries == 1:
            return []
        return [f"{self.program} exited with {self.status} after {self.tries} attempts."]


def check_lock_name(text: str) -> None:
    """Raise ValueError if the text cannot be the name of a lock."""
    check_name(text)
    if not _LOCK_NAME.fullmatch(text):
        raise ValueError(
            f"{quoted(text)} must have 1 to 64 letters, digits, dots, - or _, "
            "and begin with a letter or a digit"
        )


def default_lock_name(program: str) -> str:
    """Return the lock name for a program that is run without `--lock`: its file name."""
    name = re.sub(r"[^A-Za-z0-9._-]", "-", os.path.basename(program))
    # A name must begin with a letter or a digit.
    name = name.lstrip("-.")
    return name[:64] or "program"


def _check_success(run: SerializedRun, *, has_written_output: bool) -> None:
    """Raise ProgramFailed or OutputLost if the run did not succeed.

    The response of the error contains the run, too.
    """
    if run.status:
        failed = ProgramFailed(program=run.program, program_exit_code=run.status)
        raise failed.with_data(run)
    if not has_written_output:
        raise OutputLost(program=run.program).with_data(run)


def _to_error(stopped: RunStopped, program: str, lock_name: str) -> ToolError:
    """Return the error about the signal or the timeout, with the end of the output as data."""
    reason = stopped.__cause__
    assert isinstance(reason, EXPECTED)
    output = stopped.output
    run = SerializedRun(
        program,
        lock_name,
        tries=stopped.tries,
        stdout_tail=output.stdout,
        stderr_tail=output.stderr,
        missing_bytes=output.missing_bytes,
    )
    return to_tool_error(reason).with_data(run)


def command(
    ctx: typer.Context,
    argv: Annotated[
        list[str],
        typer.Argument(metavar="-- COMMAND...", help="Program to run, with its arguments."),
    ],
    lock: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            callback=checked_by(check_lock_name),
            help="Hold the lock with this name while the program runs.",
            show_default="the name of the program",
        ),
    ] = None,
    stdin: Annotated[
        bool,
        typer.Option(
            "--stdin",
            help="Pass stdin to the program. Without this option, its stdin is empty.",
        ),
    ] = False,
    retries: Annotated[
        int,
        typer.Option(
            min=0,
            max=1000,
            metavar="N",
            help="Retry at most N times if the program's own lock is held.",
        ),
    ] = 5,
    until: Annotated[
        str,
        typer.Option(
            metavar="DURATION",
            callback=checked_by(parse_limit),
            help="Stop retrying after this time.",
        ),
    ] = "1m",
    dry_run: DryRunOption = False,
) -> SerializedRun:
    """Run another program so that only one copy runs at a time.

    Use this for programs that lose data when several copies of them run at once. To find out
    whether a program does, use `audit`.

    While another command holds the same lock, this one waits, for up to 10 seconds unless you set
    --lock-timeout. It exits with the exit code of the program. If the program reports that its own
    lock is held (error LOCK_HELD, or exit code 75), it is started again.

    The output of the program appears when it has exited. If --timeout or a signal stops it first,
    the response has the last 4 KiB of its stdout and of its stderr.
    """
    context: Context = ctx.obj
    program = shutil.which(argv[0])
    if program is None:
        raise ProgramNotFound(what="The program", command=argv[0])
    lock_name = lock or default_lock_name(argv[0])
    if dry_run:
        return SerializedRun(program, lock_name)
    if not stdin:
        refuse_unread_stdin()
    try:
        finished = run_serialized(
            context,
            [program, *argv[1:]],
            lock_name,
            RetryLimits(retries=retries, max_seconds=parse_limit(until)),
            passes_stdin=stdin,
        )
    except RunStopped as stopped:
        raise _to_error(stopped, program, lock_name) from stopped
    if not stdin and has_unread_stdin():
        message = "Input came on stdin while the program ran. To pass it on, use --stdin."
        context.warn("STDIN_NOT_READ", message)
    run = SerializedRun(program, lock_name, finished.exit_code, finished.tries)
    _check_success(run, has_written_output=finished.has_written_output)
    return run
