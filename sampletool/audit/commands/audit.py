"""May any other command-line tool be run in parallel? Runs it many times at once and says what it lost."""

from collections.abc import Callable
from functools import partial
from typing import Annotated, Any

import typer

from ...kit.context import Context
from ...kit.contract.command_spec import CommandSpec
from ...kit.contract.duration import parse_limit
from ...kit.contract.errors import ProgramNotFound
from ...kit.global_options import DryRunOption, checked_by
from ...kit.safety.signals import Signals
from ..command_line import KEY, VALUE, CommandLine
from ..errors import FailsAlone
from ..probes import probe_burst, probe_kill, probe_stall
from ..report import Findings, Report, forecast
from ..store import Candidate
from ..verdict import judge

spec = CommandSpec(
    effect="scratch",
    errors=(ProgramNotFound, FailsAlone),
    runs_what_it_is_given=True,
    examples=("audit --set 'git config --global x.{key} {value}' --get 'git config --global x.{key}' --runs 8",),
)
_RUNS_PER_MOMENT = 4
_read_set, _read_get = partial(CommandLine.read, holes=(KEY, VALUE)), partial(CommandLine.read, holes=())


def audit(candidate: Candidate, signals: Signals, runs: int, say: Callable[[str], None]) -> Report:
    """The three probes, each in a store of its own. Takes as long as it takes: `say` gets what is being done."""
    by_time = max(2, runs // _RUNS_PER_MOMENT)
    say(f"burst: {runs} runs at once ...")
    burst = probe_burst(candidate, signals, runs)
    say("stall: one run stopped, another beside it, again and again ...")
    stall = probe_stall(candidate, signals, by_time)
    say("kill: one run killed, another after it, again and again ...")
    return judge(candidate, Findings(burst, stall, probe_kill(candidate, signals, by_time)))


def _option(name: str, metavar: str, check: Callable[[str], object], help: str) -> Any:
    return typer.Option(name, metavar=metavar, callback=checked_by(check), help=help)


def command(
    ctx: typer.Context,
    set_text: Annotated[str, _option("--set", "COMMAND", _read_set, "Sets {key} to {value}; no shell runs it.")],
    get_text: Annotated[str, _option("--get", "COMMAND", _read_get, "Shows the value of {key}, or all values.")],
    runs: Annotated[int, typer.Option("--runs", metavar="N", min=2, max=256, help="How many start at once.")] = 32,
    deadline: Annotated[str, _option("--deadline", "DURATION", parse_limit, "How long one run may take.")] = "30s",
    dry_run: DryRunOption = False,
) -> Report:
    """Test whether another tool may be run in parallel.

    Runs it many times at once, stops runs, kills runs, and says what was lost: a score from 0 to 3. As text, which is
    Markdown to paste, also with --format text into a pipe. The commands are split into words as a shell would, but no
    shell runs them. They run in a scratch directory with a HOME of their own, which is removed; of the environment
    only PATH and a few others are passed on.
    """
    context: Context = ctx.obj
    set_command = _read_set(set_text).located("--set", context.cwd)
    get_command = _read_get(get_text).located("--get", context.cwd)
    candidate = Candidate(set_command, get_command, parse_limit(deadline))
    return forecast(candidate) if dry_run else audit(candidate, context.signals, runs, context.notice)
