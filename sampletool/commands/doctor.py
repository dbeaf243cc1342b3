"""Can this machine keep the promises? Tried for real, in a scratch directory that is removed again."""

import os
import platform
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from tempfile import TemporaryDirectory

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
        told = [f"{'ok  ' if probe.ok else 'FAIL'}  {probe.name}  ({probe.where})" for probe in self.probes]
        told += [f"      {probe.detail}" for probe in self.probes if probe.detail]
        return [*told, "", *(f"{name} {number}" for name, number in self.versions.items())]


def probe_directories(directories: list[Path]) -> list[Probe]:
    """Every file system among these, once; a directory that is not there is probed at its parent."""
    there = [next(found for found in (wanted, *wanted.parents) if found.is_dir()) for wanted in directories]
    probes: list[Probe] = []
    for directory in {found.stat().st_dev: found for found in reversed(there)}.values():
        if not os.access(directory, os.W_OK):
            probes.append(Probe("writable", str(directory), False, "nothing can be written here"))
            continue
        with TemporaryDirectory(prefix=".doctor-", dir=directory, ignore_cleanup_errors=True) as scratch:
            probes += probe_directory(Path(scratch))
    return probes


def probe_store(wiring: Wiring) -> list[Probe]:
    """Is the configured store there, does it keep what it acknowledges, and is its clock near ours?"""
    try:
        found = wiring.store.health()
    except ToolError as error:
        return [Probe("store is reachable", "the store", False, error.message)]
    except ModuleNotFoundError as error:
        if not (error.name or "").startswith("sampletool.state"):  # else somebody has taken out shared state
            raise
        return []
    settings = ", ".join(f"{name} {value}" for name, value in sorted(found.settings.items()))
    skew = f"its clock is {found.clock_skew_ms} ms from ours" if abs(found.clock_skew_ms) > _SKEW_MS else None
    return [
        Probe("store is reachable", found.server, True),
        Probe(
            "store keeps what it acknowledges", found.server, not found.problems, "; ".join(found.problems) or settings
        ),
        Probe("store and clock agree", found.server, skew is None, skew),
    ]


def command(ctx: typer.Context) -> Health:
    """Check that this machine can keep the promises.

    Tried for real: writing, locks between processes, kill -9, rename, fsync, private directories, the store.
    """
    wiring: Wiring = ctx.obj
    workspace = wiring.workspace_or_none
    places = [session_root().parent, config_file().parent, state_directory(), *([workspace] if workspace else [])]
    if session_root().exists():
        private_directory(session_root())
    probes = [*probe_directories(places), *probe_store(wiring)]
    versions = {"python": platform.python_version(), "system": f"{platform.system()} {platform.release()}"}
    versions |= {package: version(package) for package in _PACKAGES}
    failed = [probe.name for probe in probes if not probe.ok]
    health = Health(not failed, probes, versions)
    if failed:
        raise ChecksFailed(failed, health)
    return health
