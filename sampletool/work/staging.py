"""A fresh directory in which a command sees what it declared, and nothing else.

Declared inputs stand at their workspace-relative paths, as links; the outputs of what it needs under `out/NAME/`.
What was not declared is missing, so a fingerprint of the declared things cannot lie.
"""

import os
import shutil
import stat
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path

_PASSED_ON = ("PATH", "HOME", "TMPDIR", "LANG", "LC_ALL", "TZ")


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
    """The whole of it, also what a command has made read-only; what cannot be removed stays."""
    shutil.rmtree(directory, ignore_errors=True)
    if directory.exists():
        for parent, _, _ in os.walk(directory):
            with suppress(OSError):
                os.chmod(parent, 0o700)
        shutil.rmtree(directory, ignore_errors=True)


def _files_at(found: str, path: str) -> list[str]:
    """The regular files at or below; ValueError if anything else is there."""
    mode = os.lstat(found).st_mode
    if stat.S_ISREG(mode):
        return [path]
    if not stat.S_ISDIR(mode):
        raise ValueError(f"its output {path!r} is {'a link' if stat.S_ISLNK(mode) else 'not a regular file'}")
    try:
        names = os.listdir(found)
    except OSError as error:  # what cannot be listed cannot be known to be whole
        raise ValueError(f"its output {path!r} cannot be read") from error
    return [file for name in names for file in _files_at(f"{found}/{name}", f"{path}/{name}")]
