"""Build a tool from the wheel as its owner would, upgrade its kit, and remove its commands again.

The tool is `ledger`, with the commands `add`, `list`, `balance`, `import` and `sync`. The folder
`files` has what its owner writes. Everything else comes from the wheel. The owner has read nothing
but the how-to, `sampletool/kit/README.md`. So this script and `files` contain nothing that the
how-to does not say: they are the test that the how-to is enough.
"""

import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from sampletool.kit.program import PACKAGE
from sampletool.kit.project import ROOT
from tests.fork.projects import (
    build_wheel,
    environment,
    newer_version,
    prepare_environment,
    run,
)

FILES = Path(__file__).parent / "files"
_ONLY_HERE = {"ruff.toml"}
"""The files in `files` that the project does not get."""

NAME = "ledger"
PART = "books"
COMMANDS = ("add", "list", "balance", "import", "sync")


def try_ledger() -> list[str]:
    """Build the ledger, upgrade it, and take it apart. Print each step. Return what failed."""
    with tempfile.TemporaryDirectory(prefix="ledger-") as directory:
        scratch = Path(directory)
        with _timed("build the wheel, and create a project from it"):
            project = create_project(scratch)
            python = prepare_environment(project, NAME)
            first_commit = _git(project, "rev-parse", "HEAD").strip()
        with _timed("write five commands"):
            failures = write_commands(project)
            _commit(project, "Keep books")
        failures += run("ledger: checks", ["check"], project)
        failures += run("ledger: tests", ["test"], project)

        newer = newer_version(scratch)
        failures += run("ledger: upgrade and checks", ["upgrade", f"FROM={newer}"], project)
        _commit(project, "Upgrade the kit")
        failures += run("ledger: tests with the newer kit", ["test"], project)

        with _timed("remove the five commands"):
            _run([str(python), "-m", f"{NAME}.kit.parts", "remove", PART], project)
        failures += run("ledger: checks and tests of the rest", ["check", "test"], project)
        return failures + what_remains(project, first_commit)


def create_project(scratch: Path) -> Path:
    """Build the wheel, install it into a folder, and let it create the project. Return its path."""
    wheel = build_wheel(ROOT, scratch / "wheel")
    installed = scratch / "installed"
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-index", "--no-deps"]
    _run([*pip, "--target", str(installed), str(wheel)], scratch)
    # With -m and -c, Python imports the package from the current directory first.
    print_path = f"import {PACKAGE}; print({PACKAGE}.__file__)"
    assert _run([sys.executable, "-c", print_path], installed).startswith(str(installed))
    project = scratch / NAME
    _run([sys.executable, "-m", PACKAGE, "fork", NAME, "--to", str(project)], installed)
    return project


def write_commands(project: Path) -> list[str]:
    """Create the commands with `make new-command`, and replace them with those in `files`.

    Return what failed: `files` must replace each file that was created.
    """
    failures = []
    for name in COMMANDS:
        failures += run(
            f"ledger: new-command {name}",
            ["new-command", f"NAME={name}", f"PART={PART}"],
            project,
        )
    created = _git(project, "ls-files", "--others", "--exclude-standard").splitlines()
    own_files = paths_of_files()
    for path in created:
        if path not in own_files:
            failures.append(f"ledger: {path} was created, and `files` does not have it")
    for path in own_files:
        (project / path).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(FILES / path, project / path)
    return failures


def paths_of_files() -> list[str]:
    """Return the paths of the files that the owner writes, from the root of the project."""
    paths = []
    for path in sorted(FILES.rglob("*")):
        relative_path = path.relative_to(FILES)
        is_bytecode = "__pycache__" in relative_path.parts
        if path.is_file() and not is_bytecode and str(relative_path) not in _ONLY_HERE:
            paths.append(str(relative_path))
    return paths


def what_remains(project: Path, first_commit: str) -> list[str]:
    """Return the files that differ from the first commit, apart from those of the kit."""
    _git(project, "add", "--all")
    changed = _git(
        project,
        "diff",
        "--cached",
        "--name-only",
        first_commit,
        "--",
        ".",
        f":!{NAME}/kit",
    )
    return [f"ledger: {path} remains changed" for path in changed.splitlines()]


def _commit(project: Path, message: str) -> None:
    _git(project, "add", "--all")
    _git(project, "commit", "--quiet", "--message", message)


def _git(project: Path, *args: str) -> str:
    return _run(["git", *args], project)


def _run(command: list[str], directory: Path) -> str:
    """Run a command, and return what it prints. Raise CalledProcessError if it fails."""
    completed = subprocess.run(
        command,
        cwd=directory,
        env=environment(),
        check=True,
        stdout=subprocess.PIPE,
        text=True,
    )
    return completed.stdout


@contextmanager
def _timed(title: str) -> Iterator[None]:
    """Print how long the block took."""
    began = time.monotonic()
    yield
    print(f"ledger: {title}: {time.monotonic() - began:.0f} s", flush=True)
