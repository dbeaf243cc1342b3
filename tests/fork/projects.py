"""Steps that `make forks` takes with every project: build, prepare, install, and run make."""

import os
import subprocess
import sys
import time
from pathlib import Path

from sampletool.kit.program import PACKAGE, PROGRAM
from sampletool.kit.project import ROOT
from sampletool.kit.testing.trees import commit, copy_tree, make_environment


def environment() -> dict[str, str]:
    """Return the environment of the user, with what git and Python need."""
    environment = {"GIT_AUTHOR_NAME": "Ann", "GIT_AUTHOR_EMAIL": "ann@example.org"}
    environment |= {"GIT_COMMITTER_NAME": "Ann", "GIT_COMMITTER_EMAIL": "ann@example.org"}
    environment |= os.environ
    # Otherwise, the projects would import the modules of this one.
    environment.pop("PYTHONPATH", None)
    return environment


def prepare_environment(project: Path, name: str) -> Path:
    """Create an environment that has the packages of this one. Return the path of its Python.

    `name` is the name of the project, and of its package and its program.
    """
    python = make_environment(project)
    binaries = python.parent
    # This is the script of the original program. Its content names the module to run.
    script = (binaries / PROGRAM).read_text()
    (binaries / PROGRAM).unlink()
    (binaries / name).write_text(script.replace(PACKAGE, name))
    (binaries / name).chmod(0o755)
    return python


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
