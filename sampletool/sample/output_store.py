"""Directories of outputs that appear all at once, and are known to be whole before they are used again.

`out/NAME` is a link to `.tool/out/NAME-FINGERPRINT/`, replaced by rename: who resolves it once sees one version
whole. What is in a version stands in a journal, one line each, with the SHA-256 of every file: after kill -9 the lines
are there, after a power cut a torn one is passed over and what it told of is made again. Only under the exclusive lock.
"""

import hashlib
import json
import os
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from sampletool.kit.safety.atomic_file import read_regular, replace, write_all
from sampletool.kit.safety.places import check_private, private_directory
from sampletool.sample.content import RACY_NANOSECONDS, Look, boot_id, look_at
from sampletool.sample.staging import remove

_APPEND = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_JOURNAL_BYTES = 1024 * 1024 * 1024
_MEMBERS = {"run", "env", "wanted", "inputs", "needs", "version", "outputs", "changed", "boot"}
_KEPT_SECONDS = 3600
"""How long a version that is no longer linked stays, for readers from outside who take no lock."""


class OutputStore:
    """The outputs of one workspace."""

    def __init__(self, workspace: Path, check: Callable[[], None] = lambda: None, *, writable: bool = True) -> None:
        self.check = check
        """Called now and then while files are read; may raise."""
        self._writable = writable
        self._links = workspace / "out"
        self._is_foreign = self._links.is_symlink() or (self._links.exists() and not self._links.is_dir())
        self._link_of: dict[str, str] = {}
        self.directory = workspace / ".tool" / "out"
        if os.path.lexists(self.directory):
            check_private(self.directory)
        self._journal = workspace / ".tool" / "built.jsonl"
        self._boot = boot_id()
        self._open = -1
        self.entries: dict[str, dict[str, Any]] = self._read()

    def trusted(self, entry: dict[str, Any] | None) -> dict[str, Any]:
        """The looks of an entry that may save reading files again: only if they are of this boot."""
        return entry if entry is not None and entry["boot"] == self._boot else {"inputs": {}, "outputs": {}}

    def damage(self, name: str) -> str | None:
        """Why the linked version of this name cannot be used; None if it is whole."""
        entry = self.entries.get(name)
        if entry is None:
            return "never built"
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
        told = sorted((path, look[0]) for path, look in entry["outputs"].items())
        return hashlib.sha256(json.dumps(told).encode()).hexdigest()[:12]

    def must_be_free(self, name: str) -> None:
        """A real file or directory where the link belongs is somebody else's: it is not replaced, but a ValueError."""
        if self._is_foreign:
            raise ValueError(f"{self._links} is not a directory of ours")
        if not self._read_link(name) and os.path.lexists(link := f"{self._links}/{name}"):
            raise ValueError(f"{link} is in the way")

    def version_of(self, name: str) -> Path:
        """The directory that the link leads to; one that is not there, if there is no link."""
        return self.directory / (self._read_link(name) or f".{name}")

    def publish(self, name: str, fingerprint: str, made: Path, outputs: list[str], entry: dict[str, Any]) -> None:
        """Make a finished directory the current version: read-only, renamed into place, then linked."""
        if self._open < 0:
            private_directory(self.directory)
            self._links.mkdir(exist_ok=True)
        version, number = f"{name}-{fingerprint}", 1
        while os.path.lexists(whole := f"{self.directory}/{version}"):
            version, number = f"{name}-{fingerprint}.{number}", number + 1
        for path in outputs:
            os.chmod(f"{made}/{path}", os.stat(f"{made}/{path}").st_mode & 0o555)
        looks = {path: look_at(f"{made}/{path}", None, self.check) for path in outputs}
        os.rename(made, whole)
        # Told before it is linked: if it cannot be told, what is linked stays the last that was.
        self.record(name, {**entry, "version": version, "outputs": looks, "changed": 0})
        self._link(name, version)

    def record(self, name: str, entry: dict[str, Any]) -> None:
        """Append one line, or nothing: after kill -9 it is there."""
        told = {**entry, "boot": self._boot}
        if self._writable:
            line = json.dumps([name, told], separators=(",", ":")) + "\n"
            if self._open < 0:
                self._open = os.open(self._journal, _APPEND, 0o600)
                line = f"\n{line}"  # behind a line that was torn
            size = os.fstat(self._open).st_size
            try:
                write_all(self._open, line.encode())
            except OSError:
                os.ftruncate(self._open, size)
                raise
        self.entries[name] = told

    def close(self) -> None:
        """Flush the journal once, for all that was built; rewrite it when most of it is old."""
        if self._open < 0:
            return
        os.fsync(self._open)
        os.close(self._open)
        self._open = -1
        with self._journal.open("rb") as file:
            lines = sum(1 for _ in file)
        if lines > len(self.entries) + 100:
            current = (json.dumps(item, separators=(",", ":")) + "\n" for item in self.entries.items())
            replace(self._journal, "".join(current).encode())

    def prune(self) -> None:
        """Remove versions that nobody has linked for an hour. Readers take the lock shared, so none is inside."""
        current = {entry["version"] for entry in self.entries.values()} | {*map(self._read_link, self.entries)}
        with suppress(FileNotFoundError):
            check_private(self.directory)
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
        link, target = f"{self._links}/{name}", f"../.tool/out/{version}"
        try:
            os.symlink(target, link)
        except FileExistsError:
            beside = f"{self._links}/.{name}.{os.getpid()}"
            with suppress(FileNotFoundError):
                os.unlink(beside)
            os.symlink(target, beside)
            os.replace(beside, link)
        self._link_of[name] = version

    def _read(self) -> dict[str, dict[str, Any]]:
        entries: dict[str, dict[str, Any]] = {}
        with suppress(FileNotFoundError):
            lines = list(filter(None, read_regular(self._journal, _JOURNAL_BYTES, follow=False).split(b"\n")))
            try:
                told = json.loads(b"[" + b",".join(lines) + b"]")
            except (ValueError, RecursionError):  # a power cut tore a line
                told = []
                for line in lines:
                    with suppress(ValueError, RecursionError):
                        told.append(json.loads(line))
            entries = dict(filter(_is_entry, told))
        return entries


def _is_entry(told: Any) -> bool:
    """A line that says what it has to; anything else is as if it were not there, and what it told of is built again."""
    if not (isinstance(told, list) and len(told) == 2 and isinstance(told[0], str) and isinstance(told[1], dict)):
        return False
    entry = told[1]
    if not entry.keys() >= _MEMBERS or not all(
        isinstance(entry[name], dict) for name in ("inputs", "needs", "outputs")
    ):
        return False
    looks = [*entry["inputs"].values(), *entry["outputs"].values()]
    return "/" not in str(entry["version"]) and all(isinstance(look, list) and len(look) == 5 for look in looks)
