"""Publish the outputs of targets: all files of a target appear at once, and are known to be whole.

`out/NAME` is a link to a directory in `.tool/out`, which is one *version* of the outputs. A new
version is published by replacing the link. So a program that resolves the link once sees all files
of one version.

The journal has a record of each version: what the target was built from, and the digest of each
output. The record is appended before the version is linked, so it is there even after kill -9.

Only the holder of the exclusive build lock publishes.
"""

import json
import os
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict, replace
from pathlib import Path

from ..kit.program import WORKSPACE_DIRECTORY
from ..kit.safety.atomic_file import opened
from ..kit.safety.private_directory import check_private, private_directory
from .digests import DigestCache, compute_digest
from .journal import BuildRecord, Journal
from .trees import force_remove, keep_outputs

_DIRECTORY_FLAGS = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC

_KEPT_SECONDS = 3600
"""How long a version stays when it is no longer linked, for readers that take no lock."""

_UNKNOWN = "it is not known which content the command has read"


def _do_nothing() -> None:
    """Let a long read continue."""


class Outputs:
    """The outputs of all targets of a workspace. Leaving the block flushes the journal."""

    def __init__(
        self,
        workspace: Path,
        check: Callable[[], None] = _do_nothing,
        *,
        reads_files: bool = True,
    ) -> None:
        """Read the journal. `check` is called while files are read, and may raise an error.

        With `reads_files=False`, no input or output is read. Then a file counts as changed unless
        its remembered digest can still be trusted (see digests.py).
        """
        self.workspace = workspace
        self.directory = workspace / WORKSPACE_DIRECTORY / "out"
        """The directory with all versions of all outputs."""
        if os.path.lexists(self.directory):
            check_private(self.directory)
        self._links = workspace / "out"
        """The directory with a link to the current version of each target."""
        self._check = check
        self._journal = Journal(workspace / WORKSPACE_DIRECTORY / "built.jsonl")
        digests_path = workspace / WORKSPACE_DIRECTORY / "digests.json"
        self._digests = DigestCache(digests_path, check, reads_files=reads_files)

    def __enter__(self) -> "Outputs":
        return self

    def __exit__(self, *_error: object) -> None:
        """Flush the journal once for all versions, and save the digests of unchanged files."""
        self._journal.flush()
        self._digests.save()

    @property
    def records(self) -> dict[str, BuildRecord]:
        """How each target was last built, by the name of the target."""
        return self._journal.records

    def digest(self, path: str | Path) -> str:
        """Return the digest of a file, "" if it cannot be read, or NOT_READ. See DigestCache."""
        return self._digests.digest(path)

    # The state of a target

    def check_link_place(self, name: str) -> None:
        """Raise ValueError if there is something else in the place of the link of this target."""
        if self._links.is_symlink() or (self._links.exists() and not self._links.is_dir()):
            raise ValueError(f"{self._links} is not a directory of ours")
        link = f"{self._links}/{name}"
        if self._linked_version(name) == "" and os.path.lexists(link):
            raise ValueError(f"{link} is in the way")

    def damage(self, name: str) -> str | None:
        """Return why the outputs of a target cannot be used. None if they are as built."""
        record = self.records[name]
        if not self._leads_to(name, record.version):
            return f"out/{name} does not lead to the last build"
        directory = f"{self.directory}/{record.version}"
        for path, digest_before in record.outputs.items():
            digest_now = self.digest(f"{directory}/{path}")
            if digest_now == "":
                return f"the output {path} is missing"
            if digest_now != digest_before:
                return f"the output {path} was changed"
        for path in record.wanted:
            # An output that is not in `outputs` is a directory without files.
            if path not in record.outputs and not os.path.isdir(f"{directory}/{path}"):
                return f"the output {path} is missing"
        if _files_in(directory) != record.outputs.keys():
            return "a file was added to its outputs, or removed from them"
        return None

    def digest_of_outputs(self, name: str) -> str:
        """Return one digest of all outputs of a target, for the targets that need them."""
        return _digest_of_value(self.records[name].outputs)

    def version_directory(self, name: str) -> Path:
        """Return the directory that `out/NAME` leads to. Without a link, it does not exist."""
        version = self._linked_version(name)
        if version == "":
            # The name of a version never begins with a dot.
            version = f".{name}"
        return self.directory / version

    # Publishing

    def publish(self, name: str, record: BuildRecord, directory: Path) -> str | None:
        """Make the outputs in this directory the current version. A command has written them there.

        `record` says what the target was built from. Its version and its outputs are added here.

        If an input or a needed target has changed while the command was running, return a note that
        says so. The target then counts as stale, because it is not known what the command has read.

        Raise ValueError if an output is not as declared, and OSError if it cannot be published.
        """
        files = keep_outputs(directory, record.wanted)
        version = f"{name}-{_digest_of_value(asdict(record))}.{os.urandom(4).hex()}"
        changed_inputs = self._changed_inputs(record)
        changed_needs = [need for need in record.needs if self.damage(need) is not None]
        completed_record = replace(
            record,
            inputs={**record.inputs, **dict.fromkeys(changed_inputs, _UNKNOWN)},
            needs={**record.needs, **dict.fromkeys(changed_needs, _UNKNOWN)},
            version=version,
            outputs={file: compute_digest(directory / file, self._check) for file in files},
        )
        private_directory(self.directory)
        os.rename(directory, self.directory / version)
        # If the version cannot be recorded, the link must stay as it is.
        self._journal.append(name, completed_record)
        self._link(name, version)
        changes = [f"the input {path}" for path in changed_inputs]
        changes += [f"the needed target {need}" for need in changed_needs]
        if not changes:
            return None
        return f"{changes[0]} changed while it ran, so it will be built again"

    def _changed_inputs(self, record: BuildRecord) -> list[str]:
        """Return the inputs that are no longer what they were when the command was started."""
        changed = []
        for path, digest_before in record.inputs.items():
            if self.digest(self.workspace / path) != digest_before:
                changed.append(path)
        return changed

    def _link(self, name: str, version: str) -> None:
        """Let `out/NAME` lead to a version. Raise OSError if `out` is not a directory."""
        self._links.mkdir(exist_ok=True)
        # A command may have replaced `out` with a link, so open it without following one. From
        # here on, its name is not used.
        with opened(self._links, _DIRECTORY_FLAGS) as links:
            # Only the holder of the lock uses this name. A killed command may have left the link.
            new_link = f"{self.directory}/.link"
            with suppress(FileNotFoundError):
                os.unlink(new_link)
            os.symlink(_link_target(version), new_link)
            os.replace(new_link, name, dst_dir_fd=links)

    def remove_old_versions(self) -> None:
        """Remove the versions that have not been linked for an hour.

        Tests hold the lock while they read outputs, so no version that a test uses is removed.
        """
        current = {record.version for record in self.records.values()}
        current |= {self._linked_version(name) for name in self.records}
        with os.scandir(self.directory) as versions:
            for version in versions:
                changed_at = version.stat(follow_symlinks=False).st_ctime
                is_old = time.time() - changed_at > _KEPT_SECONDS
                if is_old and version.name not in current:
                    force_remove(Path(version.path))

    def _leads_to(self, name: str, version: str) -> bool:
        """Return whether `out/NAME` is the link to this version, as a build creates it."""
        # The links are relative. If `out` is a link itself, they lead somewhere else.
        if os.path.islink(self._links):
            return False
        return self._read_link(name) == _link_target(version)

    def _linked_version(self, name: str) -> str:
        """Return the version that `out/NAME` leads to, or "" if there is no link."""
        return os.path.basename(self._read_link(name))

    def _read_link(self, name: str) -> str:
        """Return the path that the link `out/NAME` contains, or "" if there is no link."""
        try:
            return os.readlink(f"{self._links}/{name}")
        except OSError:
            return ""


def _link_target(version: str) -> str:
    """Return the path of a version, relative to the directory `out`."""
    return f"../{WORKSPACE_DIRECTORY}/out/{version}"


def _files_in(top: str) -> set[str]:
    """Return the paths of all files in a directory, relative to it."""
    files = set()
    # With os.walk() and os.path.relpath(), this takes three times as long.
    waiting = [""]
    while waiting:
        directory = waiting.pop()
        with suppress(OSError), os.scandir(f"{top}/{directory}") as entries:
            for entry in entries:
                path = f"{directory}{entry.name}"
                if entry.is_dir(follow_symlinks=False):
                    waiting.append(f"{path}/")
                else:
                    files.add(path)
    return files


def _digest_of_value(value: object) -> str:
    """Return a short digest of a value that JSON can represent."""
    # This import takes 3 ms. A build with nothing to do may not need it.
    import hashlib

    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()[:12]
