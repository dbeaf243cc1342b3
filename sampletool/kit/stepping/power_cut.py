"""The possible states of a directory after a power failure, given the calls of a program.

Kill -9 never loses the page cache, so only a model can show what fsync is for. In this model, a
power failure can lose these changes:

* The writes to a file since the last flush of the file: all of them, a part, or none.
* Each creation, renaming and removal since the last flush of the directory.

os.fsync() and os.fdatasync() flush one file or directory, and os.sync() flushes everything. A file
that is opened with O_SYNC or O_DSYNC is flushed by each write.
"""

import base64
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product

from .tracer import Event

Files = dict[str, bytes]
"""The content of each file, by name."""

NOT_MODELLED = frozenset(
    {
        "os.copy_file_range",
        "os.link",
        "os.posix_fallocate",
        "os.pwrite",
        "os.pwritev",
        "os.sendfile",
        "os.splice",
        "os.symlink",
        "os.truncate",
        "os.writev",
    }
)
"""The events that change files, but that this model does not know."""


def crash_states(before: Files, events: Sequence[Event], directory: str) -> Iterator[Files]:
    """Yield each possible state after a power failure before, between or after the events."""
    for point in range(len(events) + 1):
        yield from states_after(before, events[:point], directory)


def states_after(before: Files, events: Sequence[Event], directory: str) -> Iterator[Files]:
    """Yield each possible state after a power failure that comes after all of these events."""
    disk = _Disk(directory, before)
    for event in events:
        is_inside = os.path.dirname(event.path) == directory
        if is_inside or event.path == directory or event.name == "os.sync":
            disk.apply(event)
    yield from disk.possible_states()


@dataclass(eq=False)
class _File:
    """The content of a file."""

    flushed: bytes = b""
    """The content that is certainly on the disk."""
    latest: bytes = b""
    """The content that programs read."""

    def flush(self) -> None:
        """Store the latest content on the disk."""
        self.flushed = self.latest

    def possible_contents(self) -> set[bytes]:
        """Return the possible contents of the file after a power failure."""
        if self.flushed == self.latest:
            return {self.latest}
        half = self.latest[: len(self.latest) // 2]
        return {self.flushed, b"", half, self.latest}


@dataclass(frozen=True)
class _NameChange:
    """A change in a directory that a power failure can lose."""

    name: str
    file: _File | None
    """The file that has this name after the change. None if the name was removed."""


class _Disk:
    """A directory, and the changes that the disk may not have stored yet."""

    def __init__(self, directory: str, before: Files) -> None:
        self._directory = directory
        self._files: list[_File] = []
        """All files that the directory has had, including removed ones."""
        self._file_by_name: dict[str, _File] = {}
        """The files of the directory, as programs see it."""
        for name, content in before.items():
            self._file_by_name[name] = self._add_file(content)
        self._flushed_file_by_name = dict(self._file_by_name)
        """The files of the directory when it was last flushed."""
        self._unflushed_changes: list[_NameChange] = []
        """The changes of names since the directory was last flushed."""

    def apply(self, event: Event) -> None:
        """Apply the change of an event to the directory.

        A change of a content or a name can be lost until a flush stores it on the disk.
        """
        if event.name == "os.sync":
            self._flush_everything()
        elif event.path != self._directory:
            self._apply_to_file(event)
        elif event.name == "os.fsync":
            self._flush_names()

    def _apply_to_file(self, event: Event) -> None:
        """Apply the change of an event to the file that it names."""
        name = os.path.basename(event.path)
        if event.name == "open":
            self._open(name, event.facts["flags"])
        elif event.name == "os.write":
            file = self._file_by_name[name]
            file.latest += base64.b64decode(event.facts["data"])
            if event.facts["is_flushed"]:
                file.flush()
        elif event.name in ("os.fsync", "os.fdatasync"):
            self._file_by_name[name].flush()
        elif event.name == "os.rename":
            self._rename(os.path.basename(event.paths[0]), name)
        elif event.name == "os.remove":
            self._change_name(name, None)

    def possible_states(self) -> Iterator[Files]:
        """Yield the files for each combination of stored and lost changes."""
        possible_contents = [file.possible_contents() for file in self._files]
        for is_stored in product((True, False), repeat=len(self._unflushed_changes)):
            file_by_name = self._names_after(is_stored)
            for contents in product(*possible_contents):
                content_by_file = dict(zip(self._files, contents, strict=True))
                yield {name: content_by_file[file] for name, file in file_by_name.items()}

    def _add_file(self, content: bytes) -> _File:
        """Return a new file whose content is on the disk."""
        file = _File(flushed=content, latest=content)
        self._files.append(file)
        return file

    def _open(self, name: str, flags: int) -> None:
        """Create the file if no file has this name. Empty it if the flags contain O_TRUNC."""
        if name not in self._file_by_name:
            self._change_name(name, self._add_file(b""))
        elif flags & os.O_TRUNC:
            self._file_by_name[name].latest = b""

    def _rename(self, old_name: str, new_name: str) -> None:
        """Give a file another name. To rename a file to its own name changes nothing."""
        if old_name != new_name:
            self._change_name(new_name, self._file_by_name[old_name])
            self._change_name(old_name, None)

    def _change_name(self, name: str, file: _File | None) -> None:
        """Give the file this name, or remove the name if there is no file."""
        change = _NameChange(name, file)
        _apply_name_change(change, self._file_by_name)
        # Until the directory is flushed, a power failure can lose the change.
        self._unflushed_changes.append(change)

    def _flush_everything(self) -> None:
        """Store the content and the names of all files on the disk."""
        for file in self._files:
            file.flush()
        self._flush_names()

    def _flush_names(self) -> None:
        """Store the names of all files on the disk."""
        self._flushed_file_by_name = dict(self._file_by_name)
        self._unflushed_changes = []

    def _names_after(self, is_stored: Sequence[bool]) -> dict[str, _File]:
        """Return the files by name if the disk has stored only some changes of names.

        `is_stored` says for each of the unflushed changes whether the disk has stored it.
        """
        file_by_name = dict(self._flushed_file_by_name)
        for change, stored in zip(self._unflushed_changes, is_stored, strict=True):
            if stored:
                _apply_name_change(change, file_by_name)
        return file_by_name


def _apply_name_change(change: _NameChange, file_by_name: dict[str, _File]) -> None:
    """Change the file that has this name, or remove the name."""
    if change.file is None:
        file_by_name.pop(change.name, None)
    else:
        file_by_name[change.name] = change.file
