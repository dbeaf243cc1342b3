"""Test whether a command-line tool loses data if it is run many times at once."""

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
from ..trial import Candidate
from ..verdict import judge

spec = CommandSpec(
    effect="scratch",
    errors=(ProgramNotFound, FailsAlone),
    runs_what_it_is_given=True,
    examples=(
        "audit --set 'git config --global x.{key} {value}' "
        "--get 'git config --global x.{key}' --runs 8",
    ),
)

_RUNS_PER_INTERRUPTION = 4
"""For every four runs of the burst, one run is stopped and another one is killed.

More runs are interrupted after changes of their files.
"""

_parse_set = partial(CommandLine.parse, placeholders=(KEY, VALUE))
_parse_get = partial(CommandLine.parse, placeholders=())


def audit(
    candidate: Candidate,
    signals: Signals,
    runs: int,
    notice: Callable[[str], None],
) -> Report:
    """Run the three probes, and return the report.

    `runs` is the number of runs that the burst starts. `notice` is called with a line for the user
    before each probe.
    """
    spread_count = max(2, runs // _RUNS_PER_INTERRUPTION)
    notice(f"burst: starting {runs} runs at once ...")
    burst = probe_burst(candidate, signals, runs)
    notice("stall: stopping a run while another one runs, several times ...")
    stall = probe_stall(candidate, signals, spread_count)
    notice("kill: killing a run before another one, several times ...")
    kill = probe_kill(candidate, signals, spread_count)
    return judge(candidate, Findings(burst=burst, stall=stall, kill=kill))


def _option(name: str, metavar: str, check: Callable[[str], object], help: str) -> Any:
    return typer.Option(name, metavar=metavar, callback=checked_by(check), help=help)


def command(
    ctx: typer.Context,
    set_text: Annotated[
        str,
        _option("--set", "COMMAND", _parse_set, "Command that sets {key} to {value}."),
    ],
    get_text: Annotated[
        str,
        _option(
            "--get", "COMMAND", _parse_get, "Command that shows the value of {key}, or all values."
        ),
    ],
    runs: Annotated[
        int,
        typer.Option(
            "--runs", metavar="N", min=2, max=256, help="Start N copies of the tool at once."
        ),
    ] = 32,
    deadline: Annotated[
        str,
        _option("--deadline", "DURATION", parse_limit, "Stop a copy that takes longer than this."),
    ] = "30s",
    dry_run: DryRunOption = False,
) -> Report:
    """Test whether it is safe to run another tool many times at once.

    This starts many copies of the tool that change values at the same time, stops and kills some of
    them, and then checks that no value was lost. The result is a score from 0 (the tool loses data)
    to 3, with the reasons. With --format text, the report is Markdown.

    The tool runs in a temporary directory with a HOME of its own, so it does not read or change
    your settings there.
    """
    context: Context = ctx.obj
    candidate = Candidate(
        set_command=_parse_set(set_text).find_program("--set", context.cwd),
        get_command=_parse_get(get_text).find_program("--get", context.cwd),
        deadline_seconds=parse_limit(deadline),
    )
    if dry_run:
        return forecast(candidate)
    return audit(candidate, context.signals, runs, context.notice)
