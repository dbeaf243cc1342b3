"""`make forks`: create projects, run their checks and tests, and upgrade their kit.

Without arguments, it tries this project without its other parts, then a project without parts, one
with each part, one with all parts, and one that depends on the kit. `make forks PARTS="state lab"`
tries one project with these parts, and `PARTS=none` one without. With `dependency` among the names,
the project depends on the kit.
"""

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from sampletool.fork.project import offered_parts
from sampletool.kit.program import PACKAGE, PROGRAM
from sampletool.kit.project import ROOT
from sampletool.kit.testing.trees import commit, copy_tree, make_environment, mark_as_ready

_NONE = "none"
_DEPENDENCY = "dependency"


@dataclass(frozen=True)
class Kind:
    """What a project is created with."""

    parts: list[str]
    depends_on_kit: bool = False

    def __str__(self) -> str:
        """Return the name that the results show."""
        parts = ", ".join(self.parts) or "no part"
        kit = ", depending on the kit" if self.depends_on_kit else ""
        return f"a project with {parts}{kit}"


def main(names: list[str]) -> int:
    """Try the projects that the arguments name, and print the results. Return the exit code."""
    failures: list[str] = []
    if not names:
        failures += try_alone()
    for kind in kinds(names):
        failures += try_project(kind)
    print(f"Failed: {'; '.join(failures) or 'nothing'}")
    return 1 if failures else 0


def kinds(names: list[str]) -> Iterator[Kind]:
    """Yield the projects to try."""
    if names:
        parts = [name for name in names if name not in (_NONE, _DEPENDENCY)]
        yield Kind(parts, depends_on_kit=_DEPENDENCY in names)
        return
    yield Kind([])
    for part in offered_parts():
        yield Kind([part])
    yield Kind(offered_parts())
    yield Kind(["sample"] if "sample" in offered_parts() else [], depends_on_kit=True)


def try_alone() -> list[str]:
    """Try this project without its other parts. Return what failed."""
    with tempfile.TemporaryDirectory(prefix="alone-") as directory:
        tree = copy_tree(ROOT, Path(directory) / "alone")
        commit(tree)
        python = str(make_environment(tree))
        remove = [python, "-m", f"{PACKAGE}.kit.parts", "remove", *offered_parts()]
        subprocess.run(remove, env=environment(), cwd=tree, check=True, stdout=subprocess.DEVNULL)
        commit(tree)
        mark_as_ready(tree)
        return run("this project without other parts: checks and tests", ["check", "test"], tree)


def try_project(kind: Kind) -> list[str]:
    """Create a project, try it, upgrade its kit, and try it again. Return what failed."""
    with tempfile.TemporaryDirectory(prefix="fork-") as directory:
        scratch = Path(directory)
        newer = newer_version(scratch)
        if kind.depends_on_kit:
            project = create(kind, scratch, build_wheel(ROOT, scratch / "older"))
            failures = run(f"{kind}: checks and tests", ["check", "test"], project)
            install(build_wheel(newer, scratch / "newest"), project)
            upgraded = run(f"{kind}: with the newer kit", ["check", "test"], project)
        else:
            project = create(kind, scratch)
            failures = run(f"{kind}: checks and tests", ["check", "test"], project)
            upgraded = run(f"{kind}: upgrade", ["upgrade", f"FROM={newer}"], project)
            upgraded += run(f"{kind}: tests with the newer kit", ["test"], project)
        return failures + upgraded


def environment() -> dict[str, str]:
    """Return the environment of the user, with what git and Python need."""
    environment = {"GIT_AUTHOR_NAME": "Ann", "GIT_AUTHOR_EMAIL": "ann@example.org"}
    environment |= {"GIT_COMMITTER_NAME": "Ann", "GIT_COMMITTER_EMAIL": "ann@example.org"}
    environment |= os.environ
    # Otherwise, the projects would import the modules of this one.
    environment.pop("PYTHONPATH", None)
    return environment


def create(kind: Kind, scratch: Path, wheel: Path | None = None) -> Path:
    """Create a project with an environment that has the packages of this one."""
    project = scratch / "acme"
    command = [sys.executable, "-m", PACKAGE, "fork", "acme", "--to", str(project), "--json"]
    command += ["--with", ",".join(kind.parts)]
    if wheel is not None:
        command += ["--kit", "dependency", "--kit-from", str(wheel)]
    created = subprocess.run(
        command,
        env=environment(),
        cwd=ROOT,
        check=True,
        stdout=subprocess.PIPE,
    )
    assert json.loads(created.stdout)["data"]["is_committed"]
    binaries = make_environment(project).parent
    # This is the script of the original program. Its content names the module to run.
    script = (binaries / PROGRAM).read_text()
    (binaries / PROGRAM).unlink()
    (binaries / "acme").write_text(script.replace(PACKAGE, "acme"))
    (binaries / "acme").chmod(0o755)
    if wheel is not None:
        install(wheel, project)
    return project


def build_wheel(tree: Path, directory: Path) -> Path:
    """Build a wheel of a checkout of this project."""
    hatchling = str(Path(sys.prefix, "bin", "hatchling"))
    build = [hatchling, "build", "-t", "wheel", "-d", str(directory)]
    subprocess.run(build, env=environment(), cwd=tree, check=True, stdout=subprocess.DEVNULL)
    (wheel,) = directory.glob("*.whl")
    return wheel


def install(wheel: Path, project: Path) -> None:
    """Install a wheel into the environment of a project, which has everything that it needs."""
    (packages,) = (project / ".venv").glob("lib/python*/site-packages")
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-index", "--no-deps"]
    pip += ["--upgrade", "--target", str(packages), str(wheel)]
    subprocess.run(pip, env=environment(), check=True)


def newer_version(scratch: Path) -> Path:
    """Return a checkout of a newer version of this project."""
    tree = copy_tree(ROOT, scratch / "newer")
    kit = tree / PACKAGE / "kit"
    revision = int((kit / "REVISION").read_text())
    (kit / "REVISION").write_text(f"{revision + 1}\n")
    (kit / "fresh.py").write_text('"""New in this kit."""\n')
    commit(tree)
    return tree


def run(title: str, targets: list[str], project: Path) -> list[str]:
    """Run make with these targets, and print how it ended. Return the title if it failed."""
    began = time.monotonic()
    completed = subprocess.run(["make", *targets], cwd=project, env=environment(), check=False)
    seconds = time.monotonic() - began
    print(f"{title}: exit code {completed.returncode} after {seconds:.0f} s", flush=True)
    if completed.returncode != 0:
        return [title]
    return []


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
