"""Takes a newer kit: `python -m acme.kit.upgrade FROM`; `--restore` puts everything back.

FROM is a checkout, an sdist or a wheel of a project that carries the newer kit. Its own code, in a process of its own,
replaces the kit, tests/kit and docs/kit as a whole, under the names of this project, and raises the versions that the
kit needs in pyproject.toml and constraints.txt. A kit that was edited, and a tree that differs from the last commit,
are refused: git can bring back what was there. What fails or is interrupted is put back at once. The other process ends
with this one, however this one ends. At the end `make check test` says whether all of it is right.
"""

import os
import re
import shutil
import signal
import stat
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from _thread import start_new_thread
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory

from .checksums import LIST, folders, listing, of_kit, refuse_edited
from .program import PACKAGE, PROGRAM
from .project import ROOT as TOP
from .project import run_git
from .project import tracked_files as tracked
from .rename import Names, rename_files
from .safety.flock import EXCLUSIVE, try_lock

_LARGEST_BYTES = 100 * 1024 * 1024
_INTO = "--into"
_ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def read(source: Path) -> dict[str, bytes]:
    """The files of a checkout that git tracks, or of an archive, by their paths: no link, and nothing outside of it."""
    files, left = {}, _LARGEST_BYTES
    for name, size, is_plain, content in _members(source):
        path, left = PurePosixPath(name), left - size
        is_plain = is_plain and name.isprintable() and "\\" not in name
        if not is_plain or path.is_absolute() or ".." in path.parts or left < 0:
            raise SystemExit(f"{source} is not taken: {name!r} is a link, no plain path inside of it, or too large.")
        files[name] = content()
    return files


def _members(archive: Path) -> Iterator[tuple[str, int, bool, Callable[[], bytes]]]:
    if archive.is_dir():
        top = archive.resolve()
        for name in (name for name in tracked(archive) if (top / name).is_file()):
            is_plain = (top / name).resolve() == top / name
            if is_plain or "kit" in name.split("/"):  # nothing is taken from elsewhere: links are all right there
                yield name, 0, is_plain, (top / name).read_bytes
    elif not archive.is_file():
        raise SystemExit(f"{archive} is neither a checkout nor an sdist or a wheel.")
    elif zipfile.is_zipfile(archive):
        with zipfile.ZipFile(archive) as wheel:
            for info in (info for info in wheel.infolist() if not info.is_dir()):
                kind = stat.S_IFMT(info.external_attr >> 16)
                yield info.filename, info.file_size, kind in (0, stat.S_IFREG), partial(wheel.read, info)
    else:
        with tarfile.open(archive) as sdist:
            for member in (member for member in sdist if not member.isdir()):
                file = sdist.extractfile(member) if member.isreg() else None
                yield member.name, member.size, file is not None, file.read if file else bytes


def laid_out(files: dict[str, bytes]) -> tuple[str, dict[str, bytes]]:
    """The name of the package, and what a checkout has of it, the kit's tests and pages, and the pins."""
    above = [path.removesuffix("kit/upgrade.py") for path in files if path.endswith("/kit/upgrade.py")]
    beside = [path.removesuffix("tests/kit/busy.py") for path in files if path.endswith("tests/kit/busy.py")]
    if not above or not beside:
        raise SystemExit("It carries no kit that can be taken: no kit/upgrade.py, or no tests/kit.")
    package, top = min(above, key=len), min(beside, key=len)
    name = package.split("/")[-2]
    tree = {path.replace(package, f"{name}/", 1): files[path] for path in files if path.startswith(package)}
    wanted = (f"{top}tests/kit/", f"{top}docs/kit/", f"{top}constraints.txt")
    return name, tree | {path.removeprefix(top): files[path] for path in files if path.startswith(wanted)}


def refuse_what_git_could_not_restore() -> None:
    if not LIST.exists():
        raise SystemExit("There is no CHECKSUMS: this is where the kit is developed.")
    if run_git("status", "--porcelain", "--untracked-files=no"):
        raise SystemExit("Files differ from the last commit. Commit them first, or undo an upgrade with --restore.")
    refuse_edited()


def be_the_only_one() -> int:
    """Until this process has ended, and those that inherit the descriptor."""
    lock = os.open(TOP, os.O_RDONLY)
    if not try_lock(lock, EXCLUSIVE):
        raise SystemExit("Another upgrade of this project is running: wait for it.")
    return lock


def upgrade(source: Path) -> int:
    lock = be_the_only_one()
    refuse_what_git_could_not_restore()
    ending = {number for number in _ENDING if signal.getsignal(number) == signal.SIG_DFL}
    signal.pthread_sigmask(signal.SIG_BLOCK, ending)  # what they would interrupt is short, and must be put back
    with TemporaryDirectory(prefix="kit-") as scratch:
        name = _unpack(source, Path(scratch))
        _say(f"Undo: python -m {PACKAGE}.kit.upgrade --restore, or git restore --staged --worktree .")
        problem = _problem(lock, scratch, "-m", f"{name}.kit.upgrade", _INTO, str(TOP), PACKAGE, PROGRAM)
        problem = problem or _problem(lock, str(TOP), "-c", "import docs.kit.generate as g; g.write_index()")
        if problem := "interrupted" if signal.sigpending() & ending else problem:
            restore()
            sys.stderr.write(f"{source} is not taken: {problem}. Everything is as it was.\n")
    signal.pthread_sigmask(signal.SIG_UNBLOCK, ending)
    if problem:
        return 1
    status = subprocess.run(["make", "check", "test"], cwd=TOP, check=False).returncode  # noqa: S607
    _say("The new kit is in place: commit it." if status == 0 else "Something fails with the new kit: see above.")
    return status


def _unpack(source: Path, scratch: Path) -> str:
    """The name of its package."""
    try:
        name, files = laid_out(read(source))
        changelog = files.get(f"{name}/kit/CHANGELOG.md", b"").decode()
        _write(scratch, files)
    except Exception as error:  # each format has its own
        raise SystemExit(f"{source} cannot be read: {error}. Nothing was changed.") from None
    before = (TOP / PACKAGE / "kit" / "CHANGELOG.md").read_text()
    if re.findall(r"^## [0-9.]+", before, re.MULTILINE)[0] not in changelog:  # our version: no newer kit forgets it
        raise SystemExit(f"{source} has an older kit than this project.")
    taken = files.get(f"{name}/kit/CHECKSUMS")
    if taken and taken.decode() != listing(of_kit(files, name)):
        raise SystemExit(f"{source} has a kit that was edited.")
    _say(*(line for line in changelog.splitlines() if line not in before.splitlines()))
    return name


def _write(directory: Path, files: dict[str, bytes]) -> None:
    for path, content in files.items():
        (directory / path).parent.mkdir(parents=True, exist_ok=True)
        (directory / path).write_bytes(content)


def _problem(lock: int, directory: str, *words: str) -> str:
    """The last line of a call of Python that fails. It has the lock too; its stdin ends when this process has ended."""
    stdin, _ = os.pipe()
    call, environ = [sys.executable, "-B", *words], {**os.environ, "PYTHONPATH": directory}
    ran = subprocess.run(
        call, cwd=directory, env=environ, stdin=stdin, stderr=subprocess.PIPE, text=True, check=False, pass_fds=[lock]
    )
    return [f"status {ran.returncode}", *ran.stderr.splitlines()][-1] if ran.returncode else ""


def take(tree: Path, package: str, program: str) -> None:
    """In the process of the newer kit: put it in the place of the older one."""
    files = {path.relative_to(TOP).as_posix(): path.read_bytes() for path in TOP.rglob("*") if path.is_file()}
    made = rename_files(files, Names(PACKAGE, PROGRAM), Names(package, program))
    made[f"{package}/kit/CHECKSUMS"] = listing(of_kit(made, package)).encode()
    beside = _raised(tree, made.get("constraints.txt", b"").decode())
    _sweep(tree)
    taken = folders(package)
    _write(tree, {path.replace("/kit/", "/.kit.new/", 1): made[path] for path in made if path.startswith(taken)})
    for folder in taken:
        new, old = ((tree / folder).with_name(name) for name in (".kit.new", ".kit.old"))
        (tree / folder).rename(old)
        new.rename(tree / folder)
        shutil.rmtree(old)
    for name, text in beside.items():
        if text != (tree / name).read_text():  # a newer file would make the environment anew
            (tree / name).write_text(text)


def _raised(tree: Path, newer_pins: str) -> dict[str, str]:
    """The files with the versions that the kit needs: in its list in pyproject.toml, and its pin."""
    needs = tomllib.loads((TOP / PACKAGE / "kit" / "NEEDS.toml").read_text())
    project, pins = (tree / "pyproject.toml").read_text(), (tree / "constraints.txt").read_text()
    lists = {"dependencies": needs["project"]["dependencies"], "dev": needs["dependency-groups"]["dev"]}
    missing = [(key, each) for key, needed in lists.items() for each in needed if f'"{each}"' not in project]
    for key, requirement in missing:
        (name,) = re.findall(r"^[\w-]+", requirement)
        project, count = re.subn(rf'"{name}(\[[^]"]*\])? *[<>=!~][^"]*"', f'"{requirement}"', project, count=1)
        if not count:
            project = re.sub(rf"^({key} = \[)", rf'\1\n    "{requirement}",', project, count=1, flags=re.MULTILINE)
        pin = "".join(re.findall(rf"^{name}==.*\n", newer_pins, re.MULTILINE))
        pins = re.sub(rf"^{name}==.*\n", "", pins, flags=re.MULTILINE) + pin
        _say(f"pyproject.toml: {requirement}")
    return {"pyproject.toml": project, "constraints.txt": pins}


def _sweep(tree: Path) -> None:
    for left in (*tree.glob("*/.kit.new"), *tree.glob("*/.kit.old")):
        shutil.rmtree(left)


def restore() -> None:
    """What differs is not lost: git keeps it in its stash."""
    _sweep(TOP)
    message = "what an upgrade of the kit was restored from"
    paths = [*folders(PACKAGE), "pyproject.toml", "constraints.txt", "docs/index.md"]
    run_git("stash", "push", "--quiet", "--include-untracked", "--message", message, "--", *paths)


def _say(*lines: str) -> None:
    sys.stdout.write("".join(f"{line}\n" for line in lines))
    sys.stdout.flush()


def main(args: list[str]) -> int:
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # or Python would print a traceback
    if args == ["--restore"]:
        be_the_only_one()
        restore()
        _say("Restored. What differed is in `git stash list`.")
    elif len(args) == 4 and args[0] == _INTO:
        start_new_thread(lambda: (os.read(0, 1), os._exit(1)), ())
        take(Path(args[1]), args[2], args[3])
    elif len(args) == 1 and not args[0].startswith("-"):
        return upgrade(Path(args[0]))
    else:
        raise SystemExit(f"Usage: python -m {PACKAGE}.kit.upgrade FROM | --restore")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
