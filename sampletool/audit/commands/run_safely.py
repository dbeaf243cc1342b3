"""Run any other program one call at a time, and again while it says that its own lock is held."""

import os
import random
import re
import shutil
import time
from errno import ENOENT
from itertools import count
from pathlib import Path
from typing import Annotated, NamedTuple

import typer

from ...kit.context import PATIENT_WAIT_SECONDS, Context
from ...kit.contract.command_spec import CommandSpec
from ...kit.contract.duration import parse_limit
from ...kit.contract.errors import ExitStatus, ProgramNotFound
from ...kit.contract.mistyped import check_name
from ...kit.contract.text import quoted
from ...kit.global_options import DryRunOption, checked_by
from ...kit.places import state_directory
from ...kit.program import env_variable
from ...kit.safety.children import Children
from ...kit.safety.private_directory import private_directory
from ...kit.stdout import write_response
from ..errors import ProgramNotRunnable
from ..failure import understand

spec = CommandSpec(
    effect="files",
    errors=(ProgramNotFound, ProgramNotRunnable),
    locks=("session", "program"),
    idempotent=False,
    runs_what_it_is_given=True,
    takes_stdout=True,
    examples=("run-safely --dry-run --lock git --until 2m -- git gc",),
)
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}", re.ASCII)
_FIRST_PAUSE_SECONDS, _LONGEST_PAUSE_SECONDS = 0.1, 60
_ANSWER_BYTES = 64 * 1024


class RanSafely(NamedTuple):
    """The answer goes to stderr, because stdout is the program's."""

    program: str
    lock: str
    status: int | None = None
    tries: int = 0

    @property
    def exit_status(self) -> int:
        return self.status or ExitStatus.OK

    def lines(self) -> list[str]:
        if self.status is None:
            return [f"{self.program} would be run, one call at a time for the lock {self.lock}."]
        return [f"{self.program}: status {self.status} after {self.tries} tries"] * (self.tries > 1)


def check_lock(text: str) -> None:
    check_name(text)
    if not _NAME.fullmatch(text):
        raise ValueError(f"{quoted(text)} is not 1 to 64 letters, digits, '.', '_' or '-', a letter or digit first")


def lock_of(program: str) -> str:
    """The lock of a program for which none is named."""
    return re.sub(r"[^A-Za-z0-9._-]", "-", os.path.basename(program)).lstrip("-.")[:64] or "program"


def run_safely(context: Context, argv: list[str], name: str, retries: int, until_seconds: float) -> RanSafely:
    """Each try's output is kept back until it is known whether there is another one."""
    lock = private_directory(private_directory(state_directory()) / "locks") / f"run-{name}.lock"
    environ = {**os.environ, env_variable("SESSION_ID"): context.session_id}
    scratch = private_directory(context.session_directory / context.request_id)
    output, notices = scratch / "out", scratch / "err"
    give_up_at = time.monotonic() + until_seconds
    try:
        with context.hold(lock, name, "exclusive", PATIENT_WAIT_SECONDS) as hold:
            for tries in count(1):
                notices.unlink(missing_ok=True)
                with Children(context.signals, hold.descriptors, [lock]) as children, output.open("wb") as stdout:
                    try:
                        children.start(
                            argv[0],
                            argv,
                            cwd=context.cwd,
                            env=environ,
                            make_log_path=lambda: notices,
                            stdout=stdout.fileno(),
                        )
                    except OSError as error:
                        reason = "its interpreter is not there" if error.errno == ENOENT else str(error.strerror)
                        raise ProgramNotRunnable(command=argv[0], reason=reason) from None
                    child_exit = children.next_exit()
                    assert child_exit is not None
                for pid in children.strays:
                    context.warn("STRAY_ENDED", f"Process {pid}, which the program had left running, was ended.")
                status = child_exit.exit_code if child_exit.exit_code >= 0 else 128 - child_exit.exit_code
                pause = wanted_pause(output, status, tries) if status else None
                if pause is None or tries > retries or time.monotonic() + pause > give_up_at:
                    break
                context.progress(f"{name}: its lock is held; trying again in {pause:.1f} s")
                context.signals.wait(pause)
                context.signals.check()
        return RanSafely(argv[0], name, _passed_on(context, output, notices, status), tries)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


def wanted_pause(output: Path, status: int, tries: int) -> float | None:
    """Seconds until the next try; None where the program does not say in its last line that its lock is held.

    As many as it says; else more each time, with a random part, so that a crowd does not come back as one. What else
    is in an answer may be about another lock, and a program that did something must not do it again.
    """
    last_line = b"".join(output.read_bytes()[-_ANSWER_BYTES:].splitlines()[-1:])
    said = understand(status, last_line.decode(errors="replace"), "", "", (), depth=1)
    if status != ExitStatus.LOCK_HELD and said.code != "LOCK_HELD":
        return None
    usual_seconds = _FIRST_PAUSE_SECONDS * 2**tries * random.uniform(1, 1.5)
    return min(said.retry_after_seconds or usual_seconds, _LONGEST_PAUSE_SECONDS)


def _passed_on(context: Context, output: Path, notices: Path, status: int) -> int:
    """Its status, or another one if not all of it could be written. What follows on stderr begins a line."""
    stdout = context.take_stdout()
    said = notices.read_bytes() if notices.exists() else b""
    end = b"\n" if said and not said.endswith(b"\n") else b""
    for descriptor, content in ((2, said + end), (stdout, output.read_bytes())):
        status = write_response(descriptor, content, status, context.signals)
    os.close(stdout)
    return status


def command(
    ctx: typer.Context,
    argv: Annotated[list[str], typer.Argument(metavar="-- COMMAND...", help="The program; no shell runs it.")],
    lock: Annotated[
        str | None,
        typer.Option(metavar="NAME", callback=checked_by(check_lock), help="The lock.  [default: the program]"),
    ] = None,
    retries: Annotated[int, typer.Option(min=0, max=1000, metavar="N", help="Tries after LOCK_HELD.")] = 5,
    until: Annotated[
        str, typer.Option(metavar="DURATION", callback=checked_by(parse_limit), help="No more tries after this long.")
    ] = "1m",
    dry_run: DryRunOption = False,
) -> RanSafely:
    """Run another program one call at a time.

    For programs that lose something when they run in parallel (see `audit`). Calls with the same lock wait for each
    other, for ten seconds unless --lock-timeout says otherwise. Where the program itself answers LOCK_HELD, or ends
    with status 75, it is tried again. Its stdout, stderr and exit status are passed on when it has ended; its stdin is
    empty. It cannot outlive this call, and after kill -9 of it keeps the lock until it ends.
    """
    context: Context = ctx.obj
    program = shutil.which(argv[0])
    if program is None:
        raise ProgramNotFound(what="The program", command=argv[0])
    name = lock or lock_of(argv[0])
    if dry_run:
        return RanSafely(program, name)
    return run_safely(context, [program, *argv[1:]], name, retries, parse_limit(until))
