"""Can this machine keep the promises? Tried for real, in a scratch directory that is removed again."""

import platform
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from tempfile import TemporaryDirectory

import typer

from sampletool.commands._probes import Probe, probe_directory
from sampletool.contract.errors import ChecksFailed, ToolError
from sampletool.contract.exit_status import ExitStatus
from sampletool.contract.file_errors import from_os_error
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
        told: list[str] = []
        for probe in self.probes:
            told.append(f"{'ok  ' if probe.ok else 'FAIL'}  {probe.name}  ({probe.where})")
            told += [f"      {probe.detail}"] if probe.detail else []
        return [*told, "", *(f"{name} {number}" for name, number in self.versions.items())]


def probe_directories(directories: list[Path]) -> list[Probe]:
    """Is each writable; and every file system among them, once. One that is not there is tried at its parent."""
    probes: list[Probe] = []
    seen: set[int] = set()
    for wanted in directories:
        found = next(path for path in (wanted, *wanted.parents) if path.is_dir())
        try:
            with TemporaryDirectory(prefix=".doctor-", dir=found, ignore_cleanup_errors=True) as scratch:
                probes.append(Probe("writable", str(wanted), True))
                if found.stat().st_dev not in seen:
                    probes += probe_directory(Path(scratch))
        except OSError as error:
            cannot = "it cannot be created: " if found != wanted else ""
            problem = f"{cannot}nothing can be written in {found}: {(error.strerror or str(error)).lower()}"
            probes.append(Probe("writable", str(wanted), False, problem))
        else:
            seen.add(found.stat().st_dev)
    return probes


def probe_store(wiring: Wiring) -> list[Probe]:
    """Is the configured store there, does it keep what it acknowledges, and is its clock near ours?"""
    try:
        found = wiring.store.health()
    except (ToolError, OSError) as error:
        failed = error if isinstance(error, ToolError) else from_os_error(error)
        return [Probe("store is reachable", "the store", False, failed.message)]
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
    places = [session_root().parent, config_file().parent, state_directory()]
    places += [workspace, workspace / ".tool"] if workspace else []
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
