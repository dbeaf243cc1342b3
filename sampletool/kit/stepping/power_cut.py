"""The possible states of a directory after a power failure, given the calls of a program.

Kill -9 never loses the page cache, so only a model can show what fsync is for. In this model, a
power failure can lose these changes:

* The writes to a file since the last flush of the file: all of them, a part, or none.
* Each creation, renaming and removal since the last flush of the directory.
"""

import base64
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
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
        if is_inside or event.path == directory:
            disk.apply(event)
    yield from disk.possible_states()


@dataclass
class _File:
    """The content of a file."""

    flushed: bytes = b""
    """The content that is certainly on the disk."""
    latest: bytes = b""
    """The content that programs read."""

    def possible_contents(self) -> set[bytes]:
        """Return the possible contents of the file after a power failure."""
        if self.flushed == self.latest:
            return {self.latest}
        half = self.latest[: len(self.latest) // 2]
        return {self.flushed, b"", half, self.latest}


@dataclass
class _Disk:
    """A directory, and the changes that the disk may not have stored yet.

    A renaming changes the name of a file, but not its index in `files`.
    """

    directory: str
    before: Files
    files: list[_File] = field(default_factory=list)
    indexes: dict[str, int] = field(default_factory=dict)
    """The index in `files` by name, as programs see the directory."""
    flushed_indexes: dict[str, int] = field(default_factory=dict)
    """The index in `files` by name, when the directory was last flushed."""
    unflushed_names: list[tuple[str, int | None]] = field(default_factory=list)
    """The changes of names since the directory was last flushed: a name, and its new index.

    The index is None if the name was removed.
    """

    def __post_init__(self) -> None:
        for name, content in self.before.items():
            self.indexes[name] = len(self.files)
            self.files.append(_File(content, content))
        self.flushed_indexes = dict(self.indexes)

    def apply(self, event: Event) -> None:
        """Apply the change of an event to the directory."""
        name = os.path.basename(event.path)
        if event.path == self.directory:
            if event.name == "os.fsync":
                self.flushed_indexes = dict(self.indexes)
                self.unflushed_names = []
        elif event.name == "open":
            self._open(name, event.facts["flags"])
        elif event.name == "os.write":
            self._file(name).latest += base64.b64decode(event.facts["data"])
        elif event.name in ("os.fsync", "os.fdatasync"):
            self._file(name).flushed = self._file(name).latest
        elif event.name == "os.rename":
            source = os.path.basename(event.paths[0])
            self.indexes[name] = self.indexes.pop(source)
            self.unflushed_names += [(name, self.indexes[name]), (source, None)]
        elif event.name == "os.remove":
            self.indexes.pop(name, None)
            self.unflushed_names.append((name, None))

    def possible_states(self) -> Iterator[Files]:
        """Yield the files for each combination of stored and lost changes."""
        contents = [file.possible_contents() for file in self.files]
        for is_stored in product((True, False), repeat=len(self.unflushed_names)):
            indexes = self._indexes_after(is_stored)
            for chosen in product(*contents):
                yield {name: chosen[index] for name, index in indexes.items()}

    def _open(self, name: str, flags: int) -> None:
        """Create the file if no file has this name. Empty it if the flags contain O_TRUNC."""
        if name not in self.indexes:
            self.indexes[name] = len(self.files)
            self.files.append(_File())
            # Until the directory is flushed, a power failure can lose the new name.
            self.unflushed_names.append((name, self.indexes[name]))
        elif flags & os.O_TRUNC:
            self._file(name).latest = b""

    def _file(self, name: str) -> _File:
        """Return the file that has this name now."""
        return self.files[self.indexes[name]]

    def _indexes_after(self, is_stored: Sequence[bool]) -> dict[str, int]:
        """Return the index of each name on the disk if only some changes of names were stored.

        `is_stored` says for each of `unflushed_names` whether the disk has stored it.
        """
        indexes = dict(self.flushed_indexes)
        for (name, index), stored in zip(self.unflushed_names, is_stored, strict=True):
            if not stored:
                continue
            if index is None:
                indexes.pop(name, None)
            else:
                indexes[name] = index
        return indexes
