"""The places where the tool keeps its files: settings, state, sessions, locks and workspaces.

A name in a shared directory may already exist as another user's trap. So directories are created
private, and then checked. The variables of the tool come first, such as TOOL_CONFIG_DIR, then those
of XDG, then the usual place of the platform.
"""

import os
import pwd
import shlex
import stat
import sys
from contextlib import suppress
from pathlib import Path

from .contract.errors import ToolError
from .contract.library_errors import from_library_error
from .program import PACKAGE, PROGRAM, WORKSPACE_DIRECTORY, WORKSPACE_FILE, env_variable
from .safety.atomic_file import FOR_ALL, opened, write_all
from .safety.errors import UnsafeDirectory, UnsafePath
from .safety.private_directory import private_directory, refuse_unsafe
from .safety.toml_file import lock_beside

_ROOT_UID = 0

_TEMPORARY_DIRECTORY_VARIABLES = ("TMPDIR", "TEMP", "TMP")
"""The variables that can name the temporary directory, in the order in which `tempfile` reads them.

`tempfile` itself would first write a file to the directory, and might choose the current directory.
"""

_DEFAULT_TEMPORARY_DIRECTORY = "/tmp"  # noqa: S108


def config_file() -> Path:
    """Return the path of the user's settings, which may not exist.

    Raise UnsafeDirectory if other users can write to the directory. Raise ToolError if all
    users can write to the file.
    """
    directory = _place("CONFIG")
    owners = {os.geteuid(), _ROOT_UID}
    with suppress(FileNotFoundError, NotADirectoryError):
        # If the directory is a link, both the link and the directory that it leads to are checked.
        refuse_unsafe(directory, directory.lstat(), owners)
        refuse_unsafe(directory, directory.stat(), owners)
    file = directory / "config.toml"
    with suppress(FileNotFoundError, NotADirectoryError):
        _refuse_writable_by_all(file, file.stat())
    return file


def state_directory() -> Path:
    """Return the directory for what is kept between commands, such as the log."""
    return _place("STATE")


def session_root() -> Path:
    """Return the directory that contains the sessions of this user."""
    base = _DEFAULT_TEMPORARY_DIRECTORY
    for name in _TEMPORARY_DIRECTORY_VARIABLES:
        path = os.environ.get(name, "")
        if os.path.isabs(path) and os.path.isdir(path):
            base = path
            break
    # The uid keeps the users of one machine apart.
    return Path(base) / f"{PROGRAM}-{os.geteuid()}"


def home_directory() -> Path | None:
    """Return the home directory of this user, or None if it is unknown."""
    # An empty HOME means the same as none. Otherwise, it would mean the root directory.
    home = os.environ.get("HOME", "")
    if not home:
        try:
            home = pwd.getpwuid(os.geteuid()).pw_dir
        except KeyError:
            # In a container, a process can have a uid that no user has.
            return None
    return Path(home)


def find_workspace(start: Path) -> Path | None:
    """Return the nearest directory that is a workspace: `start`, or one above it.

    The settings of a workspace name programs to run. So raise UnsafeDirectory if another user owns
    the settings file, and ToolError if all users can write to it. Raise UnsafePath if it is a link
    to a file that does not exist.
    """
    for directory in _searched_directories(start):
        file = directory / WORKSPACE_FILE
        try:
            link_status = file.lstat()
        except (FileNotFoundError, NotADirectoryError):
            continue
        try:
            status = file.stat()
        except (FileNotFoundError, NotADirectoryError):
            _refuse_dangling_link(file)
            # It is no link: another process has just removed the file.
            continue
        strangers = {status.st_uid, link_status.st_uid} - {os.geteuid(), _ROOT_UID}
        if strangers:
            reason = f"its {WORKSPACE_FILE} belongs to another user (uid {min(strangers)})"
            raise UnsafeDirectory(str(directory), reason)
        _refuse_writable_by_all(file, status)
        return directory
    return None


def _refuse_dangling_link(file: Path) -> None:
    """Raise UnsafePath if a settings file that cannot be found is a link to nothing."""
    # Without this, the tool would look for settings elsewhere: it would read and change those of a
    # directory above, or those of the user, not the file that the link should lead to.
    if file.is_symlink():
        target = os.readlink(file)
        raise UnsafePath(str(file), f"it is a link to {target}, which does not exist")


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
    reason = f"every user can write to it (mode {stat.S_IMODE(status.st_mode):04o})"
    error = from_library_error(UnsafeDirectory(str(file), reason))
    # chmod follows a link. With the path of the link, people would not see which file it changes.
    target = os.path.realpath(file)
    command = f"chmod o-w {shlex.quote(target)}"
    raise error.with_hint(f"Check what is in the file, then run: {command}")


def _searched_directories(start: Path) -> list[Path]:
    """Return the directories in which to look for a workspace: `start`, then those above it.

    `start` is always searched. Above it, the search ends before a ceiling directory. If `start`
    itself is one, nothing above it is searched.
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

    Tests and sandboxes set the variable, so that a file above their directory cannot become their
    workspace. Git has a similar one, but ignores a ceiling that is the current directory.
    """
    value = os.environ.get(env_variable("CEILING_DIRECTORIES"), "")
    ceilings = set()
    for entry in value.split(os.pathsep):
        # A relative entry is ignored: it would mean another directory for each process.
        if os.path.isabs(entry):
            # The search goes through real paths, so a ceiling that is a link would never be met.
            ceilings.add(Path(os.path.realpath(entry)))
    return ceilings


def all_locks(workspace: Path | None) -> list[Path]:
    """Return the lock files that a command may use: those of the workspace and of the user."""
    return [path for path in lock_paths(workspace) if path.is_file()]


def lock_paths(workspace: Path | None) -> list[Path]:
    """Return every path with the name of a lock file, even if it is no regular file."""
    directories = [state_directory() / "locks", config_file().parent]
    if workspace is not None:
        directories.insert(0, workspace / WORKSPACE_DIRECTORY / "locks")
    paths = []
    for directory in directories:
        paths += sorted(directory.glob("*.lock"))
    return paths


def lock_name(path: Path) -> str:
    """Return the name of a lock, as people know it, from the path of its file."""
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
    """Return the path of a lock file in a workspace. Create its directory if it is missing."""
    directory = private_directory(make_workspace_directory(workspace) / "locks")
    return directory / f"{name}.lock"


def toml_lock(resolved: Path) -> Path:
    """Return the path of the lock file of a settings file, whose path has no links."""
    # A workspace has a directory for its locks. The lock of any other file is next to the file.
    if resolved.name == WORKSPACE_FILE:
        return workspace_lock(resolved.parent, WORKSPACE_FILE)
    return lock_beside(resolved)


def _place(kind: str) -> Path:
    """Return the directory for one kind of files: CONFIG or STATE.

    Raise ToolError if it is not an absolute path: a relative one would be a different directory
    for each current directory.
    """
    own_variable = env_variable(f"{kind}_DIR")
    own_value = os.environ.get(own_variable)
    if own_value:
        return _require_absolute(own_value, own_variable, own_variable)
    # The specification of XDG says to ignore a relative path.
    xdg_value = os.environ.get(f"XDG_{kind}_HOME", "")
    if os.path.isabs(xdg_value):
        return Path(xdg_value) / PACKAGE
    if sys.platform == "linux":
        place = _place_on_linux(kind)
    else:
        place = _place_elsewhere(kind)
    return _require_absolute(place, "the home directory", "HOME")


def _place_on_linux(kind: str) -> str:
    """Return the same as `_place_elsewhere`, without importing platformdirs.

    That import takes 3.6% of `config get` (1.7 ms).
    """
    home = home_directory()
    if home is None:
        reason = "the home directory is unknown, because HOME is not set"
        raise _wrong_variable("~", reason, "HOME")
    if kind == "CONFIG":
        return str(home / ".config" / PACKAGE)
    return str(home / ".local" / "state" / PACKAGE)


def _place_elsewhere(kind: str) -> str:
    """Return the usual directory of this platform."""
    from platformdirs import user_config_dir, user_state_dir

    if kind == "CONFIG":
        return user_config_dir(PACKAGE, appauthor=False)
    return user_state_dir(PACKAGE, appauthor=False)


def _require_absolute(path: str, source: str, variable: str) -> Path:
    """Return the path. Raise ToolError, which names the source, if it is relative.

    `variable` is the environment variable that the user has to correct.
    """
    if not os.path.isabs(path):
        raise _wrong_variable(path, f"{source} is not an absolute path", variable)
    return Path(path)


def _wrong_variable(path: str, reason: str, variable: str) -> ToolError:
    """Return the error for a directory that a variable does not name correctly."""
    error = from_library_error(UnsafeDirectory(path, reason))
    # The usual hint is about the owner and the mode of the directory, which are not the problem.
    return error.with_hint(f"Set the variable {variable} to an absolute path.")
