"""Replace the kit of this project with a newer one: `python -m acme.kit.upgrade FROM`.

FROM is the folder of a newer kit, a checkout of a project that has it, or a wheel or an sdist. The
integer in the file REVISION says which of two kits is newer. An upgrade

1. checks that git can undo it: nothing differs from the last commit, and the kit was not edited;
2. writes the newer kit next to the older one, into a folder that cannot be imported;
3. exchanges the two folders in one step, and deletes the older one;
4. raises the requirements in pyproject.toml;
5. runs `make check`.

If an upgrade is killed, it may leave the folder of step 2. The next upgrade deletes it, and so does
`--restore`. `--restore` undoes an upgrade that was not committed.

There is a whole kit at every instant, so each command that starts during an upgrade works. Two
things limit this:

* A few file systems cannot exchange two folders. There, step 3 renames one folder after the other.
  Between the two renames there is no kit, and no command starts. If the upgrade is killed at that
  instant, `git restore .` brings the kit back.
* A command that is already running when the kit is replaced may fail. The kit imports some modules
  only when it needs them, and a module of the newer kit may not fit those of the older one.
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
    CHECKSUMS_NAME,
    KIT_FOLDER,
    checksums_text,
    describe_edited,
    differing_files,
    edited_files,
    kit_files,
)
from .folder_exchange import ExchangeUnsupported, exchange
from .kit_source import NoUsableKit, read_kit
from .program import KIT, PACKAGE
from .project import (
    ROOT,
    describe_os_error,
    has_uncommitted_changes,
    run_git,
    tracked_files,
)
from .requirements import RaisedRequirements, raise_requirements
from .safety.flock import EXCLUSIVE, try_lock

_NEW_KIT_FOLDER = KIT_FOLDER.with_name(".new-kit")
"""Next to the kit. A folder with this name cannot be a part, because it cannot be imported."""

_OLD_KIT_FOLDER = KIT_FOLDER.with_name(".old-kit")
"""Where the older kit is for a moment, if the file system cannot exchange two folders."""

_PYPROJECT_FILE = ROOT / "pyproject.toml"
_CONSTRAINTS_FILE = ROOT / "constraints.txt"

_UPGRADED_PATHS = (f"{PACKAGE}/kit", "pyproject.toml", "constraints.txt")
"""The paths that an upgrade can change, relative to the directory of the project."""

_RESTORE_COMMAND = f"python -m {KIT}.upgrade --restore"

_STASH_ARGUMENTS = (
    "stash",
    "push",
    "--quiet",
    # Otherwise, a file of the newer kit would stay if .gitignore has a pattern for its name.
    "--all",
    "--message",
    "an upgrade of the kit",
    "--",
    *_UPGRADED_PATHS,
)
"""The arguments of git that undo the changes of an upgrade, and keep a copy of them."""

_USAGE = f"""Usage: python -m {KIT}.upgrade FROM
       python -m {KIT}.upgrade --restore

FROM is the folder of a newer kit, a checkout of a project that has it, or a wheel or an sdist.
--restore undoes an upgrade that was not committed."""

_ENDING_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
"""The signals that ask a process to exit: Ctrl-C, `kill`, and a closed terminal."""


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
        """Return the text of a file. Raise Refused if it is missing or is not text."""
        if path not in self.files:
            raise Refused(f"The newer kit has no {path}. Nothing was changed.")
        try:
            return self.files[path].decode()
        except UnicodeDecodeError:
            raise Refused(f"{path} of the newer kit is not text. Nothing was changed.") from None


def main(args: list[str]) -> int:
    """Upgrade the kit, or restore it. Return the exit code."""
    is_restore = args == ["--restore"]
    has_source = len(args) == 1 and not args[0].startswith("-")
    if not is_restore and not has_source:
        raise SystemExit(_USAGE)
    if f"{PACKAGE}.kit" != KIT:
        distribution = KIT.partition(".")[0]
        raise SystemExit(
            f"The kit is not a folder of this project: it is in the package {distribution}. "
            f"Upgrade that package, for example with pip install --upgrade {distribution}."
        )
    try:
        with _signals_raise_interrupted(), _upgrade_lock():
            if is_restore:
                restore()
                return 0
            return upgrade(Path(args[0]))
    except (Refused, NoUsableKit) as error:
        raise SystemExit(str(error)) from None
    except OSError as error:
        raise SystemExit(
            f"The upgrade failed: {describe_os_error(error)}. "
            f"If the kit was replaced already, this undoes the upgrade: {_RESTORE_COMMAND}"
        ) from None
    except Interrupted as interrupted:
        # End by the same signal, this time without a handler: a shell that runs this in a script
        # then sees the signal, and ends the script too.
        signal.signal(interrupted.number, signal.SIG_DFL)
        os.kill(os.getpid(), interrupted.number)
        raise


def upgrade(source: Path) -> int:
    """Replace the kit with the one in `source`, and check the project. Return the exit code.

    Raise Refused or NoUsableKit if it is not replaced.
    """
    if not CHECKSUMS_FILE.exists():
        raise Refused("This project develops the kit itself: its kit has no CHECKSUMS.")
    newer_kit = _read_newer_kit(source)
    old_revision = current_revision()
    if newer_kit.revision == old_revision:
        _print_lines(f"The kit already has revision {old_revision}. Nothing was changed.")
        return 0
    _refuse_unsafe_upgrade(newer_kit)
    # Find out everything before anything changes. Afterwards, the older CHANGELOG is gone.
    changelog_lines = _new_changelog_lines(newer_kit)
    requirements = _requirements_with(newer_kit)

    try:
        _write_new_kit_folder(newer_kit)
        # The project must not get a newer kit with the requirements of the older one.
        with _signals_blocked():
            _put_new_kit_in_place()
            _write_requirements(requirements)
    finally:
        # It contains the older kit now, or the newer one if the upgrade has failed.
        _delete_if_exists(_NEW_KIT_FOLDER)

    _print_lines(
        f"The kit was upgraded from revision {old_revision} to {newer_kit.revision}.",
        *requirements.changes,
        *changelog_lines,
    )
    return _check_project()


def restore() -> None:
    """Undo an upgrade that was not committed, and print what was done.

    Changes to the same files, made since the upgrade, are not lost: git keeps them in its stash.
    Raise Refused if git does not track the kit. Then there would be no kit afterwards.
    """
    if f"{PACKAGE}/kit/{CHECKSUMS_FILE.name}" not in tracked_files():
        raise Refused("git does not track the kit, so it cannot restore it. Nothing was changed.")
    leftovers = [folder for folder in (_NEW_KIT_FOLDER, _OLD_KIT_FOLDER) if folder.exists()]
    for folder in leftovers:
        shutil.rmtree(folder)
    # An upgrade changes the kit first. If that is unchanged, other changes are those of the user.
    uncommitted_changes = run_git("status", "--porcelain", "--", f"{PACKAGE}/kit")
    if uncommitted_changes:
        run_git(*_STASH_ARGUMENTS)
        _print_lines(
            "The kit is as it was in the last commit.",
            "What the upgrade had changed is in git's stash: git stash show",
        )
    elif leftovers:
        _print_lines("The kit was unchanged. What a killed upgrade had left was deleted.")
    else:
        _print_lines(
            f"There was nothing to restore: the kit, revision {current_revision()}, is as it was "
            "in the last commit.",
            "If you have committed the upgrade, undo that commit with git revert.",
        )


def current_revision() -> int:
    """Return the revision of the kit that this project has now."""
    return int((KIT_FOLDER / "REVISION").read_text())


def _read_newer_kit(source: Path) -> Kit:
    """Return the kit in `source`. Raise NoUsableKit if there is none, or if it was edited there."""
    files = read_kit(source)
    try:
        revision = int(files["REVISION"])
    except ValueError:
        raise NoUsableKit(f"{source} has a kit whose REVISION is not a number.") from None
    # The kit has no checksums in the project that develops it. Any other project has taken it
    # from somewhere, and its checksums show whether it was edited there.
    if CHECKSUMS_NAME in files:
        checksums = files[CHECKSUMS_NAME].decode(errors="replace")
        edited_paths = differing_files(checksums, files)
        if edited_paths:
            listed_paths = ", ".join(f"kit/{path}" for path in edited_paths)
            raise NoUsableKit(f"{source} has a kit that was edited: {listed_paths}.")
    return Kit(revision, files)


def _refuse_unsafe_upgrade(newer_kit: Kit) -> None:
    """Raise Refused, with every reason, if git could not undo the upgrade or the kit is older."""
    problems = []
    revision = current_revision()
    if newer_kit.revision < revision:
        problems.append(f"The kit has revision {revision}. Revision {newer_kit.revision} is older.")
    if has_uncommitted_changes():
        problems.append("Files differ from the last commit. Commit them, or undo them with git.")
    untracked_paths = _untracked_files()
    if untracked_paths:
        problems.append(
            f"git does not track {untracked_paths[0]}, so it could not undo the upgrade. Add what "
            "is missing with git add --force, and commit it."
        )
    edited_paths = edited_files()
    if edited_paths:
        problems.append(describe_edited(edited_paths))
    if problems:
        raise Refused("\n".join([*problems, "Nothing was changed."]))


def _untracked_files() -> list[str]:
    """Return the files that an upgrade can change, and that git would not bring back."""
    paths = {f"{PACKAGE}/kit/{path}" for path in kit_files(KIT_FOLDER)}
    paths |= {_PYPROJECT_FILE.name, _CONSTRAINTS_FILE.name}
    return sorted(paths - set(tracked_files()))


def _new_changelog_lines(newer_kit: Kit) -> list[str]:
    """Return the lines of the newer CHANGELOG that the one of this project does not have."""
    known_lines = set((KIT_FOLDER / "CHANGELOG.md").read_text().splitlines())
    newer_lines = newer_kit.text("CHANGELOG.md").splitlines()
    return [line for line in newer_lines if line not in known_lines]


def _requirements_with(newer_kit: Kit) -> RaisedRequirements:
    """Return the texts that pyproject.toml and constraints.txt must have for the newer kit."""
    needs = newer_kit.text("NEEDS.toml")
    pyproject = _PYPROJECT_FILE.read_text()
    constraints = _CONSTRAINTS_FILE.read_text()
    try:
        return raise_requirements(needs, pyproject, constraints)
    except (KeyError, TypeError, ValueError) as error:
        message = f"NEEDS.toml of the newer kit is wrong ({error!r}). Nothing was changed."
        raise Refused(message) from None


def _write_new_kit_folder(newer_kit: Kit) -> None:
    """Write the newer kit, with its checksums, to the folder next to the older one."""
    # A killed upgrade may have left one.
    _delete_if_exists(_NEW_KIT_FOLDER)
    checksums = checksums_text(newer_kit.files).encode()
    contents = {**newer_kit.files, CHECKSUMS_NAME: checksums}
    for path, content in contents.items():
        file = _NEW_KIT_FOLDER / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content)


def _put_new_kit_in_place() -> None:
    """Exchange the names of the two folders, so that the newer kit is the kit of the project."""
    try:
        exchange(str(_NEW_KIT_FOLDER), str(KIT_FOLDER))
    except ExchangeUnsupported:
        _delete_if_exists(_OLD_KIT_FOLDER)
        KIT_FOLDER.rename(_OLD_KIT_FOLDER)
        # There is no kit now. If this process is killed here, `git restore .` brings it back.
        _NEW_KIT_FOLDER.rename(KIT_FOLDER)
        _delete_if_exists(_OLD_KIT_FOLDER)


def _write_requirements(requirements: RaisedRequirements) -> None:
    """Write pyproject.toml and constraints.txt, each only if its text changes.

    An unchanged file keeps its date. With a new date, make would build the environment again.
    """
    if requirements.pyproject != _PYPROJECT_FILE.read_text():
        _PYPROJECT_FILE.write_text(requirements.pyproject)
    if requirements.constraints != _CONSTRAINTS_FILE.read_text():
        _CONSTRAINTS_FILE.write_text(requirements.constraints)


def _check_project() -> int:
    """Run `make check` with the newer kit. Return the exit code of the upgrade."""
    stash_command = shlex.join(["git", *_STASH_ARGUMENTS])
    how_to_undo = (
        f"To undo the upgrade: {_RESTORE_COMMAND}",
        f"The same without the kit: {stash_command}",
    )
    _print_lines(*how_to_undo, "Now make check examines the project.")
    environment = dict(os.environ)
    # If make runs this upgrade, its own options are in this variable. They are not for this run.
    environment.pop("MAKEFLAGS", None)
    make = subprocess.run(["make", "check"], cwd=ROOT, env=environment, check=False)  # noqa: S607
    if make.returncode == 0:
        _print_lines("make check passes with the newer kit. Next: make test, then commit.")
        return 0
    _print_lines(
        "make check fails with the newer kit, see above. Correct your code, or undo the upgrade.",
        *how_to_undo,
    )
    return 1


@contextmanager
def _upgrade_lock() -> Iterator[None]:
    """Lock the project against other upgrades during the block. Raise Refused if one is running."""
    # A directory can be locked like a file. The kernel releases the lock when the process exits.
    project_descriptor = os.open(ROOT, os.O_RDONLY)
    try:
        if not try_lock(project_descriptor, EXCLUSIVE):
            raise Refused("Another upgrade of this project is running. Wait until it has ended.")
        yield
    finally:
        os.close(project_descriptor)


@contextmanager
def _signals_raise_interrupted() -> Iterator[None]:
    """Raise Interrupted when a signal arrives in the block, so that its `finally` parts run."""
    previous_handlers = {}
    for number in _ENDING_SIGNALS:
        # If the caller ignores a signal, as nohup does, it stays ignored.
        if signal.getsignal(number) is not signal.SIG_IGN:
            previous_handlers[number] = signal.signal(number, _raise_interrupted)
    try:
        yield
    finally:
        for number, handler in previous_handlers.items():
            signal.signal(number, handler)


def _raise_interrupted(number: int, _frame: FrameType | None) -> None:
    raise Interrupted(number)


@contextmanager
def _signals_blocked() -> Iterator[None]:
    """Delay signals until the end of the block, so that none stops it between two of its steps."""
    previous_mask = signal.pthread_sigmask(signal.SIG_BLOCK, _ENDING_SIGNALS)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, previous_mask)


def _delete_if_exists(folder: Path) -> None:
    if folder.exists():
        shutil.rmtree(folder)


def _print_lines(*lines: str) -> None:
    for line in lines:
        sys.stdout.write(f"{line}\n")
    # Otherwise, what make prints next could appear before these lines.
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
