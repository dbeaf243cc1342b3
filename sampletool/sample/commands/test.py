"""Run the declared checks against built outputs: many at once, none while somebody builds."""

from pathlib import Path
from typing import Annotated

import typer

from sampletool.kit.context import Context
from sampletool.kit.contract.command_spec import CommandSpec
from sampletool.kit.contract.errors import ChecksFailed
from sampletool.kit.contract.file_errors import UnsafePath
from sampletool.kit.global_options import DryRunOption, JobsOption
from sampletool.kit.program import WORKSPACE_FILE
from sampletool.kit.safety.atomic_file import FOR_ALL, must_be_writable, replace
from sampletool.sample.building import Build
from sampletool.sample.checks import Report, find_inputs, is_junit, run_checks
from sampletool.sample.commands._building import build, plan_targets, read_workspace
from sampletool.sample.commands._shop import ENDS_WITH, Shop, keeping, opened, telling
from sampletool.sample.errors import NotBuilt
from sampletool.sample.job import OWN_PLACES, Done, Job
from sampletool.sample.output_store import OutputStore
from sampletool.sample.workspace import Jobs, choose

spec = CommandSpec(
    effect="outputs",
    ends_with=ENDS_WITH,
    locks=("build", "session"),
    examples=("test", "test --build", "test totals-add-up --junit results.xml"),
)


def test_now(context: Context, names: list[str], *, first_build: bool, force_unlock: bool) -> Report:
    """With `first_build` the lock stays exclusive throughout: turning it into a shared one is not atomic."""
    with opened(context, "exclusive" if first_build else "shared", force_unlock=force_unlock) as shop:
        jobs = read_workspace(context)
        checks = [jobs.checks[name] for name in choose("check", names, jobs.checks)]
        inputs = find_inputs(context.workspace, checks)
        needed = list(dict.fromkeys(need for check in checks for need in check.needs))
        if first_build and needed:
            build(context, shop, jobs, needed, Build())
        _warn_of_stale(context, jobs, shop.store, needed)
        return _run(context, shop, checks, inputs)


def _run(context: Context, shop: Shop, checks: list[Job], inputs: dict[str, list[str]]) -> Report:
    report = Report()
    with keeping(report), telling(context, "check", len(checks)) as tell:
        run_checks(checks, inputs, shop.floor, shop.children, context.jobs(), report, tell)
    return report


def _warn_of_stale(context: Context, jobs: Jobs, store: OutputStore, needed: list[str]) -> None:
    """Checks run against what is built; if that is not what tool.toml now asks for, they say so."""
    missing = [name for name in needed if not store.version_of(name).exists()]
    if missing:
        raise NotBuilt(missing)
    for name, planned in plan_targets(context, jobs, store, needed).items():
        if planned.reason is not None:
            context.warn("STALE_OUTPUT", f"{name} is tested as it was built last: {planned.reason}.")


def forecast(context: Context, names: list[str]) -> Report:
    jobs = read_workspace(context)
    checks = [Done(name, "would run") for name in choose("check", names, jobs.checks)]
    return Report(checks, total=len(checks))


def junit_place(path: Path, workspace: Path) -> Path:
    """Where the report goes, told before anything runs: never over what is no such report, nor among what is ours."""
    resolved = path.resolve()
    must_be_writable(resolved)
    if any(resolved.is_relative_to((workspace / own).resolve()) for own in (WORKSPACE_FILE, *OWN_PLACES)):
        raise UnsafePath(str(resolved), "it is the workspace's own")
    if resolved.exists() and not is_junit(resolved):
        raise UnsafePath(str(resolved), "it is there already, and is no JUnit report")
    return resolved


def command(
    ctx: typer.Context,
    checks: Annotated[list[str] | None, typer.Argument(metavar="[CHECK...]", help="All, if none is named.")] = None,
    first_build: Annotated[
        bool, typer.Option("--build", help="First build what is stale, under the same lock.")
    ] = False,
    junit: Annotated[Path | None, typer.Option(metavar="FILE", help="Also write the results as JUnit XML.")] = None,
    jobs: JobsOption = None,
    force_unlock: Annotated[
        bool, typer.Option("--force-unlock", help="First end what a dead build left running.")
    ] = False,
    dry_run: DryRunOption = False,
) -> Report:
    """Check what is built, in parallel.

    Checks are declared in tool.toml; each runs in a directory of its own.
    """
    context: Context = ctx.obj
    if jobs is not None:
        context.options["jobs"] = jobs
    if junit is not None:
        junit = junit_place(junit, context.workspace)
    if dry_run:
        return forecast(context, checks or [])
    report = test_now(context, checks or [], first_build=first_build, force_unlock=force_unlock)
    if junit is not None:
        with keeping(report):
            replace(junit, report.as_junit().encode(), FOR_ALL)
    if report.failed:
        raise ChecksFailed(report.failed, report)
    return report
