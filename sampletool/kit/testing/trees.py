"""Copies of the project's tree, for tests that change, commit or fork a whole project.

A copy can have an environment of its own. That environment uses the installed packages of the one
that runs the tests, so nothing is installed.
"""

import os
import shutil
import subprocess
import sys
import sysconfig
from dataclasses import dataclass
from pathlib import Path

import pytest

from ..checksums import checksums_text, kit_files
from ..program import PACKAGE
from ..project import ROOT

FEW_PLUGINS = ["-p", "no:anyio", "-p", "no:hypothesispytest", "-p", "no:valkey"]
"""Options of pytest for a small suite. Importing these plugins takes longer than its tests."""

_AUTHOR = [
    "-c",
    "user.name=nobody",
    "-c",
    "user.email=nobody@example.org",
    "-c",
    "commit.gpgsign=false",
]


def copy_tree(source: Path, target: Path) -> Path:
    """Copy a project as it is now, and return the path of the copy.

    The copy has the files that git tracks or would track. Without a git repository, it has all but
    caches and environments. The copy has the bytecode too: compiling it again takes longer than
    most of what a copy is needed for.
    """
    if not (source / ".git").exists():
        ignored = shutil.ignore_patterns(".*_cache", "__pycache__", ".venv*")
        return Path(shutil.copytree(source, target, symlinks=True, ignore=ignored))
    for name in _git_files(source, "--cached", "--others", "--exclude-standard"):
        # A file that was deleted stays in the list until its deletion is committed.
        if (source / name).is_file():
            (target / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(source / name, target / name, follow_symlinks=False)
    _copy_bytecode(source, target)
    return target


def _copy_bytecode(source: Path, target: Path) -> None:
    """Copy the bytecode of every module in `target`."""
    # Python writes bytecode to a file with another name, and then renames it.
    unfinished = shutil.ignore_patterns("*.pyc.*")
    folders = {module.parent.relative_to(target) for module in target.rglob("*.py")}
    for folder in folders:
        bytecode = source / folder / "__pycache__"
        if bytecode.is_dir():
            shutil.copytree(bytecode, target / folder / "__pycache__", ignore=unfinished)


def copy_template(template: Path, target: Path) -> Path:
    """Copy a tree that several tests start from, and return the path of the copy.

    The copy shares the files that git and Python replace and never write into. Linking thousands of
    such files is faster than copying them.
    """

    def link_or_copy(source: str, destination: str) -> None:
        if source.endswith(".pyc") or "/.git/objects/" in source:
            os.link(source, destination)
        else:
            shutil.copy2(source, destination)

    return Path(shutil.copytree(template, target, copy_function=link_or_copy))


def write_checksums(tree: Path) -> None:
    """Write the kit's CHECKSUMS, as in a project that has taken the kit over."""
    kit = tree / PACKAGE / "kit"
    (kit / "CHECKSUMS").write_text(checksums_text(kit_files(kit)))


def make_environment(tree: Path) -> Path:
    """Create an environment for the tree, and return the path of its interpreter.

    Modules of the project come from `tree`. `make` takes the environment for a finished one.
    """
    environment = tree / ".venv"
    # Where pytest is installed. If this environment is itself a copy, that is in the first one.
    installed_packages = Path(pytest.__file__).parents[1]
    packages = environment / Path(sysconfig.get_path("purelib")).relative_to(sys.prefix)
    packages.mkdir(parents=True)
    (packages / "tree.pth").write_text(f"{tree}\n{installed_packages}\n")
    # With this hook, coverage measures the processes that tests start.
    for coverage_hook in installed_packages.glob("*coverage.pth"):
        shutil.copy(coverage_hook, packages)
    shutil.copy(Path(sys.prefix, "pyvenv.cfg"), environment)

    binaries = environment / "bin"
    binaries.mkdir()
    for program in Path(sys.prefix, "bin").iterdir():
        _copy_program(program, binaries, environment)
    mark_as_ready(tree)
    return binaries / "python"


def _copy_program(program: Path, binaries: Path, environment: Path) -> None:
    """Copy a program of this environment. If it is a script, the new environment runs it."""
    copy = binaries / program.name
    if program.is_symlink() or not program.read_bytes().startswith(b"#!"):
        copy.symlink_to(os.path.realpath(program))
        return
    script = program.read_bytes()
    # The first line of a script has the path of the interpreter. If `.venv` is a link, it has the
    # path of the folder that the link leads to (see environment.sh).
    for own_environment in (os.path.realpath(sys.prefix), sys.prefix):
        script = script.replace(os.fsencode(own_environment), os.fsencode(environment))
    copy.write_bytes(script)
    copy.chmod(0o755)


def mark_as_ready(tree: Path) -> None:
    """Create the files that tell `make` that everything is installed."""
    for mark in (".ready", ".testable"):
        (tree / ".venv" / mark).touch()


def copy_mypy_cache(tree: Path) -> None:
    """Copy what mypy knows of the installed packages, if it has run in this project.

    Reading these packages takes mypy longer than reading the project.
    """
    cache = ROOT / ".mypy_cache"
    if cache.is_dir():
        shutil.copytree(cache, tree / ".mypy_cache")


def commit(tree: Path) -> None:
    """Create a repository in the tree, and commit everything."""
    # With this threshold, git writes all objects into one file. One file for each object would take
    # longer to copy.
    into_one_file = ["-c", "core.bigFileThreshold=1"]
    _git(tree, "init", "-q")
    _git(tree, *into_one_file, "add", "-A")
    _git(tree, *_AUTHOR, "commit", "-qm", "As it is")


def tracked_files(tree: Path) -> list[str]:
    """Return the paths of the files that git tracks."""
    return _git_files(tree, "--cached")


def _git_files(tree: Path, *options: str) -> list[str]:
    output = _git(tree, "ls-files", "-z", *options)
    return [name for name in output.split("\0") if name]


def _git(tree: Path, *arguments: str) -> str:
    completed = subprocess.run(
        ["git", *arguments],
        cwd=tree,
        check=True,
        stdout=subprocess.PIPE,
        text=True,
    )
    return completed.stdout


@dataclass(frozen=True)
class FileState:
    """What shows that a file was written: its size, or the time of the last change, differs."""

    size: int
    modified_ns: int


def file_states(top: Path) -> dict[str, FileState]:
    """Return the state of each file below a directory, by its path. The call log is left out."""
    states = {}
    for path in top.rglob("*"):
        if path.is_file() and path.name != "calls.jsonl":
            status = path.lstat()
            states[str(path)] = FileState(size=status.st_size, modified_ns=status.st_mtime_ns)
    return states
