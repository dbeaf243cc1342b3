"""Outputs that appear all at once, and are known to be whole before they are used again.

`out/NAME` is a link to `.tool/out/NAME-FINGERPRINT/`, replaced by rename: a reader that resolves it once sees one
version whole. What is in a version stands in a journal, one line each, with the SHA-256 of every file: after kill -9
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
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any

from sampletool.kit.program import WORKSPACE_DIRECTORY
from sampletool.kit.safety.atomic_file import flush, read_regular, replace, write_all
from sampletool.kit.safety.places import check_private, private_directory
from sampletool.sample.content import RACY_NANOSECONDS, Look, boot_id, look_at

_APPEND = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_JOURNAL_BYTES = 1024 * 1024 * 1024
_KEPT_SECONDS = 3600
"""How long a version that is no longer linked stays, for readers from outside who take no lock."""
_DEEPEST = 100


class Outputs:
    """The outputs of one workspace. Leaving the block flushes the journal."""

    def __init__(self, workspace: Path, check: Callable[[], None] = lambda: None, *, writable: bool = True) -> None:
        self.check = check
        """Called now and then while files are read; may raise."""
        self._writable = writable
        self.workspace = workspace
        self._links = workspace / "out"
        self._is_foreign = self._links.is_symlink() or (self._links.exists() and not self._links.is_dir())
        self._link_of: dict[str, str] = {}
        self.directory = workspace / WORKSPACE_DIRECTORY / "out"
        if os.path.lexists(self.directory):
            check_private(self.directory)
        self._journal = workspace / WORKSPACE_DIRECTORY / "built.jsonl"
        self._boot = boot_id()
        self._open = -1
        self.entries = _read_journal(self._journal)

    def __enter__(self) -> "Outputs":
        return self

    def __exit__(self, *_error: object) -> None:
        """Flush the journal once, for all that was built; rewrite it when most of it is old."""
        if self._open < 0:
            return
        flush(self._open)
        os.close(self._open)
        self._open = -1
        with self._journal.open("rb") as file:
            lines = sum(1 for _ in file)
        if lines > len(self.entries) + 100:
            replace(self._journal, b"".join(_line(name, entry) for name, entry in self.entries.items()))

    def trusted(self, entry: dict[str, Any] | None) -> dict[str, Any]:
        """The looks of an entry that may save reading files again: only if they are of this boot."""
        return entry if entry is not None and entry["boot"] == self._boot else {"inputs": {}, "outputs": {}}

    def damage(self, name: str) -> str | None:
        """Why the linked version of this name cannot be used; None if it is whole."""
        entry = self.entries[name]
        if self._read_link(name) != entry["version"]:
            return f"out/{name} does not lead to the last build"
        version = f"{self.directory}/{entry['version']}"
        known = self.trusted(entry)["outputs"]
        looks: dict[str, Look] = {}
        for path, before in entry["outputs"].items():
            try:
                looks[path] = look_at(f"{version}/{path}", known.get(path), self.check)
            except OSError:
                return f"the output {path} is missing"
            if looks[path][0] != before[0]:
                return f"the output {path} was changed"
        for path in entry["wanted"]:
            if path not in looks and not os.path.isdir(f"{version}/{path}"):
                return f"the output {path} is missing"
        # A directory that has another file has another time; what is deeper has to be walked.
        changed = os.stat(version).st_mtime_ns
        if changed != entry["changed"] or any("/" in path for path in looks) or len(looks) < len(entry["wanted"]):
            found = (f"{parent}/{name}" for parent, _, names in os.walk(version) for name in names)
            if looks.keys() != {os.path.relpath(path, version) for path in found}:
                return "its outputs have a file more or less than were built"
        settled = changed if time.time_ns() - changed > RACY_NANOSECONDS else 0
        if looks != entry["outputs"] or entry["boot"] != self._boot or settled != entry["changed"]:
            self.record(name, {**entry, "outputs": looks, "changed": settled})
        return None

    def content_of(self, name: str) -> str:
        """One word for what is in the outputs of this name, for those that need them."""
        entry = self.entries.get(name, {"outputs": {}})
        contents = sorted((path, look[0]) for path, look in entry["outputs"].items())
        return hashlib.sha256(json.dumps(contents).encode()).hexdigest()[:12]

    def must_be_free(self, name: str) -> None:
        """A real file or directory where the link belongs is not replaced: it is a ValueError."""
        if self._is_foreign:
            raise ValueError(f"{self._links} is not a directory of ours")
        if not self._read_link(name) and os.path.lexists(link := f"{self._links}/{name}"):
            raise ValueError(f"{link} is in the way")

    def version_of(self, name: str) -> Path:
        """The directory that the link leads to; one that is not there, if there is no link."""
        return self.directory / (self._read_link(name) or f".{name}")

    def publish(self, name: str, fingerprint: str, made: Path, files: list[str], entry: dict[str, Any]) -> None:
        """Make a finished directory the current version: read-only, renamed into place, then linked."""
        if self._open < 0:
            private_directory(self.directory)
            self._links.mkdir(exist_ok=True)
        version, number = f"{name}-{fingerprint}", 1
        while os.path.lexists(whole := f"{self.directory}/{version}"):
            version, number = f"{name}-{fingerprint}.{number}", number + 1
        for path in files:
            os.chmod(f"{made}/{path}", os.stat(f"{made}/{path}").st_mode & 0o555)
        looks = {path: look_at(f"{made}/{path}", None, self.check) for path in files}
        os.rename(made, whole)
        # Recorded before it is linked: if it cannot be recorded, what is linked stays the last that was.
        self.record(name, {**entry, "version": version, "outputs": looks, "changed": 0})
        self._link(name, version)

    def record(self, name: str, entry: dict[str, Any]) -> None:
        """Append one line, or nothing: after kill -9 it is there."""
        entry = {**entry, "boot": self._boot}
        if self._writable:
            line = _line(name, entry)
            if self._open < 0:
                self._open = os.open(self._journal, _APPEND, 0o600)
                line = b"\n" + line  # behind a line that was torn
            size = os.fstat(self._open).st_size
            try:
                write_all(self._open, line)
            except OSError:
                os.ftruncate(self._open, size)
                raise
        self.entries[name] = entry

    def prune(self) -> None:
        """Remove versions that nobody has linked for an hour. Readers take the lock shared, so none is inside."""
        current = {entry["version"] for entry in self.entries.values()} | {*map(self._read_link, self.entries)}
        for version in os.scandir(self.directory):
            old = time.time() - version.stat(follow_symlinks=False).st_ctime > _KEPT_SECONDS
            if version.name not in current and old:
                remove(Path(version.path))

    def _read_link(self, name: str) -> str:
        """The version a link names; empty where there is no link."""
        if name not in self._link_of:
            try:
                self._link_of[name] = os.path.basename(os.readlink(f"{self._links}/{name}"))
            except OSError:
                return ""
        return self._link_of[name]

    def _link(self, name: str, version: str) -> None:
        beside = f"{self.directory}/.link"  # under the lock one name is enough, and the next call replaces it
        with suppress(FileNotFoundError):
            os.unlink(beside)
        os.symlink(f"../{WORKSPACE_DIRECTORY}/out/{version}", beside)
        os.replace(beside, f"{self._links}/{name}")
        self._link_of[name] = version


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
    clean = f"{directory.parent}/.{directory.name}"
    os.mkdir(clean)
    for path in outputs:
        os.makedirs(os.path.dirname(f"{clean}/{path}"), exist_ok=True)
        os.rename(f"{directory}/{path}", f"{clean}/{path}")
    return Path(clean), sorted(files)


def _files_at(found: str, path: str) -> list[str]:
    """The regular files at or below; ValueError if anything else is there."""
    looked = os.lstat(found)
    if stat.S_ISREG(looked.st_mode):
        if looked.st_nlink > 1:  # the other name may be somebody else's, and would be made read-only
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


def remove(directory: Path) -> None:
    """The whole of it, also what a command has made read-only or very deep; what cannot be removed stays."""
    if directory.is_symlink():
        directory.unlink()  # what it leads to is somebody else's
        return
    with suppress(OSError, RecursionError):
        shutil.rmtree(directory)
        return
    for command in (["chmod", "-R", "u+rwX"], ["rm", "-rf"]):
        subprocess.run([*command, "--", directory], stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False)


def _read_journal(path: Path) -> dict[str, dict[str, Any]]:
    """What is not a whole line of ours is passed over, and what it was about is built again."""
    entries: dict[str, dict[str, Any]] = {}
    with suppress(FileNotFoundError):
        for line in read_regular(path, _JOURNAL_BYTES, follow=False).splitlines():
            with suppress(ValueError, RecursionError):
                match json.loads(line):
                    case [
                        str(name),
                        {
                            "run": _,
                            "env": _,
                            "wanted": list(),
                            "inputs": dict(),
                            "needs": dict(),
                            "version": str(),
                            "outputs": dict(),
                            "changed": int(),
                            "boot": _,
                        } as entry,
                    ]:
                        entries[name] = entry
    return entries


def _line(name: str, entry: dict[str, Any]) -> bytes:
    return json.dumps([name, entry], separators=(",", ":")).encode() + b"\n"
