"""Where things are kept: settings, state, sessions, and the workspace that a directory belongs to.

Directories are created private and then checked, because a name in a shared directory may already be
another user's trap. The tool's own variables override XDG ones, which override the platform's own places.
"""

import os
import sys
from contextlib import suppress
from pathlib import Path

from .program import PACKAGE, PROGRAM, WORKSPACE_DIRECTORY, WORKSPACE_FILE, variable
from .safety.errors import UnsafeDirectory
from .safety.private_directory import private_directory, refuse_unsafe
from .safety.toml_file import lock_beside

_TEMPORARY = ("TMPDIR", "TEMP", "TMP")
"""Variables that may name the temporary directory; the first one that is a directory wins, as in tempfile."""


def config_file() -> Path:
    """The user's settings. A directory that other users can write to is refused."""
    directory = _place("CONFIG")
    with suppress(FileNotFoundError, NotADirectoryError):
        for found in (directory.lstat(), directory.stat()):
            refuse_unsafe(directory, found, {os.geteuid(), 0})
    return directory / "config.toml"


def state_directory() -> Path:
    return _place("STATE")


def session_root() -> Path:
    """One directory for each user of the machine, below the temporary directory."""
    named = (os.environ.get(name, "") for name in _TEMPORARY)
    base = next((path for path in named if os.path.isabs(path) and os.path.isdir(path)), "/tmp")  # noqa: S108
    return Path(base) / f"{PROGRAM}-{os.geteuid()}"


def find_workspace(start: Path) -> Path | None:
    """The nearest directory, here or above, that is a workspace. A stranger's is refused: it says what to run."""
    for directory in _searched_directories(start):
        file = directory / WORKSPACE_FILE
        try:
            owners = {file.stat().st_uid, file.lstat().st_uid}
        except (FileNotFoundError, NotADirectoryError):
            continue
        if strangers := owners - {os.geteuid(), 0}:
            reason = f"its {WORKSPACE_FILE} belongs to another user (uid {min(strangers)})"
            raise UnsafeDirectory(str(directory), reason)
        return directory
    return None


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
    places = [state_directory() / "locks", config_file().parent]
    if workspace is not None:
        places.insert(0, workspace / WORKSPACE_DIRECTORY / "locks")
    return [path for place in places for path in sorted(place.glob("*.lock")) if path.is_file()]


def lock_name(path: Path) -> str:
    """What people call the lock of this file."""
    return path.name.removesuffix(".lock").lstrip(".")


def make_workspace_directory(workspace: Path) -> Path:
    """The workspace's own directory: private, and hidden from git."""
    directory = private_directory(workspace / WORKSPACE_DIRECTORY)
    ignore = directory / ".gitignore"
    if not ignore.is_symlink() and not (ignore.exists() and ignore.stat().st_size):  # empty: the disk was full then
        ignore.write_text("*\n")
    return directory


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
