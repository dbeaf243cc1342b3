"""Where things are kept: settings, state, sessions, and the workspace that a directory belongs to.

Directories are created private and then checked, because a name in a shared directory may already be
another user's trap. The tool's own variables override XDG ones, which override the platform's own places.
"""

import os
import stat
import sys
from contextlib import suppress
from pathlib import Path

from .contract.library_errors import from_library_error
from .program import PACKAGE, PROGRAM, WORKSPACE_DIRECTORY, WORKSPACE_FILE, variable
from .safety.atomic_file import FOR_ALL, opened, write_all
from .safety.errors import UnsafeDirectory
from .safety.private_directory import private_directory, refuse_unsafe
from .safety.toml_file import lock_beside

_TEMPORARY = ("TMPDIR", "TEMP", "TMP")
"""Variables that may name the temporary directory; the first one that is a directory wins, as in tempfile."""


def config_file() -> Path:
    """Return the path of the user's settings, which may not exist.

    Raise UnsafeDirectory if other users can write to the directory. Raise ToolError if all
    users can write to the file.
    """
    directory = _place("CONFIG")
    with suppress(FileNotFoundError, NotADirectoryError):
        for found in (directory.lstat(), directory.stat()):
            refuse_unsafe(directory, found, {os.geteuid(), 0})
    file = directory / "config.toml"
    with suppress(FileNotFoundError, NotADirectoryError):
        _refuse_writable_by_all(file, file.stat())
    return file


def state_directory() -> Path:
    return _place("STATE")


def session_root() -> Path:
    """One directory for each user of the machine, below the temporary directory."""
    named = (os.environ.get(name, "") for name in _TEMPORARY)
    base = next((path for path in named if os.path.isabs(path) and os.path.isdir(path)), "/tmp")  # noqa: S108
    return Path(base) / f"{PROGRAM}-{os.geteuid()}"


def find_workspace(start: Path) -> Path | None:
    """Return the nearest directory, here or above, that is a workspace.

    Its settings say what to run. So raise UnsafeDirectory if another user owns the settings file,
    and ToolError if all users can write to it.
    """
    for directory in _searched_directories(start):
        file = directory / WORKSPACE_FILE
        try:
            status = file.stat()
            owners = {status.st_uid, file.lstat().st_uid}
        except (FileNotFoundError, NotADirectoryError):
            continue
        if strangers := owners - {os.geteuid(), 0}:
            reason = f"its {WORKSPACE_FILE} belongs to another user (uid {min(strangers)})"
            raise UnsafeDirectory(str(directory), reason)
        _refuse_writable_by_all(file, status)
        return directory
    return None


def _refuse_writable_by_all(file: Path, status: os.stat_result) -> None:
    """Raise ToolError if all users of this machine can write to the settings file.

    Accept anything that is not a regular file.
    """
    # The group may write to it. With the umask 002, the default of many systems, every new file is
    # writable for its group, and the only member of this group is the owner. Where a team shares a
    # group, its members have agreed to trust each other. The members cannot be looked up reliably,
    # because a directory service on the network may have the list.
    if not status.st_mode & stat.S_IWOTH:
        return
    # Without this, a link to /dev/null would give the hint to change the mode of the device. What
    # reads the settings refuses such a file, with a reason that is true.
    if not stat.S_ISREG(status.st_mode):
        return
    import shlex  # Every run of the tool would import it, for 0.2 ms, and hardly one needs it.

    reason = f"every user can write to it (mode {stat.S_IMODE(status.st_mode):04o})"
    error = from_library_error(UnsafeDirectory(str(file), reason))
    # chmod follows a link. With the path of the link, people would not see which file it changes.
    target = os.path.realpath(file)
    command = f"chmod o-w {shlex.quote(target)}"
    raise error.with_hint(f"Check what is in the file, then run: {command}")


def _searched_directories(start: Path) -> list[Path]:
    """Return the directories in which to look for a workspace: `start`, then its parents, nearest first.

    `start` is always searched. Above it, the search ends before a ceiling directory. If `start` itself is one, nothing
    above it is searched.
    """
    ceilings = _ceiling_directories()
    searched = [start]
    if start in ceilings:
        return searched
    for parent in start.parents:
        if parent in ceilings:
            break
        searched.append(parent)
    return searched


def _ceiling_directories() -> set[Path]:
    """Return the directories that the search for a workspace must not enter from below.

    Tests and sandboxes set the variable, so that a file above their directory cannot become their workspace. Git has a
    similar one, but ignores a ceiling that is the current directory.
    """
    value = os.environ.get(variable("CEILING_DIRECTORIES"), "")
    ceilings = set()
    for entry in value.split(os.pathsep):
        # A relative entry is ignored: it would mean another directory for each process.
        if os.path.isabs(entry):
            # The search goes through real paths, so a ceiling that is a link would never be met.
            ceilings.add(Path(os.path.realpath(entry)))
    return ceilings


def all_locks(workspace: Path | None) -> list[Path]:
    """Every lock file that a call from here may have used: the workspace's, the user's outputs, the user's settings."""
    return [path for path in lock_paths(workspace) if path.is_file()]


def lock_paths(workspace: Path | None) -> list[Path]:
    """Return every path with the name of a lock file, also those of links, FIFOs and directories."""
    directories = [state_directory() / "locks", config_file().parent]
    if workspace is not None:
        directories.insert(0, workspace / WORKSPACE_DIRECTORY / "locks")
    paths = []
    for directory in directories:
        paths += sorted(directory.glob("*.lock"))
    return paths


def lock_name(path: Path) -> str:
    """What people call the lock of this file."""
    return path.name.removesuffix(".lock").lstrip(".")


def make_workspace_directory(workspace: Path) -> Path:
    """Create the directory of a workspace if it is missing: private, and ignored by git."""
    directory = private_directory(workspace / WORKSPACE_DIRECTORY)
    git_ignore = directory / ".gitignore"
    if _is_missing_or_empty(git_ignore):
        _write_git_ignore(git_ignore)
    return directory


def _is_missing_or_empty(path: Path) -> bool:
    """Return whether there is nothing at this path, or a regular file without content."""
    try:
        status = path.lstat()
    except FileNotFoundError:
        return True
    # A link, a FIFO or a directory was put there on purpose. It is left alone.
    if not stat.S_ISREG(status.st_mode):
        return False
    # The disk was full when an earlier command wrote the file.
    return status.st_size == 0


def _write_git_ignore(path: Path) -> None:
    """Write a file that makes git ignore everything in its directory."""
    # Another process could put a link or a FIFO there at this moment. O_NOFOLLOW refuses the link.
    # With O_NONBLOCK, opening the FIFO fails. Otherwise it would wait until the FIFO has a reader.
    flags = os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK
    with opened(path, flags, FOR_ALL) as descriptor:
        write_all(descriptor, b"*\n")


def workspace_lock(workspace: Path, name: str) -> Path:
    """The file of a lock that the calls of one workspace share."""
    return private_directory(make_workspace_directory(workspace) / "locks") / f"{name}.lock"


def toml_lock(resolved: Path) -> Path:
    """Return the path of the lock of a settings file: a workspace has a directory for its locks."""
    if resolved.name == WORKSPACE_FILE:
        return workspace_lock(resolved.parent, WORKSPACE_FILE)
    return lock_beside(resolved)


def _place(kind: str) -> Path:
    override = os.environ.get(variable(f"{kind}_DIR"))
    if override:
        return _absolute(override, variable(f"{kind}_DIR"))
    xdg = os.environ.get(f"XDG_{kind}_HOME", "")
    if os.path.isabs(xdg):
        return Path(xdg) / PACKAGE
    if sys.platform == "linux":  # the same without importing it, which would take longer than reading the settings
        place = os.path.expanduser(f"~/{'.config' if kind == 'CONFIG' else '.local/state'}/{PACKAGE}")
    else:
        from platformdirs import user_config_dir, user_state_dir

        place = (user_config_dir if kind == "CONFIG" else user_state_dir)(PACKAGE, appauthor=False)
    return _absolute(place, "the home directory")


def _absolute(path: str, source: str) -> Path:
    if not os.path.isabs(path):
        raise UnsafeDirectory(path, f"{source} is not an absolute path")
    return Path(path)
