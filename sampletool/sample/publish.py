"""Outputs that appear all at once, and are known to be whole before they are used again.

`out/NAME` is a link to `.tool/out/NAME-FINGERPRINT/`, replaced by rename: a reader that resolves it once sees one
version whole. What was built of what stands in a journal, one line each, with the SHA-256 of every file: after kill -9
the lines are there; after a power cut a torn line is passed over, and its target is built again. Only the holder of
the exclusive build lock writes.
"""

import hashlib
import json
import os
import shutil
import stat
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from ..kit.program import WORKSPACE_DIRECTORY
from ..kit.safety.atomic_file import opened, read_regular, replace, write_all
from ..kit.safety.private_directory import check_private, private_directory

_APPEND = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_BLOCK_BYTES = 1024 * 1024
_JOURNAL_BYTES = 1024 * 1024 * 1024
_KEPT_SECONDS = 3600
"""How long a version that is no longer linked stays, for readers from outside who take no lock."""
_DEEPEST = 100
_UNKNOWN = "what was read of it is not known"


class Built(NamedTuple):
    """What a target is made of, and what it made: the digest of each file."""

    run: list[str]
    wanted: list[str]
    inputs: dict[str, str]
    needs: dict[str, str]
    """Of the outputs of each, as one."""
    version: str = ""
    outputs: dict[str, str] = {}  # noqa: RUF012 - never changed


_TYPES = (list, list, dict, dict, str, dict)
"""Of the members of Built."""


def digest(path: str | Path, check: Callable[[], None] = lambda: None) -> str:
    """Of the content, and of whether it can be executed; empty if it cannot be read. `check` may raise meanwhile."""
    found = hashlib.sha256()
    with suppress(OSError), open(path, "rb", buffering=0) as file:
        while block := file.read(_BLOCK_BYTES):
            check()
            found.update(block)
        return found.hexdigest() + ("x" if os.fstat(file.fileno()).st_mode & 0o111 else "")
    return ""


class Outputs:
    """The outputs of one workspace. Leaving the block flushes the journal."""

    def __init__(self, workspace: Path, check: Callable[[], None] = lambda: None) -> None:
        self.workspace = workspace
        self.check = check
        """Called now and then while files are read; may raise."""
        self.built: dict[str, Built] = {}
        self.directory = workspace / WORKSPACE_DIRECTORY / "out"
        if os.path.lexists(self.directory):
            check_private(self.directory)
        self._links = workspace / "out"
        self._journal = workspace / WORKSPACE_DIRECTORY / "built.jsonl"
        self._has_written = False
        self._read_journal()

    def __enter__(self) -> "Outputs":
        return self

    def __exit__(self, *_error: object) -> None:
        """Write the journal anew: flushed once for all, and without the lines that are old."""
        if self._has_written:
            replace(self._journal, [_line(name, built) for name, built in self.built.items()])

    def damage(self, name: str) -> str | None:
        """Why the linked version of this name cannot be used; None if it is whole."""
        built = self.built[name]
        if self._read_link(name) != built.version:
            return f"out/{name} does not lead to the last build"
        version = f"{self.directory}/{built.version}"
        for path, before in built.outputs.items():
            if (now := digest(f"{version}/{path}", self.check)) != before:
                return f"the output {path} {'was changed' if now else 'is missing'}"
        for path in built.wanted:
            if path not in built.outputs and not os.path.isdir(f"{version}/{path}"):
                return f"the output {path} is missing"
        found = {f"{parent}/{name}"[len(version) + 1 :] for parent, _, names in os.walk(version) for name in names}
        return None if found == built.outputs.keys() else "its outputs have a file more or less than were built"

    def content_of(self, name: str) -> str:
        """One word for what is in the outputs of this name, for those that need them."""
        return _as_one(self.built[name].outputs)

    def must_be_free(self, name: str) -> None:
        """A real file or directory where the link belongs is not replaced: it is a ValueError."""
        if self._links.is_symlink() or (self._links.exists() and not self._links.is_dir()):
            raise ValueError(f"{self._links} is not a directory of ours")
        if not self._read_link(name) and os.path.lexists(link := f"{self._links}/{name}"):
            raise ValueError(f"{link} is in the way")

    def version_of(self, name: str) -> Path:
        """The directory that the link leads to; one that is not there, if there is no link."""
        return self.directory / (self._read_link(name) or f".{name}")

    def publish(self, name: str, built: Built, directory: Path) -> str | None:
        """Make what a command left in its directory the current version; ValueError if an output is not as it must be.

        What was read of an input or a need that has changed meanwhile is not known: the target will be built again,
        and what is returned says why. The directory is renamed into place, with nothing but the outputs, then linked.
        """
        changed = [path for path, before in built.inputs.items() if digest(self.workspace / path, self.check) != before]
        damaged = [need for need in built.needs if self.damage(need) is not None]
        inputs = built.inputs | dict.fromkeys(changed, _UNKNOWN)
        needs = built.needs | dict.fromkeys(damaged, _UNKNOWN)
        if directory.is_symlink():
            raise ValueError("its directory is a link now")
        os.chmod(directory, 0o700)
        files = [file for path in os.listdir(directory) for file in _settle(directory, path, built.wanted)]
        for path in built.wanted:
            if not os.path.lexists(directory / path):
                raise ValueError(f"it did not write its output {path!r}")
        version = f"{name}-{_as_one(built)}.{os.urandom(4).hex()}"
        outputs = {file: digest(directory / file, self.check) for file in files}
        built = built._replace(inputs=inputs, needs=needs, version=version, outputs=outputs)
        private_directory(self.directory)
        self._links.mkdir(exist_ok=True)
        os.rename(directory, self.directory / version)
        # Recorded before it is linked: if it cannot be recorded, what is linked stays the last that was.
        with opened(self._journal, _APPEND) as descriptor:
            write_all(descriptor, _line(name, built))  # after kill -9 it is there
        self.built[name] = built
        self._has_written = True
        beside = f"{self.directory}/.link"  # under the lock one name is enough, and the next call replaces it
        with suppress(FileNotFoundError):
            os.unlink(beside)
        os.symlink(f"../{WORKSPACE_DIRECTORY}/out/{version}", beside)
        os.replace(beside, f"{self._links}/{name}")
        said = [*(f"the input {path}" for path in changed), *(f"what it needs of {need}" for need in damaged)]
        return f"{said[0]} changed while it ran, so it will be built again" if said else None

    def prune(self) -> None:
        """Remove versions that nobody has linked for an hour. Readers take the lock shared, so none is inside."""
        current = {built.version for built in self.built.values()} | {*map(self._read_link, self.built)}
        for version in os.scandir(self.directory):
            old = time.time() - version.stat(follow_symlinks=False).st_ctime > _KEPT_SECONDS
            if version.name not in current and old:
                remove(Path(version.path))

    def _read_link(self, name: str) -> str:
        """The version a link names; empty where there is no link."""
        try:
            return os.path.basename(os.readlink(f"{self._links}/{name}"))
        except OSError:
            return ""

    def _read_journal(self) -> None:
        """What is not a whole line of ours is passed over; its target is built again."""
        lines: list[bytes] = []
        with suppress(FileNotFoundError):
            lines = read_regular(self._journal, _JOURNAL_BYTES, follow=False).splitlines()
        for line in lines:
            with suppress(ValueError, TypeError, AttributeError, RecursionError):
                name, members = json.loads(line)
                built = Built(**members)
                if all(map(isinstance, built, _TYPES)):
                    self.built[name] = built


def _settle(directory: Path, path: str, wanted: list[str]) -> Iterator[str]:
    """Make what was wanted of this path read-only, and remove all else; the files that stay."""
    full = directory / path
    mode = full.lstat().st_mode
    around = [output for output in wanted if f"{path}/".startswith(f"{output}/")]
    if stat.S_ISDIR(mode) and (inside := around or [output for output in wanted if output.startswith(f"{path}/")]):
        if path.count("/") > _DEEPEST:
            raise ValueError(f"its output {path!r} lies more than {_DEEPEST} directories deep")
        os.chmod(full, 0o700)
        for name in os.listdir(full):
            yield from _settle(directory, f"{path}/{name}", inside)
    elif not around:
        remove(full)
    elif not stat.S_ISREG(mode):
        raise ValueError(f"its output {path!r} is {'a link' if stat.S_ISLNK(mode) else 'not a regular file'}")
    else:
        if full.lstat().st_nlink > 1:  # another name of the file may be another user's, and would be made read-only
            copy = full.with_name(os.urandom(8).hex())
            shutil.copy2(full, copy)
            os.replace(copy, full)
        os.chmod(full, mode & 0o555 | 0o400)
        yield path


def remove(path: Path) -> None:
    """The whole of it, also what a command has made read-only or very deep; what cannot be removed stays."""
    with suppress(OSError):
        path.unlink()  # not what it leads to, if it is a link
        return
    with suppress(OSError, RecursionError):
        shutil.rmtree(path)
        return
    for command in (["chmod", "-R", "u+rwX"], ["rm", "-rf"]):
        subprocess.run([*command, "--", path], stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False)


def _line(name: str, built: Built) -> bytes:
    """It begins where a line that was torn ends."""
    return b"\n" + json.dumps([name, built._asdict()], separators=(",", ":")).encode()


def _as_one(value: object) -> str:
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()[:12]
