"""Divide a CSV file into parts, so that several processes can read it at the same time.

The bounds of the parts depend only on the file, and never on the number of processes. So the result
does not depend on it either. A part has whole rows, and is so small that it can be in memory.
"""

import csv
import hashlib
import io
import os
from codecs import BOM_UTF8
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from .errors import InputChanged, InvalidCsv

MAX_PART_BYTES = 1024 * 1024
"""How long a part can be, and so how long a row can be."""

MAX_COLUMNS = 1000

Row = list[str]


@dataclass(frozen=True)
class CsvFile:
    """An open CSV file."""

    path: str
    descriptor: int
    delimiter: str
    opened_as: os.stat_result
    """The size and the time of the file when it was opened."""

    def check_unchanged(self) -> None:
        """Raise InputChanged if the file was changed since it was opened."""
        now = os.fstat(self.descriptor)
        before = self.opened_as
        if (now.st_size, now.st_mtime_ns) != (before.st_size, before.st_mtime_ns):
            raise InputChanged(self.path)

    def invalid_row(self, line: int, reason: str) -> InvalidCsv:
        """Return the error about the row at this line. Raise InputChanged if that is the cause."""
        # Another process may be writing to the file, so that we have read only half of a row.
        self.check_unchanged()
        return InvalidCsv(path=self.path, line=line, reason=reason)


@dataclass(frozen=True)
class Part:
    """Some rows of a file: where they are, and the number of their first line in the file."""

    start: int
    size: int
    first_line: int


def divide(file: CsvFile, beat: Callable[[], None]) -> tuple[list[Part], str]:
    """Return the parts of the file, and the SHA-256 of the file.

    `beat` is called after each part. Raise InvalidCsv if a row does not fit into a part.
    """
    parts: list[Part] = []
    digest = hashlib.sha256()
    start = 0
    line = 1
    while True:
        content = os.pread(file.descriptor, MAX_PART_BYTES, start)
        is_last = start + len(content) >= file.opened_as.st_size
        if not is_last:
            content = content[: _end_of_last_row(content)]
            if not content:
                raise file.invalid_row(line, f"the row is longer than {MAX_PART_BYTES} bytes")
        digest.update(content)
        parts.append(Part(start, len(content), line))
        if is_last:
            return parts, digest.hexdigest()
        start += len(content)
        line += content.count(b"\n")
        beat()


def _end_of_last_row(content: bytes) -> int:
    """Return where the last whole row ends, or 0 if there is no whole row.

    This can be wrong if the file has a quote that belongs to no pair. Then the next part may begin
    inside of a quoted cell. That never gives a wrong result: the cell has no end in its own part,
    so reading that part fails.
    """
    end_of_last_line = content.rfind(b"\n") + 1
    # A line end inside of a quoted cell does not end a row. It has an odd number of quotes before.
    end = end_of_last_line
    quotes = content.count(b'"', 0, end)
    while quotes % 2 == 1:
        start_of_line = content.rfind(b"\n", 0, end - 1) + 1
        quotes -= content.count(b'"', start_of_line, end)
        end = start_of_line
    return end if end > 0 else end_of_last_line


def read_header(file: CsvFile, first_part: Part) -> Row:
    """Return the names of the columns. Raise InvalidCsv if the first row cannot be used."""
    # An empty file has no row.
    _line, header = next(read_rows(file, first_part), (1, []))
    if not header:
        raise file.invalid_row(1, "the first line must be a header, but it is empty")
    if len(header) > MAX_COLUMNS:
        raise file.invalid_row(1, f"{len(header)} columns, but at most {MAX_COLUMNS} are allowed")
    return header


def read_rows(file: CsvFile, part: Part) -> Iterator[tuple[int, Row]]:
    """Yield the number of its first line and the cells of each row.

    Raise InvalidCsv at a row that is not valid CSV, or if the text is not UTF-8.
    """
    content = os.pread(file.descriptor, part.size, part.start)
    if part.start == 0:
        content = content.removeprefix(BOM_UTF8)
    try:
        text = content.decode()
    except UnicodeDecodeError as error:
        line = part.first_line + content.count(b"\n", 0, error.start)
        raise file.invalid_row(line, "the text is not UTF-8") from error
    lines = io.StringIO(text, newline="")
    reader = csv.reader(lines, delimiter=file.delimiter, strict=True)
    line = part.first_line
    try:
        for row in reader:
            yield line, row
            line = part.first_line + reader.line_num
    except csv.Error as error:
        raise file.invalid_row(line, str(error)) from error
