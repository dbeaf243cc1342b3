"""Write a project to disk: all of it, with its first commit, or nothing.

The project is written to a directory next to its final place, which is then renamed. The kernel
lets this replace nothing but an empty directory, so of two commands for one place, one fails.

After kill -9, the directory next to the final place stays behind. While a command runs, it holds a
lock on its directory. So the next command can tell which directories have no owner, and removes
them.
"""

import os
import re
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

from ..kit.context import Context
from ..kit.contract.file_errors import FileNotFound
from ..kit.safety.flock import EXCLUSIVE, try_lock
from .errors import DirectoryNotFree, GitFailed
from .git import git

_SCRATCH_SUFFIX = ".fork"
_SCRATCH_NAME = re.compile(rf"\..+\.[0-9a-f]{{16}}{re.escape(_SCRATCH_SUFFIX)}")
"""The name of a directory next to the final place, such as `.acme.0123456789abcdef.fork`."""


def refuse_used_directory(directory: Path) -> None:
    """Raise an error unless the directory is new or empty, and its parent exists."""
    if not directory.parent.is_dir():
        hint = "Create this directory, or choose another one with --to DIR."
        raise FileNotFound(str(directory.parent), suggestion=hint)
    if not directory.exists():
        return
    if not directory.is_dir():
        raise DirectoryNotFree(str(directory), found="it is not a directory")
    if any(directory.iterdir()):
        raise DirectoryNotFree(str(directory), found="it is not empty")


def write_project(context: Context, files: Mapping[str, bytes], directory: Path) -> bool:
    """Write the files to a new or empty directory. Return whether there is a first commit.

    There is none if git does not know the name and the address of the user.
    """
    remove_leftovers(directory.parent)
    try:
        with _scratch_directory(directory, context.request_id) as scratch:
            for name, content in files.items():
                context.signals.check()
                path = scratch / name
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(content)
            is_committed = _commit(scratch)
            context.signals.check()
            os.rename(scratch, directory)
    except OSError as error:
        # Perhaps another command has used the directory meanwhile.
        refuse_used_directory(directory)
        # The message must not name the scratch directory, of which the user knows nothing.
        error.filename = str(directory)
        raise
    return is_committed


@contextmanager
def _scratch_directory(directory: Path, request_id: str) -> Iterator[Path]:
    """Create a locked directory next to `directory`. Remove it, unless it was renamed.

    The lock shows other commands that the directory is in use: `remove_leftovers` removes each
    directory that has the name of a scratch directory and is not locked. This one must not have
    such a name before it is locked, so it is created with another name, locked, and then renamed.
    """
    unlocked = directory.with_name(f".{directory.name}.{request_id}")
    scratch = directory.with_name(f".{directory.name}.{request_id}{_SCRATCH_SUFFIX}")
    unlocked.mkdir()
    descriptor = os.open(unlocked, os.O_RDONLY)
    try:
        # On a file system without locks, this fails for every command. Nothing is removed there.
        with suppress(OSError):
            try_lock(descriptor, EXCLUSIVE)
        os.rename(unlocked, scratch)
        yield scratch
    finally:
        # If an error has come before the renaming, the directory still has its first name.
        for path in (unlocked, scratch):
            shutil.rmtree(path, ignore_errors=True)
        os.close(descriptor)


def remove_leftovers(parent: Path) -> None:
    """Remove the scratch directories of commands that were killed."""
    for path in parent.iterdir():
        if _SCRATCH_NAME.fullmatch(path.name) and _is_unowned(path):
            shutil.rmtree(path, ignore_errors=True)


def _is_unowned(path: Path) -> bool:
    """Return whether no command holds the lock on a directory."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    except OSError:
        # It was removed meanwhile, or it belongs to another user, or it is no directory.
        return False
    try:
        return try_lock(descriptor, EXCLUSIVE)
    except OSError:
        return False
    finally:
        os.close(descriptor)


def _commit(directory: Path) -> bool:
    """Create a repository with all files. Return whether they are committed."""
    git(directory, "init", "--quiet", "--template=", "--initial-branch=main")
    git(directory, "add", "--all", "--force")
    if not _has_identity(directory):
        return False
    git(directory, "commit", "--quiet", "--message=Begin")
    return True


def _has_identity(directory: Path) -> bool:
    """Return whether git knows the name and the address of the user."""
    try:
        for role in ("GIT_AUTHOR_IDENT", "GIT_COMMITTER_IDENT"):
            git(directory, "var", role)
    except GitFailed:
        return False
    return True
