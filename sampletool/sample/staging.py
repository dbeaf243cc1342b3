"""A fresh directory in which a command sees what it declared, and nothing else.

Declared inputs stand at their workspace-relative paths, as links; the outputs of what it needs under `out/NAME/`.
What was not declared is missing, unless it is looked for by another path.
"""

import os
import shutil
import stat
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path

_PASSED_ON = ("PATH", "HOME", "TMPDIR", "LANG", "LC_ALL", "TZ")
_DEEPEST = 100


def stage(directory: Path, workspace: Path, inputs: Iterable[str], needs: Mapping[str, Path]) -> None:
    """Make the directory. It must not be there: who finds one has found another call's."""
    directory.mkdir()
    places = {path: workspace / path for path in inputs} | {f"out/{name}": version for name, version in needs.items()}
    for path, leads_to in places.items():
        os.makedirs(os.path.dirname(f"{directory}/{path}"), exist_ok=True)
        os.symlink(leads_to, f"{directory}/{path}")


def passed_on() -> dict[str, str]:
    """What staged commands see of the environment, beside what they declare: the little that any program needs."""
    return {name: os.environ[name] for name in _PASSED_ON if name in os.environ}


def collect(directory: Path, outputs: Iterable[str]) -> tuple[Path, list[str]]:
    """A directory with just the declared outputs, and the files in it; ValueError names one that is not there."""
    files: list[str] = []
    if directory.is_symlink():
        raise ValueError("its directory is a link now")
    os.chmod(directory, 0o700)
    for path in outputs:
        above = [f"{directory}/{path[:at]}" for at, char in enumerate(path) if char == "/"]
        if any(map(os.path.islink, above)) or not os.path.lexists(f"{directory}/{path}"):
            raise ValueError(f"it did not write its output {path!r}")
        files += _files_at(f"{directory}/{path}", path)
    if sorted(os.listdir(directory)) == sorted(outputs):
        return directory, sorted(files)
    clean = directory.with_name(f".{directory.name}")
    clean.mkdir()
    for path in outputs:
        (clean / path).parent.mkdir(parents=True, exist_ok=True)
        os.rename(directory / path, clean / path)
    return clean, sorted(files)


def remove(directory: Path) -> None:
    """The whole of it, also what a command has made read-only or very deep; what cannot be removed stays.

    What is below is moved up before it is emptied, so that no path gets long and nothing is called by itself.
    """
    if directory.is_symlink():
        directory.unlink()  # what it leads to is somebody else's
        return
    mark = os.urandom(8).hex()
    left = [str(directory)]
    for number, found in enumerate(left):
        with suppress(OSError):
            os.chmod(found, 0o700)
            for entry in list(os.scandir(found)):
                if not entry.is_dir(follow_symlinks=False):
                    os.unlink(entry)
                    continue
                left.append(entry.path if number == 0 else f"{directory}/{mark}{len(left)}")
                if number > 0:
                    os.chmod(entry, 0o700)
                    os.rename(entry, left[-1])
    for found in reversed(left):
        with suppress(OSError):
            os.rmdir(found)


def _files_at(found: str, path: str) -> list[str]:
    """The regular files at or below; ValueError if anything else is there."""
    looked = os.lstat(found)
    if stat.S_ISREG(looked.st_mode):
        if looked.st_nlink > 1:  # also somebody else's, who would change it, and whose it would be made read-only
            beside = f"{found}.{os.urandom(8).hex()}"  # a name that nobody can have put a link at
            shutil.copy2(found, beside)
            os.replace(beside, found)
        return [path]
    if not stat.S_ISDIR(looked.st_mode):
        raise ValueError(f"its output {path!r} is {'a link' if stat.S_ISLNK(looked.st_mode) else 'not a regular file'}")
    if path.count("/") > _DEEPEST:
        raise ValueError(f"its output {path!r} lies more than {_DEEPEST} directories deep")
    os.chmod(found, looked.st_mode | 0o700)
    names = os.listdir(found)
    return [file for name in names for file in _files_at(f"{found}/{name}", f"{path}/{name}")]
