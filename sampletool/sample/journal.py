"""Remember from what each target was built, in a file that survives kill -9 and a power cut.

The file is a *journal*: each build of a target appends a line to it. A line that was cut off by a
power failure is ignored, and its target is built again. At the end of a command, the journal is
replaced by one that has only the last line of each target.

Only the holder of the exclusive build lock writes to the journal.
"""

import json
import os
from contextlib import suppress
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from types import GenericAlias
from typing import Any

from ..kit.safety.atomic_file import opened, read_regular, replace, write_all

_APPEND_FLAGS = (
    os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
)  # fmt: skip
_MAX_JOURNAL_BYTES = 1024 * 1024 * 1024


@dataclass(frozen=True)
class BuildRecord:
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


def _types_of_members() -> dict[str, Any]:
    """Return the type of each member of a record, without the types of its items."""
    types: dict[str, Any] = {}
    for attribute in fields(BuildRecord):
        types[attribute.name] = attribute.type
        if isinstance(attribute.type, GenericAlias):
            # isinstance() knows `list`, but not `list[str]`.
            types[attribute.name] = attribute.type.__origin__
    return types


_TYPES = _types_of_members()
"""Found out once: for a journal with 1,000 records, this saves 1 ms."""


class Journal:
    """The journal of one workspace."""

    def __init__(self, path: Path) -> None:
        """Read the journal, if there is one."""
        self.records = _read_records(path)
        """The last record of each target, by the name of the target."""
        self._path = path
        self._has_appended = False

    def append(self, name: str, record: BuildRecord) -> None:
        """Add the record of a target that was just built."""
        with opened(self._path, _APPEND_FLAGS) as descriptor:
            has_other_names = os.fstat(descriptor).st_nlink > 1
            if not has_other_names:
                write_all(descriptor, _line(name, record))
        self.records[name] = record
        self._has_appended = True
        if has_other_names:
            # The journal has a second name (a hard link), which may be a file of the user. Writing
            # to it would change that file too, so the journal becomes a new file.
            self._replace()

    def flush(self) -> None:
        """Make sure that the records survive a power cut. Leave out those that were replaced."""
        if self._has_appended:
            self._replace()

    def _replace(self) -> None:
        """Write all records to a new file, flush it to the disk, and put it in place."""
        lines = [_line(name, record) for name, record in self.records.items()]
        replace(self._path, lines)


def _read_records(path: Path) -> dict[str, BuildRecord]:
    """Return the last record of each target. Each line has the name of a target and its record."""
    records = {}
    lines: list[bytes] = []
    with suppress(FileNotFoundError):
        lines = read_regular(path, _MAX_JOURNAL_BYTES, follow=False).splitlines()
    for line in lines:
        # A command that was killed may have written half of a line, and another version of the
        # tool may have written other members. Such a target is then built again.
        with suppress(ValueError, TypeError, AttributeError, RecursionError):
            name, members = json.loads(line)
            records[name] = _record_from(members)
    return records


def _record_from(members: dict[str, object]) -> BuildRecord:
    """Return the record in a line. Raise TypeError if the line is not as this version writes it."""
    record = BuildRecord(**members)  # type: ignore[arg-type]
    for name, expected_type in _TYPES.items():
        if not isinstance(getattr(record, name), expected_type):
            raise TypeError(name)
    return record


def _line(name: str, record: BuildRecord) -> bytes:
    """Return a line of the journal. It begins with a newline, in case the last line is cut off."""
    return b"\n" + json.dumps([name, asdict(record)], separators=(",", ":")).encode()
