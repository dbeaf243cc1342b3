"""Bring targets up to date, in parallel, while nobody else builds or tests."""

from typing import Annotated

import typer

from sampletool.kit.context import Context
from sampletool.kit.contract.command_spec import CommandSpec
from sampletool.kit.global_options import DryRunOption, JobsOption
from sampletool.sample.building import Build, forecast
from sampletool.sample.commands._building import build, plan_targets, read_workspace
from sampletool.sample.commands._shop import ENDS_WITH, opened
from sampletool.sample.output_store import OutputStore
from sampletool.sample.workspace import choose

spec = CommandSpec(
    effect="outputs",
    ends_with=ENDS_WITH,
    locks=("build", "session"),
    examples=("build", "build report", "build --dry-run"),
)


def build_now(context: Context, names: list[str], *, force_unlock: bool) -> Build:
    result = Build()
    with opened(context, "exclusive", force_unlock=force_unlock) as shop:
        jobs = read_workspace(context)
        build(context, shop, jobs, choose("target", names, jobs.targets), result)
    return result


def forecast_build(context: Context, names: list[str]) -> Build:
    """What would be built, and why. Takes no lock, makes nothing."""
    jobs = read_workspace(context)
    store = OutputStore(context.workspace, context.signals.check, writable=False)
    result = Build()
    forecast(plan_targets(context, jobs, store, choose("target", names, jobs.targets)), result)
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
    context: Context = ctx.obj
    if jobs is not None:
        context.options["jobs"] = jobs
    if dry_run:
        return forecast_build(context, targets or [])
    return build_now(context, targets or [], force_unlock=force_unlock)
