"""Keep the declared outputs in a directory that a command has written to, and remove trees."""

import os
import shutil
import stat
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

_MAX_DEPTH = 100


def keep_outputs(directory: Path, outputs: list[str]) -> list[str]:
    """Make the outputs in this directory read-only, and remove everything else.

    Return the paths of the files that were kept. Raise ValueError if an output is missing, or if it
    is not a file or a directory of files.
    """
    if directory.is_symlink():
        raise ValueError("its directory was replaced with a link")
    os.chmod(directory, 0o700)
    files: list[str] = []
    for name in os.listdir(directory):
        files += _keep_or_remove(directory, name, outputs)
    for path in outputs:
        if not os.path.lexists(directory / path):
            raise ValueError(f"it did not write its output {path!r}")
    return files


def _keep_or_remove(directory: Path, path: str, outputs: list[str]) -> Iterator[str]:
    """Keep the file or directory at this path if it belongs to the outputs. Otherwise, remove it.

    Yield the paths of the files that were kept.
    """
    full_path = directory / path
    # An output can be a directory. Then everything in it belongs to the output.
    is_output = any(f"{path}/".startswith(f"{output}/") for output in outputs)
    contains_output = any(output.startswith(f"{path}/") for output in outputs)
    is_directory = stat.S_ISDIR(full_path.lstat().st_mode)
    if is_directory and (is_output or contains_output):
        if path.count("/") > _MAX_DEPTH:
            raise ValueError(f"its output {path!r} is more than {_MAX_DEPTH} directories deep")
        os.chmod(full_path, 0o700)
        for name in os.listdir(full_path):
            yield from _keep_or_remove(directory, f"{path}/{name}", outputs)
    elif is_output:
        _make_read_only(full_path, path)
        yield path
    else:
        force_remove(full_path)


def _make_read_only(full_path: Path, path: str) -> None:
    """Make a file read-only. Raise ValueError if it is not a regular file."""
    status = full_path.lstat()
    if stat.S_ISLNK(status.st_mode):
        raise ValueError(f"its output {path!r} is a link")
    if not stat.S_ISREG(status.st_mode):
        raise ValueError(f"its output {path!r} is not a regular file")
    if status.st_nlink > 1:
        # The file has another name, perhaps one of the user, and must stay writable there.
        copy = full_path.with_name(os.urandom(8).hex())
        shutil.copy2(full_path, copy)
        os.replace(copy, full_path)
    os.chmod(full_path, status.st_mode & 0o555 | 0o400)


def force_remove(path: Path) -> None:
    """Remove a file or a tree, even if it is read-only or very deep. Ignore failures."""
    try:
        # If it is a link, this removes the link, and not what it leads to.
        path.unlink()
    except OSError:
        # It is a directory, or it is not there.
        _remove_directory(path)


def _remove_directory(top: Path) -> None:
    """Remove a directory and everything in it.

    Each directory inside is first moved to the top, where its path is short. Otherwise, a command
    could leave a tree that is so deep that removing it takes minutes, or that is too deep for
    shutil.rmtree(), which is recursive.
    """
    waiting = [top]
    while waiting:
        directory = waiting.pop()
        for entry in _entries(directory):
            with suppress(OSError):
                if entry.is_dir(follow_symlinks=False):
                    # To move a read-only directory is not permitted.
                    os.chmod(entry.path, 0o700)
                    moved = top / os.urandom(8).hex()
                    os.rename(entry.path, moved)
                    waiting.append(moved)
                else:
                    os.unlink(entry.path)
        if directory != top:
            with suppress(OSError):
                os.rmdir(directory)
    with suppress(OSError):
        os.rmdir(top)


def _entries(directory: Path) -> list[os.DirEntry[str]]:
    """Return what is in a directory, even if it is read-only. Return nothing if that fails."""
    try:
        os.chmod(directory, 0o700)
        with os.scandir(directory) as entries:
            return list(entries)
    except OSError:
        return []
