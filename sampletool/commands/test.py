"""Run the declared checks against built outputs: many at once, none while somebody builds."""

from pathlib import Path
from typing import Annotated

import typer

from sampletool.commands._building import build, plan_targets, read_workspace
from sampletool.commands._shop import ENDS_WITH, Shop, keeping, opened, telling
from sampletool.contract.errors import ChecksFailed
from sampletool.contract.file_errors import UnsafePath
from sampletool.contract.promise import Promise
from sampletool.domain.checks import Report, find_inputs, is_junit, run_checks
from sampletool.domain.errors import NotBuilt
from sampletool.domain.workspace import Jobs, choose
from sampletool.options import DryRunOption, JobsOption
from sampletool.safety.atomic_file import FOR_ALL, must_be_writable, replace
from sampletool.safety.places import WORKSPACE_FILE
from sampletool.wiring import Wiring
from sampletool.work.building import Build
from sampletool.work.job import OWN_PLACES, Done, Job
from sampletool.work.output_store import OutputStore

promise = Promise(
    effect="outputs",
    ends_with=ENDS_WITH,
    locks=("build", "session"),
    examples=("tool test", "tool test --build", "tool test totals-add-up --junit results.xml"),
)


def test_now(wiring: Wiring, names: list[str], *, first_build: bool, force_unlock: bool) -> Report:
    """With `first_build` the lock stays exclusive throughout: turning it into a shared one is not atomic."""
    with opened(wiring, "exclusive" if first_build else "shared", force_unlock=force_unlock) as shop:
        jobs = read_workspace(wiring, alone=first_build)
        checks = [jobs.checks[name] for name in choose("check", names, jobs.checks)]
        inputs = find_inputs(wiring.workspace, checks)
        needed = list(dict.fromkeys(need for check in checks for need in check.needs))
        if first_build and needed:
            build(wiring, shop, jobs, needed, Build())
        _warn_of_stale(wiring, jobs, shop.store, needed)
        return _run(wiring, shop, checks, inputs)


def _run(wiring: Wiring, shop: Shop, checks: list[Job], inputs: dict[str, list[str]]) -> Report:
    report = Report()
    with keeping(report), telling(wiring, "check", len(checks)) as tell:
        run_checks(checks, inputs, shop.floor, shop.children, wiring.jobs(), report, tell)
    return report


def _warn_of_stale(wiring: Wiring, jobs: Jobs, store: OutputStore, needed: list[str]) -> None:
    """Checks run against what is built; if that is not what tool.toml now asks for, they say so."""
    missing = [name for name in needed if not store.version_of(name).exists()]
    if missing:
        raise NotBuilt(missing)
    for name, planned in plan_targets(wiring, jobs, store, needed).items():
        if planned.reason is not None:
            wiring.warn("STALE_OUTPUT", f"{name} is tested as it was built last: {planned.reason}.")


def forecast(wiring: Wiring, names: list[str]) -> Report:
    jobs = read_workspace(wiring)
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
    wiring: Wiring = ctx.obj
    if jobs is not None:
        wiring.options["jobs"] = jobs
    if junit is not None:
        junit = junit_place(junit, wiring.workspace)
    if dry_run:
        return forecast(wiring, checks or [])
    report = test_now(wiring, checks or [], first_build=first_build, force_unlock=force_unlock)
    if junit is not None:
        with keeping(report):
            replace(junit, report.as_junit().encode(), FOR_ALL)
    if report.failed:
        raise ChecksFailed(report.failed, report)
    return report
