"""Check whether this machine offers what the tool relies on, and show which paths it uses."""

import platform
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from importlib.metadata import version
from itertools import groupby
from typing import Annotated, ClassVar

import typer

from ..context import Context
from ..contract.command_spec import CommandSpec
from ..contract.errors import ChecksFailed, InvalidValues, ToolError
from ..contract.expected import EXPECTED, to_tool_error
from ..contract.response import UNTRUSTED, Format
from ..contract.table import Line, Painted
from ..contract.text import GREEN, MAX_SENTENCE_CHARACTERS, RED, YELLOW, shorten, shorten_sentence
from ..part_discovery import offered
from ..places import all_locks, config_file, session_root, state_directory
from ..program import PROGRAM, WORKSPACE_DIRECTORY, __version__
from ..safety.private_directory import private_directory
from ._bug_report import write_report
from ._probes import (
    Probe,
    missing_guarantees,
    probe_directories,
    probe_lock_files,
    probe_lock_places,
)
from ._used_paths import UsedPath, find_used_paths

__all__ = ["BugReport", "Health", "Probe", "command", "spec"]
# The file doctor.py of a part imports Probe from here.

spec = CommandSpec(
    effect="nothing",
    errors=(ChecksFailed,),
    reads=("machine",),
    examples=("doctor", "doctor --report"),
)

_LEFT_OUT = f"the reason may quote your settings; to see it, run `{PROGRAM} doctor`"
"""What a report shows in place of the detail of a failed probe of a part."""

_PACKAGES = ("typer", "filelock", "tomlkit", "platformdirs")


@dataclass(frozen=True)
class Health:
    """What was found out about this machine."""

    healthy: bool
    versions: dict[str, str]
    """The version of the tool first, then those of what it runs on."""
    paths: list[UsedPath]
    probes: list[Probe]
    not_promised: list[str]
    """What the tool cannot guarantee on this system."""

    def lines(self) -> list[Line]:
        """Return the versions, the paths, and the probes of each place."""
        lines: list[Line] = []
        lines += self.versions.items()
        lines.append("")
        for used in self.paths:
            lines.append((used.name, used.path, "" if used.exists else "does not exist"))
        lines.append("")
        for where, probes in groupby(self.probes, lambda probe: probe.where):
            lines.append(where)
            for probe in probes:
                lines += _probe_lines(probe)
        if self.not_promised:
            lines += ["", "Not guaranteed on this system:"]
            lines += [("", guarantee) for guarantee in self.not_promised]
        return lines


@dataclass(frozen=True)
class BugReport:
    """The text to paste into a bug report."""

    value: Annotated[str, UNTRUSTED]
    default_format: ClassVar[Format] = "raw"

    def lines(self) -> list[str]:
        """Return the text."""
        return self.value.splitlines()


def _probe_lines(probe: Probe) -> Iterator[Line]:
    if probe.ok:
        outcome = Painted("ok  ", GREEN)
    elif probe.required:
        outcome = Painted("FAIL", RED)
    else:
        outcome = Painted("note", YELLOW)
    yield ("", outcome, probe.name)
    if probe.detail is not None:
        yield f"        {probe.detail}"
    if probe.fix is not None:
        yield f"        {probe.fix}"


def _versions() -> dict[str, str]:
    versions = {
        PROGRAM: __version__,
        "python": platform.python_version(),
        "system": f"{platform.system()} {platform.release()}",
    }
    for package in _PACKAGES:
        versions[package] = version(package)
    return versions


def _run_probes(context: Context) -> list[Probe]:
    """Return the results of all probes of the kit and of the parts."""
    probes = _probes_of_kit(context) + _probes_of_parts(context)
    return [_shortened(probe) for probe in probes]


def _run_probes_for_report(context: Context) -> list[Probe]:
    """Return the results of all probes, without anything that may quote a setting."""
    probes = _probes_of_kit(context)
    probes += [_without_values(probe) for probe in _probes_of_parts(context)]
    return [_shortened(probe) for probe in probes]


def _without_values(probe: Probe) -> Probe:
    """Return the name and the result of a probe of a part.

    A part probes what the settings name, such as a server. So both the place and the detail may
    quote the value of a setting.
    """
    return replace(probe, where="", detail=_LEFT_OUT, fix=None)


def _probes_of_kit(context: Context) -> list[Probe]:
    """Return the results of the probes of this machine, its directories and its locks."""
    workspace = context.workspace_or_none
    directories = [session_root().parent, config_file().parent, state_directory()]
    if workspace is not None:
        directories += [workspace, workspace / WORKSPACE_DIRECTORY]
    if session_root().exists():
        # It raises UnsafeDirectory if another user has planted something in this place.
        private_directory(session_root())
    probes = probe_directories(directories)
    probes += probe_lock_files(all_locks(workspace))
    probes += probe_lock_places(workspace)
    return probes


def _probes_of_parts(context: Context) -> list[Probe]:
    probes: list[Probe] = []
    for part in offered("doctor"):
        probes += part.probe(context)
    return probes


def _shortened(probe: Probe) -> Probe:
    """Return the probe with a very long path shortened, so that the response stays short."""
    detail = probe.detail
    if detail is not None:
        detail = shorten_sentence(detail)
    return replace(probe, where=shorten(probe.where, MAX_SENTENCE_CHARACTERS), detail=detail)


def _examine(
    context: Context,
    run_probes: Callable[[Context], list[Probe]],
    reason_for: Callable[[ToolError], str],
) -> tuple[list[UsedPath], list[Probe]]:
    """Return the paths in use, and the results of the probes.

    If the paths cannot be determined, for example because HOME is wrong, or if the probes cannot
    run, return a failed probe that says why.
    """
    paths: list[UsedPath] = []
    try:
        paths = find_used_paths(context.workspace_or_none)
        return paths, run_probes(context)
    except EXPECTED as error:
        # A signal or the time limit is no fault of this machine: it ends the command.
        context.signals.check()
        reason = reason_for(to_tool_error(error))
        return paths, [Probe("all checks", "this machine", False, reason)]


def _reason_with_hint(error: ToolError) -> str:
    return shorten_sentence(f"{error.message} {error.suggestion}")


def _reason_without_values(error: ToolError) -> str:
    """Return the message of the error, or one without values if the message quotes them."""
    if isinstance(error, InvalidValues):
        names = [mistake.param for mistake in error.mistakes]
        return f"invalid value for {', '.join(names)}"
    return error.message


def _write_bug_report(context: Context) -> BugReport:
    paths, probes = _examine(context, _run_probes_for_report, _reason_without_values)
    return BugReport(write_report(_versions(), paths, probes))


def command(
    ctx: typer.Context,
    report: Annotated[
        bool,
        typer.Option("--report", help="Print a summary to paste into a bug report."),
    ] = False,
) -> Health | BugReport:
    """Check that locks and files work reliably on this machine.

    The checks run in temporary directories. They test, for example, that a lock keeps other
    processes out, that `kill -9` releases it, and that files can be renamed and flushed safely. The
    output also shows which versions and paths are in use.

    With --report, the output leaves out the values of your settings and masks passwords.
    """
    context: Context = ctx.obj
    if report:
        return _write_bug_report(context)
    paths, probes = _examine(context, _run_probes, _reason_with_hint)
    failed = [probe.name for probe in probes if probe.required and not probe.ok]
    health = Health(
        healthy=not failed,
        versions=_versions(),
        paths=paths,
        probes=probes,
        not_promised=missing_guarantees(),
    )
    if failed:
        raise ChecksFailed(count=len(failed), failed=failed, data=health)
    return health
