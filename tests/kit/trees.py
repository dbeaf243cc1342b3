"""A copy of the project's tree with an environment of its own, which uses the installed packages of this one."""

import os
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

from sampletool.kit.checksums import listing, of_kit
from sampletool.kit.program import PACKAGE

ROOT = Path(__file__).parents[2]
FEW_PLUGINS = ["-p", "no:anyio", "-p", "no:hypothesispytest", "-p", "no:valkey"]
"""For a small suite of its own: to import what it has no use for takes longer than its tests."""
_AUTHOR = ["-c", "user.name=nobody", "-c", "user.email=nobody@example.org", "-c", "commit.gpgsign=false"]


def copy_tree(source: Path, target: Path) -> Path:
    """What git tracks or would track, as it is now; without git, everything but caches and environments.

    With its bytecode: to compile it anew takes longer than most of what a copy is made for.
    """
    asked = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    if not (source / ".git").exists():
        ignored = shutil.ignore_patterns(".*_cache", "__pycache__", ".venv")
        return Path(shutil.copytree(source, target, symlinks=True, ignore=ignored))
    listed = subprocess.run(asked, cwd=source, check=True, capture_output=True, text=True).stdout
    for name in filter(None, listed.split("\0")):
        if (source / name).is_file():
            (target / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(source / name, target / name, follow_symlinks=False)
    for folder in {path.parent.relative_to(target) for path in target.rglob("*.py")}:
        if (source / folder / "__pycache__").is_dir():
            unfinished = shutil.ignore_patterns("*.pyc.*")
            shutil.copytree(source / folder / "__pycache__", target / folder / "__pycache__", ignore=unfinished)
    return target


def copy_made(template: Path, target: Path) -> Path:
    """A copy of a tree that was made once. They share what git and Python replace and never write into: fewer files."""

    def copy(source: str, place: str) -> None:
        if source.endswith(".pyc") or "/.git/objects/" in source:
            os.link(source, place)
        else:
            shutil.copy2(source, place)

    return Path(shutil.copytree(template, target, copy_function=copy))


def write_checksums(tree: Path) -> None:
    """The tree has taken the kit over, as a fork has."""
    files = {path.relative_to(tree).as_posix(): path.read_bytes() for path in tree.rglob("*") if path.is_file()}
    tracked = {path: content for path, content in files.items() if "__pycache__" not in path}
    (tree / PACKAGE / "kit" / "CHECKSUMS").write_text(listing(of_kit(tracked, PACKAGE)))


def make_environment(tree: Path) -> Path:
    """Its interpreter. `make` takes the environment as made; modules of the project come from `tree`."""
    installed = Path(pytest.__file__).parents[1]  # in a copy's environment: that of the first one
    environment = tree / ".venv"
    packages = environment / Path(sysconfig.get_path("purelib")).relative_to(sys.prefix)
    packages.mkdir(parents=True)
    (packages / "tree.pth").write_text(f"{tree}\n{installed}\n")
    for hook in installed.glob("*coverage.pth"):  # measures the processes that tests start
        shutil.copy(hook, packages)
    shutil.copy(Path(sys.prefix, "pyvenv.cfg"), environment)
    binaries = environment / "bin"
    binaries.mkdir()
    for script in Path(sys.prefix, "bin").iterdir():
        copy = binaries / script.name
        if script.is_symlink() or not script.read_bytes().startswith(b"#!"):
            copy.symlink_to(os.path.realpath(script))
        else:
            copy.write_bytes(script.read_bytes().replace(os.fsencode(sys.prefix), os.fsencode(environment)))
            copy.chmod(0o755)
    mark_as_made(tree)
    return binaries / "python"


def take_types(tree: Path) -> None:
    """What mypy has read of the installed packages, where it has run: it takes longer than to read the project."""
    if (ROOT / ".mypy_cache").is_dir():
        shutil.copytree(ROOT / ".mypy_cache", tree / ".mypy_cache")


def mark_as_made(tree: Path) -> None:
    """So that `make` installs nothing."""
    for mark in (".ready", ".testable"):
        (tree / ".venv" / mark).touch()


def commit(tree: Path) -> None:
    """Everything in it, into a repository of its own. In one file of git's, as one for each takes longer to copy."""
    in_one_file = ["-c", "core.bigFileThreshold=1"]
    for command in (["init", "-q"], [*in_one_file, "add", "-A"], [*_AUTHOR, "commit", "-qm", "As it is"]):
        subprocess.run(["git", *command], cwd=tree, check=True)


def tracked(tree: Path) -> list[str]:
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=tree, check=True, capture_output=True, text=True).stdout
    return listed.split("\0")[:-1]


def files(top: Path) -> dict[str, tuple[int, int]]:
    """The size and time of everything below it but the log of calls."""
    found = {path: path.lstat() for path in top.rglob("*") if path.is_file() and path.name != "calls.jsonl"}
    return {str(path): (stat.st_size, stat.st_mtime_ns) for path, stat in found.items()}
