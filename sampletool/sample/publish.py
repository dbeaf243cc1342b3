"""Publish the outputs of targets: all files of a target appear at once, and are known to be whole.

`out/NAME` is a link to a directory in `.tool/out`, which is one *version* of the outputs. A new
version is put there by replacing the link. So a program that resolves the link once sees all files
of one version.

The *journal* has a line for each version: what the target was built from, and the digest of each
output. The line is appended before the version is linked, so it is there even after kill -9. A line
that was torn by a power failure is ignored, and its target is built again.

Only the holder of the exclusive build lock publishes.
"""

import hashlib
import json
import os
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path
from types import GenericAlias

from ..kit.program import WORKSPACE_DIRECTORY
from ..kit.safety.atomic_file import opened, read_regular, write_all
from ..kit.safety.atomic_file import replace as replace_file
from ..kit.safety.private_directory import check_private, private_directory
from .digests import DigestCache, digest
from .trees import remove, settle

_APPEND = (
    os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
)  # fmt: skip
_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_MAX_JOURNAL_BYTES = 1024 * 1024 * 1024

_KEPT_SECONDS = 3600
"""How long a version stays when it is no longer linked, for readers that take no lock."""

_UNKNOWN = "what the command has read of it is not known"


def _do_nothing() -> None:
    """Let a long read continue."""


@dataclass(frozen=True)
class Built:
    """What a target was built from, and its outputs."""

    run: list[str]
    wanted: list[str]
    """The declared outputs. Each is a file, or a directory with any number of files."""
    inputs: dict[str, str]
    """The digest of each input."""
    needs: dict[str, str]
    """A digest of all outputs of each needed target."""
    version: str = ""
    """The name of the directory with the outputs."""
    outputs: dict[str, str] = field(default_factory=dict)
    """The digest of each output file."""
    env: dict[str, str] = field(default_factory=dict)


class Outputs:
    """The outputs of one workspace. Leaving the block flushes the journal."""

    def __init__(self, workspace: Path, check: Callable[[], None] = _do_nothing) -> None:
        """Read the journal. `check` is called while files are read, and may raise an error."""
        self.workspace = workspace
        self.built: dict[str, Built] = {}
        """The last version of each target."""
        self.directory = workspace / WORKSPACE_DIRECTORY / "out"
        if os.path.lexists(self.directory):
            check_private(self.directory)
        self._links = workspace / "out"
        self._journal = workspace / WORKSPACE_DIRECTORY / "built.jsonl"
        self._check = check
        self._digests = DigestCache(workspace / WORKSPACE_DIRECTORY / "digests.json", check)
        self._has_written = False
        self._read_journal()

    def __enter__(self) -> "Outputs":
        return self

    def __exit__(self, *_error: object) -> None:
        """Flush the journal, once for all versions, and leave out its old lines."""
        if self._has_written:
            self._replace_journal()
        self._digests.save()

    def digest(self, path: str | Path) -> str:
        """Return the digest of a file, or "" if it cannot be read. See DigestCache."""
        return self._digests.digest(path)

    # The state of a target

    def damage(self, name: str) -> str | None:
        """Return why the outputs of a target cannot be used. None if they are as built."""
        built = self.built[name]
        if self._read_link(name) != built.version:
            return f"out/{name} does not lead to the last build"
        version = f"{self.directory}/{built.version}"
        for path, digest_before in built.outputs.items():
            digest_now = self.digest(f"{version}/{path}")
            if digest_now == "":
                return f"the output {path} is missing"
            if digest_now != digest_before:
                return f"the output {path} was changed"
        for path in built.wanted:
            # An output that is not in `outputs` is a directory without files.
            if path not in built.outputs and not os.path.isdir(f"{version}/{path}"):
                return f"the output {path} is missing"
        if _files_in(version) != built.outputs.keys():
            return "its outputs have a file more or less than were built"
        return None

    def content_of(self, name: str) -> str:
        """Return one digest of all outputs of a target, for the targets that need them."""
        return _digest_of_value(self.built[name].outputs)

    def must_be_free(self, name: str) -> None:
        """Raise ValueError if there is something else in the place of the link of this target."""
        if self._links.is_symlink() or (self._links.exists() and not self._links.is_dir()):
            raise ValueError(f"{self._links} is not a directory of ours")
        link = self._links / name
        if self._read_link(name) == "" and os.path.lexists(link):
            raise ValueError(f"{link} is in the way")

    def version_of(self, name: str) -> Path:
        """Return the linked directory. Without a link, return a path where nothing is."""
        return self.directory / (self._read_link(name) or f".{name}")

    # Publishing

    def publish(self, name: str, built: Built, directory: Path) -> str | None:
        """Make the outputs that a command has left in this directory the current version.

        Raise ValueError if an output is not as declared, and OSError if it cannot be published.

        If an input or a needed target has changed while the command was running, return a note that
        says so. The target then counts as stale, because nobody knows what the command has read.
        """
        files = settle(directory, built.wanted)
        version = f"{name}-{_digest_of_value(asdict(built))}.{os.urandom(4).hex()}"
        changed_inputs = self._changed_inputs(built)
        changed_needs = [need for need in built.needs if self.damage(need) is not None]
        published = replace(
            built,
            inputs={**built.inputs, **dict.fromkeys(changed_inputs, _UNKNOWN)},
            needs={**built.needs, **dict.fromkeys(changed_needs, _UNKNOWN)},
            version=version,
            outputs={file: digest(directory / file, self._check) for file in files},
        )
        private_directory(self.directory)
        os.rename(directory, self.directory / version)
        # If the version cannot be recorded, the link must stay as it is.
        self._record(name, published)
        self._link(name, version)
        changed = [f"the input {path}" for path in changed_inputs]
        changed += [f"the needed target {need}" for need in changed_needs]
        if changed:
            return f"{changed[0]} changed while it ran, so it will be built again"
        return None

    def _changed_inputs(self, built: Built) -> list[str]:
        changed = []
        for path, digest_before in built.inputs.items():
            if self.digest(self.workspace / path) != digest_before:
                changed.append(path)
        return changed

    def _record(self, name: str, built: Built) -> None:
        """Append a line to the journal."""
        with opened(self._journal, _APPEND) as descriptor:
            has_other_names = os.fstat(descriptor).st_nlink > 1
            if not has_other_names:
                write_all(descriptor, _line(name, built))
        self.built[name] = built
        self._has_written = True
        if has_other_names:
            # The journal has a second name (a hard link), which may be a file of the user. Writing
            # to it would change that file too, so the journal becomes a new file.
            self._replace_journal()

    def _link(self, name: str, version: str) -> None:
        """Let `out/NAME` lead to a version. Raise OSError if `out` is not a directory."""
        self._links.mkdir(exist_ok=True)
        # A command may have replaced `out` with a link, so open it without following one. From
        # here on, its name is not used.
        with opened(self._links, _DIRECTORY) as links:
            # With the lock, one name is enough. A killed command may have left the link.
            new_link = f"{self.directory}/.link"
            with suppress(FileNotFoundError):
                os.unlink(new_link)
            os.symlink(f"../{WORKSPACE_DIRECTORY}/out/{version}", new_link)
            os.replace(new_link, name, dst_dir_fd=links)

    def prune(self) -> None:
        """Remove the versions that have not been linked for an hour.

        Tests hold the lock while they read outputs, so no version that a test uses is removed.
        """
        current = {built.version for built in self.built.values()}
        current |= {self._read_link(name) for name in self.built}
        with os.scandir(self.directory) as versions:
            for version in versions:
                changed_at = version.stat(follow_symlinks=False).st_ctime
                is_old = time.time() - changed_at > _KEPT_SECONDS
                if is_old and version.name not in current:
                    remove(Path(version.path))

    def _read_link(self, name: str) -> str:
        """Return the version that a link leads to, or "" if there is no link."""
        try:
            return os.path.basename(os.readlink(f"{self._links}/{name}"))
        except OSError:
            return ""

    # The journal

    def _read_journal(self) -> None:
        """Read how each target was built: each line of the journal is a name and a record."""
        lines: list[bytes] = []
        with suppress(FileNotFoundError):
            lines = read_regular(self._journal, _MAX_JOURNAL_BYTES, follow=False).splitlines()
        for line in lines:
            # A command that was killed may have written half of a line, and another version of the
            # tool may have written other members. Such a target is then built again.
            with suppress(ValueError, TypeError, AttributeError, RecursionError):
                name, members = json.loads(line)
                self.built[name] = _built_from(members)

    def _replace_journal(self) -> None:
        lines = [_line(name, built) for name, built in self.built.items()]
        replace_file(self._journal, lines)


def _built_from(members: dict[str, object]) -> Built:
    """Return what a line of the journal has. Raise TypeError if it is not what we write."""
    built = Built(**members)  # type: ignore[arg-type]
    for attribute in fields(Built):
        expected = attribute.type
        if isinstance(expected, GenericAlias):
            expected = expected.__origin__
        if not isinstance(getattr(built, attribute.name), expected):  # type: ignore[arg-type]
            raise TypeError(attribute.name)
    return built


def _line(name: str, built: Built) -> bytes:
    """Return a line of the journal. It begins with a newline, in case the line before was torn."""
    return b"\n" + json.dumps([name, asdict(built)], separators=(",", ":")).encode()


def _files_in(directory: str) -> set[str]:
    """Return the paths of all files in a directory, relative to it."""
    files = set()
    for parent, _directories, names in os.walk(directory):
        for name in names:
            files.add(os.path.relpath(os.path.join(parent, name), directory))
    return files


def _digest_of_value(value: object) -> str:
    """Return a short digest of a value that JSON can represent."""
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()[:12]
