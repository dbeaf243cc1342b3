"""Bring targets up to date, in parallel, while nobody else builds or tests."""

from typing import Annotated

import typer

from sampletool.commands._building import build, plan_targets, read_workspace
from sampletool.commands._shop import ENDS_WITH, opened
from sampletool.contract.promise import Promise
from sampletool.domain.workspace import choose
from sampletool.options import DryRunOption, JobsOption
from sampletool.wiring import Wiring
from sampletool.work.building import Build, forecast
from sampletool.work.output_store import OutputStore

promise = Promise(
    effect="outputs",
    ends_with=ENDS_WITH,
    locks=("build", "session"),
    examples=("tool build", "tool build report", "tool build --dry-run"),
)


def build_now(wiring: Wiring, names: list[str], *, force_unlock: bool) -> Build:
    result = Build()
    with opened(wiring, "exclusive", force_unlock=force_unlock) as shop:
        jobs = read_workspace(wiring, alone=True)
        build(wiring, shop, jobs, choose("target", names, jobs.targets), result)
    return result


def forecast_build(wiring: Wiring, names: list[str]) -> Build:
    """What would be built, and why. Takes no lock, makes nothing."""
    jobs = read_workspace(wiring)
    store = OutputStore(wiring.workspace, wiring.signals.check, writable=False)
    result = Build()
    forecast(plan_targets(wiring, jobs, store, choose("target", names, jobs.targets)), result)
    return result


def command(
    ctx: typer.Context,
    targets: Annotated[list[str] | None, typer.Argument(metavar="[TARGET...]", help="All, if none is named.")] = None,
    jobs: JobsOption = None,
    force_unlock: Annotated[
        bool, typer.Option("--force-unlock", help="First end what a dead build left running.")
    ] = False,
    dry_run: DryRunOption = False,
) -> Build:
    """Build what is out of date, in parallel.

    Targets are declared in tool.toml; what a target needs is built first. Each runs in a directory that holds only
    what it declared. When it succeeded, its outputs appear all together under out/TARGET. A build that fails or is
    stopped leaves the last good outputs, and the next one goes on from there.
    """
    wiring: Wiring = ctx.obj
    if jobs is not None:
        wiring.options["jobs"] = jobs
    if dry_run:
        return forecast_build(wiring, targets or [])
    return build_now(wiring, targets or [], force_unlock=force_unlock)
