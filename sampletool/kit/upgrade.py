"""Replace the kit of this project by a newer one: `python -m acme.kit.upgrade FROM`.

FROM is the folder of a newer kit, a checkout of a project that has it, or a wheel or an sdist. The
integer in the file REVISION says which of two kits is newer. An upgrade

1. checks that git can undo it: nothing differs from the last commit, and the kit was not edited;
2. writes the newer kit next to the older one, into a folder that cannot be imported;
3. exchanges the two folders in one step, and deletes the older one;
4. raises the requirements in pyproject.toml;
5. runs `make check`.

So there is a whole kit at every instant, and commands keep working during an upgrade. If an upgrade
is killed, it may leave the folder of step 2. The next upgrade deletes it, and so does `--restore`.
`--restore` undoes an upgrade that was not committed.
"""

import os
import shlex
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import FrameType

from .checksums import (
    CHECKSUMS_FILE,
    KIT_FOLDER,
    NAME,
    describe_edited,
    differing_files,
    edited_files,
    listing,
)
from .folder_exchange import ExchangeUnsupported, exchange
from .kit_source import NoUsableKit, read_kit
from .program import KIT, PACKAGE
from .project import ROOT, has_uncommitted_changes, run_git
from .requirements import RaisedRequirements, raise_requirements
from .safety.flock import EXCLUSIVE, try_lock

_NEW_FOLDER = KIT_FOLDER.with_name(".new-kit")
"""Next to the kit. A folder with this name cannot be a part, because it cannot be imported."""

_PROJECT_FILE = ROOT / "pyproject.toml"
_PINS_FILE = ROOT / "constraints.txt"

_CHANGED_PATHS = (f"{PACKAGE}/kit", "pyproject.toml", "constraints.txt")
"""What an upgrade can change, below the directory of the project."""

_UNDO = f"python -m {KIT}.upgrade --restore"

_STASH = ("stash", "push", "--quiet", "--include-untracked", "--message", "an upgrade of the kit")
"""The arguments of git that put the changes of an upgrade away, and keep them."""

_USAGE = f"""Usage: python -m {KIT}.upgrade FROM
       python -m {KIT}.upgrade --restore

FROM is the folder of a newer kit, a checkout of a project that has it, or a wheel or an sdist.
--restore undoes an upgrade that was not committed."""

_ENDING_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Refused(Exception):
    """The upgrade cannot be done. The message is for the user."""


class Interrupted(BaseException):
    """A signal has asked this process to exit."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number


@dataclass(frozen=True)
class Kit:
    """The files of a kit that is to replace the one of this project."""

    revision: int
    files: dict[str, bytes]
    """The content of each file, by its path in the kit."""

    def text(self, path: str) -> str:
        """Return the text of a file. Raise Refused if the kit does not have it."""
        if path not in self.files:
            raise Refused(f"The newer kit has no {path}. Nothing was changed.")
        return self.files[path].decode()


def main(args: list[str]) -> int:
    """Upgrade the kit, or restore it. Return the exit code."""
    if len(args) != 1 or (args[0].startswith("-") and args[0] != "--restore"):
        raise SystemExit(_USAGE)
    if f"{PACKAGE}.kit" != KIT:
        distribution = KIT.partition(".")[0]
        raise SystemExit(
            f"The kit is not a folder of this project: it is in the package {distribution}. "
            f"Upgrade that package, for example with pip install --upgrade {distribution}."
        )
    try:
        with _interruptible(), _only_one():
            if args[0] == "--restore":
                restore()
                return 0
            return upgrade(Path(args[0]))
    except (Refused, NoUsableKit) as error:
        raise SystemExit(str(error)) from None
    except Interrupted as interrupted:
        # The caller learns from the way in which this process ends that a signal has ended it.
        signal.signal(interrupted.number, signal.SIG_DFL)
        os.kill(os.getpid(), interrupted.number)
        raise


def upgrade(source: Path) -> int:
    """Replace the kit by the one in `source`, and check the project. Return the exit code.

    Raise Refused or NoUsableKit if it is not replaced.
    """
    if not CHECKSUMS_FILE.exists():
        raise Refused("This project develops the kit itself: its kit has no CHECKSUMS.")
    newer = _read_newer(source)
    old_revision = own_revision()
    if newer.revision == old_revision:
        _print_lines(f"The kit already has revision {old_revision}. Nothing was changed.")
        return 0
    _refuse_problems(newer)
    news = _news(newer)
    requirements = _raised_requirements(newer)

    try:
        _write_new_folder(newer)
        with _signals_blocked():
            _take_new_folder()
            _write_requirements(requirements)
    finally:
        _delete(_NEW_FOLDER)

    _print_lines(
        f"The kit was upgraded from revision {old_revision} to {newer.revision}.",
        *requirements.changes,
        *news,
    )
    return _check_project()


def own_revision() -> int:
    """Return the revision of the kit of this project."""
    return int((KIT_FOLDER / "REVISION").read_text())


def restore() -> None:
    """Undo an upgrade that was not committed, and say what was done.

    Changes to the same files, made since the upgrade, are not lost: git keeps them in its stash.
    """
    left_folder = _NEW_FOLDER.exists()
    _delete(_NEW_FOLDER)
    changes = run_git("status", "--porcelain", "--", *_CHANGED_PATHS)
    if changes:
        run_git(*_STASH, "--", *_CHANGED_PATHS)
        _print_lines(
            "The kit is as it was in the last commit.",
            "What the upgrade had changed is in git's stash: git stash show",
        )
    elif left_folder:
        _print_lines("The kit was unchanged. A folder that a killed upgrade had left was deleted.")
    else:
        _print_lines(
            f"There was nothing to restore: the kit, revision {own_revision()}, is as it was in "
            "the last commit.",
            "If you have committed the upgrade, undo that commit with git revert.",
        )


def _read_newer(source: Path) -> Kit:
    """Return the kit in `source`. Raise NoUsableKit if there is none, or if it was edited there."""
    files = read_kit(source)
    try:
        revision = int(files["REVISION"])
    except ValueError:
        raise NoUsableKit(f"{source} has a kit whose REVISION is not a number.") from None
    if NAME in files:
        # This project, too, has taken its kit from another one.
        edited = differing_files(files[NAME].decode(), files)
        if edited:
            listed = ", ".join(f"kit/{path}" for path in edited)
            raise NoUsableKit(f"{source} has a kit that was edited: {listed}.")
    return Kit(revision, files)


def _refuse_problems(newer: Kit) -> None:
    """Raise Refused with everything that prevents the upgrade."""
    problems = []
    revision = own_revision()
    if newer.revision < revision:
        problems.append(f"The kit has revision {revision}. Revision {newer.revision} is older.")
    if has_uncommitted_changes():
        problems.append("Files differ from the last commit. Commit them, or undo them with git.")
    edited = edited_files()
    if edited:
        problems.append(describe_edited(edited))
    if problems:
        raise Refused("\n".join([*problems, "Nothing was changed."]))


def _news(newer: Kit) -> list[str]:
    """Return the lines of the newer CHANGELOG that the one of this project does not have."""
    known_lines = set((KIT_FOLDER / "CHANGELOG.md").read_text().splitlines())
    lines = newer.text("CHANGELOG.md").splitlines()
    return [line for line in lines if line not in known_lines]


def _raised_requirements(newer: Kit) -> RaisedRequirements:
    """Return what pyproject.toml and constraints.txt must be like for the newer kit."""
    project = _PROJECT_FILE.read_text()
    pins = _PINS_FILE.read_text()
    return raise_requirements(newer.text("NEEDS.toml"), project, pins)


def _write_requirements(requirements: RaisedRequirements) -> None:
    """Write the files that change.

    An unchanged file is not written: if it were newer, make would build the environment again.
    """
    if requirements.project != _PROJECT_FILE.read_text():
        _PROJECT_FILE.write_text(requirements.project)
    if requirements.pins != _PINS_FILE.read_text():
        _PINS_FILE.write_text(requirements.pins)


def _write_new_folder(newer: Kit) -> None:
    """Write the newer kit next to the older one, with its checksums."""
    # A killed upgrade may have left one.
    _delete(_NEW_FOLDER)
    files = {**newer.files, NAME: listing(newer.files).encode()}
    for path, content in files.items():
        file = _NEW_FOLDER / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content)


def _take_new_folder() -> None:
    """Give the new folder the name of the kit. The older kit gets the name of the new folder."""
    try:
        exchange(str(_NEW_FOLDER), str(KIT_FOLDER))
    except ExchangeUnsupported:
        # Between the two renames, there is no kit. If this process is killed there, `git restore .`
        # brings it back.
        old_folder = _NEW_FOLDER.with_name(".old-kit")
        _delete(old_folder)
        KIT_FOLDER.rename(old_folder)
        _NEW_FOLDER.rename(KIT_FOLDER)
        _delete(old_folder)


def _check_project() -> int:
    """Run the rules for the project with the newer kit. Return the exit code."""
    stash = shlex.join(["git", *_STASH, "--", *_CHANGED_PATHS])
    undo = [f"To undo the upgrade: {_UNDO}", f"The same without the kit: {stash}"]
    _print_lines(*undo, "Now make check examines the project.")
    # This process may itself run in make, whose options are not meant for another one.
    environ = {**os.environ}
    environ.pop("MAKEFLAGS", None)
    checked = subprocess.run(["make", "check"], cwd=ROOT, env=environ, check=False)  # noqa: S607
    if checked.returncode == 0:
        _print_lines("make check passes with the newer kit. Next: make test, then commit.")
        return 0
    _print_lines(
        "make check fails with the newer kit, see above. Correct your code, or undo the upgrade.",
        *undo,
    )
    return 1


@contextmanager
def _only_one() -> Iterator[None]:
    """Keep other upgrades of this project out. Raise Refused if one is running."""
    descriptor = os.open(ROOT, os.O_RDONLY)
    try:
        if not try_lock(descriptor, EXCLUSIVE):
            raise Refused("Another upgrade of this project is running. Wait until it has ended.")
        yield
    finally:
        os.close(descriptor)


@contextmanager
def _interruptible() -> Iterator[None]:
    """Raise Interrupted when a signal arrives, so that `finally` blocks run."""
    handlers = {}
    for number in _ENDING_SIGNALS:
        # If the caller ignores a signal, as nohup does, it stays ignored.
        if signal.getsignal(number) is not signal.SIG_IGN:
            handlers[number] = signal.signal(number, _raise_interrupted)
    try:
        yield
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)


def _raise_interrupted(number: int, _frame: FrameType | None) -> None:
    raise Interrupted(number)


@contextmanager
def _signals_blocked() -> Iterator[None]:
    """Make signals wait until the block has ended. What is in the block belongs together."""
    signal.pthread_sigmask(signal.SIG_BLOCK, _ENDING_SIGNALS)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, _ENDING_SIGNALS)


def _delete(folder: Path) -> None:
    """Delete a folder that may be missing."""
    if folder.exists():
        shutil.rmtree(folder)


def _print_lines(*lines: str) -> None:
    for line in lines:
        sys.stdout.write(f"{line}\n")
    # What make prints next comes after these lines.
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
