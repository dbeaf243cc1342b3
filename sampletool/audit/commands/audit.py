"""May any other command-line tool be run in parallel? Runs it many times at once and says what it lost."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated

import typer

from sampletool.audit.auditing import audit, forecast
from sampletool.audit.command_line import KEY, VALUE, CommandLine
from sampletool.audit.errors import FailsAlone
from sampletool.audit.report import Report
from sampletool.audit.store import Candidate
from sampletool.kit.context import Context
from sampletool.kit.contract.command_spec import CommandSpec
from sampletool.kit.contract.duration import parse_limit
from sampletool.kit.contract.errors import InvalidValues, Mistake, ProgramNotFound
from sampletool.kit.global_options import DryRunOption

spec = CommandSpec(
    effect="scratch",
    errors=(ProgramNotFound, FailsAlone),
    examples=("audit --set 'git config --global x.{key} {value}' --get 'git config --global x.{key}' --runs 8",),
)


def read_arguments(set_text: str, get_text: str, deadline: str) -> Candidate:
    """What is to be audited; every mistake of all of them at once."""
    mistakes: list[Mistake] = []

    @contextmanager
    def reading(option: str, text: str, hint: str | None = None) -> Iterator[None]:
        try:
            yield
        except ValueError as error:
            mistakes.append(Mistake(option, "INVALID_VALUE", str(error), text, hint))

    with reading("--set", set_text, f"For example --set 'mytool set {KEY} {VALUE}'."):
        set_command = CommandLine.read(set_text, (KEY, VALUE))
    with reading("--get", get_text, f"For example --get 'mytool get {KEY}'."):
        get_command = CommandLine.read(get_text, ())
    with reading("--deadline", deadline):
        seconds = parse_limit(deadline)
    if mistakes:
        raise InvalidValues(*mistakes)
    return Candidate(set_command, get_command, seconds)


def command(
    ctx: typer.Context,
    set_text: Annotated[
        str, typer.Option("--set", metavar="COMMAND", help="Sets a key: contains {key} and {value}. No shell runs it.")
    ],
    get_text: Annotated[str, typer.Option("--get", metavar="COMMAND", help="Shows the value of {key}, or all values.")],
    runs: Annotated[int, typer.Option("--runs", metavar="N", min=2, max=256, help="How many start at once.")] = 32,
    deadline: Annotated[str, typer.Option("--deadline", metavar="DURATION", help="How long one run may take.")] = "30s",
    markdown: Annotated[bool, typer.Option("--markdown", help="Write a report to paste, also into a pipe.")] = False,
    dry_run: DryRunOption = False,
) -> Report:
    """Test whether another tool may be run in parallel.

    Runs it many times at once, stops runs, kills runs, and says what was lost: a score from 0 to 3. The commands are
    split into words as a shell would, but no shell runs them. They run in a scratch directory with a HOME of their
    own, which is removed; of the environment only PATH and a few others are passed on.
    """
    context: Context = ctx.obj
    candidate = read_arguments(set_text, get_text, deadline).located(context.cwd)
    report = forecast(candidate) if dry_run else audit(candidate, context.signals, runs, context.say)
    if not markdown:
        return report
    context.options.setdefault("format", "text")
    return report.with_markdown()
