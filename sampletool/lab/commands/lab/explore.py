"""Write the explorer: an HTML file of recorded runs, in which the reader chooses who goes next."""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from ....kit.context import Context
from ....kit.contract.command_spec import CommandSpec
from ....kit.contract.file_errors import OutputExists
from ....kit.contract.response import Effect
from ....kit.contract.text import counted
from ....kit.global_options import DryRunOption
from ....kit.places import session_root
from ....kit.safety.atomic_file import create, read_regular
from ...errors import ScenarioNotFound
from ...explore import explore
from ...explorer.page import one_file
from ...explorer.scenario_data import scenario_data
from ...levels import names_in_order
from ...scenario import find_scenario
from ...scratch import fork_server_for
from ._options import NameArgument, with_progress

spec = CommandSpec(
    effect="outputs",
    errors=(ScenarioNotFound, OutputExists),
    locks=("session",),
    examples=("lab explore lost-config-update", "lab explore torn-write --output explorer.html"),
)
_LARGEST_BYTES = 64 * 1024 * 1024
"""The largest existing file at the path that is compared with the new page."""


@dataclass(frozen=True)
class WrittenPage:
    """The page that was written."""

    effect: Effect
    output: str
    scenarios: list[str]
    schedules: int
    """The number of schedules that were run and recorded."""

    def lines(self) -> list[str]:
        """Return the result as text, with the next step."""
        schedules = counted(self.schedules, "schedule")
        scenarios = counted(len(self.scenarios), "scenario")
        return [
            f"{self.output}: {self.effect}",
            f"Open it in a browser; it has {schedules} of {scenarios}, and needs no network.",
        ]


def write_page(context: Context, names: Sequence[str], path: Path, *, dry_run: bool) -> WrittenPage:
    """Record the scenarios, and write the page. A dry run records them too, but writes nothing.

    Raise OutputExists if the path already has another content.
    """
    existing_page = None
    if os.path.lexists(path):
        existing_page = read_regular(path, _LARGEST_BYTES, follow=False)
    scenarios = []
    schedules = 0
    for name in with_progress(context, names):
        scenario = find_scenario(name)
        with fork_server_for(scenario.name) as fork_server:
            explorations = explore(context, scenario, fork_server)
        scenarios.append(scenario_data(scenario, explorations))
        for exploration in explorations.values():
            schedules += len(exploration.recordings)
    page = one_file(scenarios).encode()
    effect: Effect = "unchanged"
    if existing_page is None:
        effect = "created"
        if not dry_run:
            create(path, page)
    elif existing_page != page:
        raise OutputExists(
            str(path), found="it is not this page", suggestion="Name another --output."
        )
    return WrittenPage(effect=effect, output=str(path), scenarios=list(names), schedules=schedules)


def command(
    ctx: typer.Context,
    name: NameArgument = None,
    output: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="Write to FILE.  [default: a file in the session directory]"
        ),
    ] = None,
    dry_run: DryRunOption = False,
) -> WrittenPage:
    """Create a web page on which you choose the order of the steps.

    A race has several variants: naive code, wrong fixes and a right fix. This runs each of them in
    every order of its steps, with real processes, and writes the results to one HTML file. Open
    the file in a browser, choose which process takes the next step, and see which variants fail.

    Without NAME, the page contains all races, which takes much longer. An existing file is not
    overwritten.
    """
    context: Context = ctx.obj
    names = names_in_order() if name is None else [name]
    path = _page_path(context, name, output, dry_run=dry_run)
    return write_page(context, names, path, dry_run=dry_run)


def _page_path(context: Context, name: str | None, output: Path | None, *, dry_run: bool) -> Path:
    """Return the path of the page: the requested one, or a path in the session directory.

    `name` is the scenario, or None for all scenarios. Raise FileNotFoundError if the folder of
    `output` does not exist.
    """
    if output is not None:
        folder = Path(os.path.realpath(output.parent, strict=True))
        return folder / output.name
    page_name = f"{name or 'explorer'}.html"
    if dry_run:
        # The property `session_directory` would create the directory.
        return session_root() / context.session_id / page_name
    return context.session_directory / page_name
