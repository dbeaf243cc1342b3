"""Run any other program one call at a time, and again while it says that its own lock is held."""

import json
import os
import random
import re
import shutil
import time
from collections.abc import Mapping
from itertools import count
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import typer

from sampletool.kit.context import PATIENT_SECONDS, Context
from sampletool.kit.contract.command_spec import CommandSpec
from sampletool.kit.contract.duration import parse_limit
from sampletool.kit.contract.errors import ExitStatus, InvalidValues, Mistake, ProgramNotFound
from sampletool.kit.contract.text import quoted
from sampletool.kit.global_options import DryRunOption
from sampletool.kit.program import variable
from sampletool.kit.safety.children import Children, Ended
from sampletool.kit.safety.places import private_directory, state_directory
from sampletool.kit.stdout import write

spec = CommandSpec(
    effect="files",
    errors=(ProgramNotFound,),
    locks=("session", "program"),
    idempotent=False,
    examples=("run-safely --dry-run --lock git --until 2m -- git gc",),
)
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}", re.ASCII)
_FIRST_PAUSE_SECONDS, _LONGEST_PAUSE_SECONDS = 0.1, 10.0
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


def lock_name(name: str | None, program: str) -> str:
    """The given one, or that of the program."""
    if name is None:
        return re.sub(r"[^A-Za-z0-9._-]", "-", os.path.basename(program)).lstrip("-.")[:64] or "program"
    if not _NAME.fullmatch(name):
        hint = "Use 1 to 64 letters, digits, '.', '_' or '-', beginning with a letter or digit."
        raise InvalidValues(Mistake("--lock", "INVALID_VALUE", f"{quoted(name)} is no name for a lock", name, hint))
    return name


def run_safely(context: Context, argv: list[str], name: str, retries: int, until_seconds: float) -> RanSafely:
    """Each try's output is kept back until it is known whether there is another one."""
    lock = private_directory(private_directory(state_directory()) / "locks") / f"run-{name}.lock"
    environ = {**os.environ, variable("SESSION_ID"): context.session_id}
    scratch = private_directory(context.session_directory / context.request_id)
    give_up_at = time.monotonic() + until_seconds
    try:
        with context.hold(lock, name, "exclusive", PATIENT_SECONDS) as hold:
            for tries in count(1):
                output, notices = scratch / f"{tries}.out", scratch / f"{tries}.err"
                ended = _run(
                    context, Children(context.signals, hold.descriptors, [lock]), argv, environ, output, notices
                )
                answer = _lock_held(output) if ended.status else None
                pause = _pause(answer or {}, tries)
                is_held = answer is not None or ended.status == ExitStatus.LOCK_HELD
                if not is_held or tries > retries or time.monotonic() + pause > give_up_at:
                    break
                context.tell(f"{name}: its lock is held; trying again in {pause:.1f} s")
                context.signals.wait(pause)
                context.signals.check()
        status = ended.status if ended.status >= 0 else 128 - ended.status
        _pass_on(context, output, notices)
        return RanSafely(argv[0], name, status, tries)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


def _run(
    context: Context, children: Children, argv: list[str], environ: Mapping[str, str], output: Path, notices: Path
) -> Ended:
    with children, output.open("xb") as stdout:
        children.start(argv[0], argv, cwd=context.cwd, env=environ, log=lambda: notices, stdout=stdout.fileno())
        ended = children.next_ended()
        assert ended is not None
        return ended


def _lock_held(output: Path) -> Mapping[str, Any] | None:
    """The error of an answer that says so; None for anything else."""
    try:
        error = json.loads(output.read_bytes()[-_ANSWER_BYTES:].splitlines()[-1])["error"]
        return error if error["code"] == "LOCK_HELD" else None
    except (ValueError, LookupError, TypeError):
        return None


def _pause(answer: Mapping[str, Any], tries: int) -> float:
    """What the program says; else longer each time, with a random part, so that a crowd does not come back as one."""
    told = answer.get("retry_after_ms")
    seconds = told / 1000 if isinstance(told, int) else _FIRST_PAUSE_SECONDS * 2**tries * random.uniform(1, 1.5)
    return min(seconds, _LONGEST_PAUSE_SECONDS)


def _pass_on(context: Context, output: Path, notices: Path) -> None:
    stdout = context.take_stdout()
    for path, descriptor in ((notices, 2), (output, stdout)):
        if path.exists():
            write(descriptor, path.read_bytes(), 0, lambda: int(context.signals.is_over()))
    os.close(stdout)


def parse_until(text: str) -> float:
    try:
        return parse_limit(text)
    except ValueError as error:
        raise typer.BadParameter(str(error)) from error


def command(
    ctx: typer.Context,
    argv: Annotated[list[str], typer.Argument(metavar="-- COMMAND...", help="The program; no shell runs it.")],
    lock: Annotated[str | None, typer.Option(metavar="NAME", help="The lock.  [default: the program's name]")] = None,
    retries: Annotated[int, typer.Option(min=0, max=1000, metavar="N", help="Tries after LOCK_HELD.")] = 5,
    until: Annotated[
        float, typer.Option(metavar="DURATION", parser=parse_until, help="No more tries after this long.")
    ] = "1m",  # type: ignore[assignment]
    dry_run: DryRunOption = False,
) -> RanSafely:
    """Run another program one call at a time.

    For programs that lose something when they run in parallel (see `audit`). Calls with the same lock wait for each
    other, for ten seconds unless --lock-timeout says otherwise. Where the program itself answers LOCK_HELD, or ends
    with status 75, it is tried again. Its stdout, stderr and exit status are passed on when it has ended; its stdin is
    empty. It cannot outlive this call, and after kill -9 of it keeps the lock until it ends.
    """
    context: Context = ctx.obj
    name = lock_name(lock, argv[0])
    program = shutil.which(argv[0])
    if program is None:
        raise ProgramNotFound(what="The program", command=argv[0])
    if dry_run:
        return RanSafely(program, name)
    return run_safely(context, [program, *argv[1:]], name, retries, until)
