"""Can this machine keep the promises? Tried for real, in a scratch directory that is removed again."""

import os
import platform
import sys
from importlib.metadata import version
from itertools import groupby
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

import typer

from ..context import Context
from ..contract.command_spec import CommandSpec
from ..contract.errors import ChecksFailed
from ..contract.table import Line, Painted
from ..contract.text import GREEN, RED
from ..parts import offered
from ..program import WORKSPACE_DIRECTORY
from ..safety.places import config_file, private_directory, session_root, state_directory
from ..safety.processes import can_see
from ._probes import Probe, probe_directory

spec = CommandSpec(effect="nothing", errors=(ChecksFailed,), reads=("machine",), examples=("doctor",))

_PACKAGES = ("typer", "filelock", "tomlkit", "platformdirs")


class Health(NamedTuple):
    healthy: bool
    probes: list[Probe]
    versions: dict[str, str]
    not_promised: list[str]
    """What rests on something that this system does not offer."""

    def lines(self) -> list[Line]:
        told: list[Line] = []
        for where, probes in groupby(self.probes, lambda probe: probe.where):
            told.append(where)
            for probe in probes:
                told.append(("", Painted("ok  ", GREEN) if probe.ok else Painted("FAIL", RED), probe.name))
                told += [f"        {probe.detail}"] if probe.detail else []
        told += ["Not promised here:", *(("", said) for said in self.not_promised)] if self.not_promised else []
        return [*told, "", *self.versions.items()]


def not_promised() -> list[str]:
    offered = {
        "to say for certain who holds a lock, and to end what a dead call left running": can_see(),
        "to keep the extended attributes of a file that is replaced": hasattr(os, "listxattr"),
        "anything: no test has ever run on this system": sys.platform == "linux",
    }
    return [promise for promise, is_offered in offered.items() if not is_offered]


def probe_directories(directories: list[Path]) -> list[Probe]:
    """Is each writable; and every file system among them, once. One that is not there is tried at its parent."""
    probes: list[Probe] = []
    seen: set[int] = set()
    for wanted in directories:
        found = next(path for path in (wanted, *wanted.parents) if path.is_dir())
        try:
            with TemporaryDirectory(prefix=".doctor-", dir=found, ignore_cleanup_errors=True) as scratch:
                probes.append(Probe("writable", str(wanted), True))
                if (device := found.stat().st_dev) not in seen:
                    seen.add(device)
                    probes += probe_directory(Path(scratch))
        except OSError as error:
            cannot = "it cannot be created: " if found != wanted else ""
            problem = f"{cannot}nothing can be written in {found}: {(error.strerror or str(error)).lower()}"
            probes.append(Probe("writable", str(wanted), False, problem))
    return probes


def command(ctx: typer.Context) -> Health:
    """Check that this machine can keep the promises.

    Tried for real: writing, locks between processes, kill -9, rename, fsync, private directories, and what parts need.
    """
    context: Context = ctx.obj
    workspace = context.workspace_or_none
    places = [session_root().parent, config_file().parent, state_directory()]
    places += [workspace, workspace / WORKSPACE_DIRECTORY] if workspace else []
    if session_root().exists():
        private_directory(session_root())
    probes = [*probe_directories(places), *(probe for part in offered("doctor") for probe in part.probe(context))]
    versions = {"python": platform.python_version(), "system": f"{platform.system()} {platform.release()}"}
    versions |= {package: version(package) for package in _PACKAGES}
    failed = [probe.name for probe in probes if not probe.ok]
    health = Health(not failed, probes, versions, not_promised())
    if failed:
        raise ChecksFailed(count=len(failed), failed=failed, data=health)
    return health
