"""Run the declared checks against built outputs: many at once, none while somebody builds."""

import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated

import typer

from sampletool.kit.completion import offering
from sampletool.kit.context import Context
from sampletool.kit.contract.command_spec import CommandSpec
from sampletool.kit.contract.errors import ChecksFailed
from sampletool.kit.contract.file_errors import UnsafePath
from sampletool.kit.contract.mistyped import check_path
from sampletool.kit.contract.text import printable
from sampletool.kit.global_options import DryRunOption, strictly
from sampletool.kit.program import PROGRAM, WORKSPACE_FILE
from sampletool.kit.safety.atomic_file import FOR_ALL, replace
from sampletool.sample.commands._options import JobsOption
from sampletool.sample.commands.build import Build, ForceUnlockOption, build_targets
from sampletool.sample.commands.build import spec as build_spec
from sampletool.sample.errors import NotBuilt
from sampletool.sample.output import must_be_writable
from sampletool.sample.plan import plan
from sampletool.sample.progress import Progress
from sampletool.sample.publish import Outputs
from sampletool.sample.run import Done, Runner, Workplace, carrying, locked
from sampletool.sample.workspace import OWN_PLACES, Job, Jobs, choose, read_workspace

spec = CommandSpec(
    effect="outputs",
    errors=(*build_spec.errors, NotBuilt, ChecksFailed),
    locks=("build", "session"),
    at_once=("build",),
    reads=("workspace",),
    before=("init .", "build"),
    examples=("test", "test --build", "test totals-add-up --junit results.xml"),
)
_JUNIT = re.compile(rb"<\?xml[^>]*>\s*<testsuite")


@dataclass
class Report:
    """The checks that are done; also the answer of a run that was stopped on the way."""

    checks: list[Done] = field(default_factory=list)
    total: int | None = None
    """How many there are; absent when it was stopped before that was known."""

    def lines(self) -> list[str]:
        if self.total == 0:
            return [f"There are no checks in {WORKSPACE_FILE}."]
        return [line for check in self.checks for line in check.lines()]

    @property
    def failed(self) -> list[str]:
        return [check.name for check in self.checks if check.status == "failed"]

    def as_junit(self) -> str:
        """The form that CI systems read."""
        from xml.sax.saxutils import escape, quoteattr

        cases = []
        for check in self.checks:
            note = printable(check.note or "failed")
            failure = f"<failure message={quoteattr(note)}>{escape(check.tail or note)}</failure>"
            body = failure if check.status == "failed" else ""
            cases.append(f'  <testcase classname="{PROGRAM}" name={quoteattr(check.name)}>{body}</testcase>\n')
        head = f'<testsuite name="{PROGRAM}" tests="{len(self.checks)}" failures="{len(self.failed)}">'
        return f'<?xml version="1.0" encoding="UTF-8"?>\n{head}\n{"".join(cases)}</testsuite>\n'


def test(context: Context, names: list[str], jobs: int | None, *, first_build: bool, force_unlock: bool) -> Report:
    """With `first_build` the lock stays exclusive throughout: turning it into a shared one is not atomic."""
    if names:  # a wrong name makes nothing
        choose("check", names, read_workspace(context).checks)
    with locked(context, "exclusive" if first_build else "shared", force_unlock=force_unlock) as place:
        declared = read_workspace(context)
        checks = [declared.checks[name] for name in choose("check", names, declared.checks)]
        inputs = _find_inputs(context.workspace, declared, checks)
        needed = list(dict.fromkeys(need for check in checks for need in check.needs))
        if first_build and needed:
            build_targets(place, declared, needed, jobs, Build())
        outputs = Outputs(context.workspace, context.signals.check, writable=False)
        _warn_of_stale(context, declared, outputs, needed)
        return _run(place, checks, inputs, outputs, jobs)


def _run(
    place: Workplace, checks: list[Job], inputs: dict[str, list[str]], outputs: Outputs, jobs: int | None
) -> Report:
    report = Report(total=len(checks))
    done: dict[str, Done] = {}
    with carrying(report), Progress(place.context, "check", len(checks)) as progress:
        runner = Runner(place, progress, jobs)
        for check in checks:
            runner.submit(check, inputs[check.name], {need: outputs.version_of(need) for need in check.needs})
        while ended := runner.next_ended():
            done[ended.name] = ended
            progress.ended(ended, ended.name, ended.status)
            report.checks = [done[check.name] for check in checks if check.name in done]
    return report


def _find_inputs(root: Path, declared: Jobs, checks: list[Job]) -> dict[str, list[str]]:
    """The declared inputs of each; all that is missing is reported at once."""
    found: dict[str, list[str]] = {}
    problems: list[tuple[str, str]] = []
    for check in checks:
        try:
            found[check.name] = check.find_inputs(root)
        except ValueError as error:
            problems.append((f"check.{check.name}", str(error)))
    declared.must_have_no(problems)
    return found


def _warn_of_stale(context: Context, declared: Jobs, outputs: Outputs, needed: list[str]) -> None:
    """Checks run against what is built; a warning where that is not what tool.toml now asks for."""
    missing = [name for name in needed if not outputs.version_of(name).exists()]
    if missing:
        raise NotBuilt(targets=missing)
    for name, planned in plan(declared, needed, outputs).items():
        if planned.reason is not None:
            context.warn("STALE_OUTPUT", f"{name} is tested as it was built last: {planned.reason}.")


def forecast(context: Context, names: list[str]) -> Report:
    checks = read_workspace(context).checks
    return Report([Done(name, "would_run") for name in choose("check", names, checks)], len(names or checks))


def junit_place(path: Path, workspace: Path) -> Path:
    """Where the report goes, checked before anything runs: never over another file, nor among the tool's own."""
    resolved = path.resolve()
    must_be_writable(resolved)
    if any(resolved.is_relative_to((workspace / own).resolve()) for own in (WORKSPACE_FILE, *OWN_PLACES)):
        raise UnsafePath(str(resolved), "it is the workspace's own")
    if resolved.exists() and not _is_junit(resolved):
        raise UnsafePath(str(resolved), "it is there already, and is no JUnit report")
    return resolved


def _is_junit(path: Path) -> bool:
    """Whether it begins as such a report does, ours or another's; or is empty, as a temporary file is at first."""
    with path.open("rb") as file:
        head = file.read(1024)
    return not head or _JUNIT.match(head) is not None


def command(
    ctx: typer.Context,
    checks: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[CHECK...]",
            help="All, if none is named.",
            autocompletion=offering(lambda context: read_workspace(context).checks),
        ),
    ] = None,
    first_build: Annotated[
        bool, typer.Option("--build", help="First build what is stale, under the same lock.")
    ] = False,
    junit: Annotated[
        Path | None,
        typer.Option(metavar="FILE", callback=strictly(check_path), help="Also write the results as JUnit XML."),
    ] = None,
    jobs: JobsOption = None,
    force_unlock: ForceUnlockOption = False,
    dry_run: DryRunOption = False,
) -> Report | Build:
    """Check what is built, in parallel.

    Checks are declared in tool.toml; each runs in a directory of its own. If --build fails, the data is its own.
    """
    context: Context = ctx.obj
    if junit is not None:
        junit = junit_place(junit, context.workspace)
    if dry_run:
        return forecast(context, checks or [])
    report = test(context, checks or [], jobs, first_build=first_build, force_unlock=force_unlock)
    if junit is not None:
        with carrying(report):
            replace(junit, report.as_junit().encode(), FOR_ALL)
    if report.failed:
        raise ChecksFailed(count=len(report.failed), failed=report.failed, data=report)
    return report
