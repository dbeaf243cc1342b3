"""Can this machine keep the promises? Tried for real, in a scratch directory that is removed again."""

import os
import platform
import shutil
import tempfile
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path

import typer

from sampletool.commands._probes import Probe, probe_directory
from sampletool.contract.errors import ChecksFailed, ToolError
from sampletool.contract.exit_status import ExitStatus
from sampletool.contract.promise import Promise
from sampletool.safety.places import config_file, private_directory, session_root, state_directory
from sampletool.wiring import Wiring

promise = Promise(effect="nothing", ends_with=(ExitStatus.PARTIAL, ExitStatus.PERMISSION), examples=("tool doctor",))

_SKEW_MS = 2000
_PACKAGES = ("typer", "filelock", "tomlkit", "platformdirs")


@dataclass(frozen=True)
class Health:
    healthy: bool
    probes: list[Probe]
    versions: dict[str, str]

    def lines(self) -> list[str]:
        told = [f"{'ok  ' if probe.ok else 'FAIL'}  {probe.name}  ({probe.directory})" for probe in self.probes]
        told += [f"      {probe.detail}" for probe in self.probes if probe.detail]
        return [*told, "", *(f"{name} {number}" for name, number in self.versions.items())]


def examine(directories: list[Path]) -> Health:
    """Probe every file system among these directories once; a directory that is not there is probed at its parent."""
    probes: list[Probe] = []
    seen = set()
    for wanted in directories:
        directory = next(found for found in (wanted, *wanted.parents) if found.is_dir())
        if directory.stat().st_dev in seen:
            continue
        seen.add(directory.stat().st_dev)
        if not os.access(directory, os.W_OK):
            probes.append(Probe("writable", str(directory), False, "nothing can be written here"))
            continue
        scratch = Path(tempfile.mkdtemp(prefix=".doctor-", dir=directory))
        try:
            probes += probe_directory(scratch)
        finally:
            shutil.rmtree(scratch, ignore_errors=True)
    return Health(all(probe.ok for probe in probes), probes, _versions())


def probe_store(wiring: Wiring) -> list[Probe]:
    """Is the configured store there, does it keep what it acknowledges, and is its clock near ours?"""
    try:
        store = wiring.store
    except ModuleNotFoundError as error:
        if error.name is None or not error.name.startswith("sampletool.state"):
            raise
        return []
    except ToolError as error:
        return [Probe("store", "", False, error.message)]
    try:
        found = store.health()
    except ToolError as error:
        return [Probe("store is reachable", "", False, error.message)]
    skew = f"its clock is {found.clock_skew_ms} ms from ours" if abs(found.clock_skew_ms) > _SKEW_MS else None
    durable = "; ".join(found.problems) or None
    return [
        Probe("store is reachable", found.server, True),
        Probe("store keeps what it acknowledges", found.server, durable is None, durable or said(found.settings)),
        Probe("store and clock agree", found.server, skew is None, skew),
    ]


def said(settings: dict[str, str]) -> str:
    return ", ".join(f"{name} {value}" for name, value in sorted(settings.items()))


def _versions() -> dict[str, str]:
    found = {"python": platform.python_version(), "system": f"{platform.system()} {platform.release()}"}
    return {**found, **{package: version(package) for package in _PACKAGES}}


def command(ctx: typer.Context) -> Health:
    """Try what the guarantees rest on: locks between processes, kill -9, rename, fsync, private directories."""
    wiring: Wiring = ctx.obj
    workspace = wiring.workspace_or_none
    places = [session_root().parent, config_file().parent, state_directory(), *([workspace] if workspace else [])]
    if session_root().exists():
        private_directory(session_root())
    health = examine(places)
    probes = [*health.probes, *probe_store(wiring)]
    health = Health(all(probe.ok for probe in probes), probes, health.versions)
    if not health.healthy:
        failed = [probe.name for probe in health.probes if not probe.ok]
        raise ChecksFailed(failed, health)
    return health
