"""A fresh directory in which a command sees what it declared, and nothing else.

Declared inputs stand at their workspace-relative paths, as links; the outputs of what it needs under `out/NAME/`.
What was not declared is missing, so a fingerprint of the declared things cannot lie.
"""

import os
import stat
from collections.abc import Iterable, Mapping
from pathlib import Path

_PASSED_ON = ("PATH", "HOME", "TMPDIR", "LANG", "LC_ALL", "TZ", "SYSTEMROOT")


def stage(directory: Path, workspace: Path, inputs: Iterable[str], needs: Mapping[str, Path]) -> None:
    """Make the directory. It must not be there: who finds one has found another call's."""
    directory.mkdir()
    made = {directory}
    for path in inputs:
        parent = (directory / path).parent
        if parent not in made:
            parent.mkdir(parents=True, exist_ok=True)
            made.add(parent)
        os.symlink(workspace / path, directory / path)
    if needs:
        (directory / "out").mkdir(exist_ok=True)
    for name, version in needs.items():
        os.symlink(version, directory / "out" / name)


def environment(declared: Mapping[str, str], workspace: Path, session_id: str) -> dict[str, str]:
    """What a staged command sees of the environment: the little that any program needs, and what it declared."""
    passed_on = {name: os.environ[name] for name in _PASSED_ON if name in os.environ}
    return {**passed_on, **declared, "TOOL_WORKSPACE": str(workspace), "TOOL_SESSION_ID": session_id}


def collect(directory: Path, outputs: Iterable[str]) -> tuple[Path, list[str]]:
    """A directory with just the declared outputs, and the files in it; ValueError names one that is not there."""
    files: list[str] = []
    for path in outputs:
        found = directory / path
        if found.is_symlink() or not found.exists():
            raise ValueError(f"it did not write its output {path!r}")
        if not found.is_file() and not found.is_dir():
            raise ValueError(f"its output {path!r} is not a regular file")
        files += [path] if found.is_file() else _files_below(directory, found)
    if sorted(os.listdir(directory)) == sorted(outputs):
        return directory, sorted(files)
    clean = directory.with_name(f".{directory.name}")
    clean.mkdir()
    for path in outputs:
        (clean / path).parent.mkdir(parents=True, exist_ok=True)
        os.rename(directory / path, clean / path)
    return clean, sorted(files)


def _files_below(directory: Path, below: Path) -> list[str]:
    found = []
    for parent, directories, names in os.walk(below, onerror=_stop):
        for name in (*directories, *names):
            path = os.path.join(parent, name)
            if not stat.S_ISDIR(mode := os.lstat(path).st_mode) and not stat.S_ISREG(mode):
                kind = "a link" if stat.S_ISLNK(mode) else "not a regular file"
                raise ValueError(f"its output {os.path.relpath(path, directory)!r} is {kind}")
        found += [os.path.relpath(os.path.join(parent, name), directory) for name in names]
    return found


def _stop(error: OSError) -> None:
    """What cannot be listed cannot be known to be whole."""
    raise ValueError(f"its output {error.filename} cannot be read") from error
