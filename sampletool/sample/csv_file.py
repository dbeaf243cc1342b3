"""Read a large CSV file in parts, so that several processes can read it at the same time.

The bounds of the parts depend only on the file, and never on the number of processes. So the result
does not depend on it either. A part ends at the end of a line. But a quoted cell may contain line
ends, so a file with a quote in it is one part.

Memory is bounded: rows come in batches of about one block of the file, and a row that is longer
than a few blocks is an error.
"""

import csv
import hashlib
import os
import stat
from codecs import BOM_UTF8
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import pairwise

from ..kit.contract.text import counted
from ..kit.safety.errors import UnsafePath
from .errors import InputChanged

PART_BYTES = 16 * 1024 * 1024
MAX_COLUMNS = 1000

_BLOCK_BYTES = 256 * 1024
_MAX_BLOCKS_OF_ROW = 8
"""How many blocks a row may be in. Without a limit, a quote that is never closed fills memory."""

Row = list[str]


class BadRow(Exception):
    """A row that cannot be used."""

    def __init__(self, line: int, reason: str) -> None:
        """Name the line, counted from the start of the part. The first line is number 1."""
        # A worker sends this error to another process, which builds it again from these arguments.
        super().__init__(line, reason)
        self.line = line
        self.reason = reason


@dataclass(frozen=True)
class Part:
    """Some lines of a file: the positions of their first byte, and of the byte after the last."""

    start: int
    end: int


@dataclass(frozen=True)
class CsvFile:
    """An open CSV file."""

    path: str
    descriptor: int
    delimiter: str
    found: os.stat_result
    """The status of the file when it was opened."""

    def check_unchanged(self) -> None:
        """Raise InputChanged if the file was changed since it was opened."""
        now = os.fstat(self.descriptor)
        if (now.st_size, now.st_mtime_ns) != (self.found.st_size, self.found.st_mtime_ns):
            raise InputChanged(self.path)


@contextmanager
def opened_csv(path: str, delimiter: str) -> Iterator[CsvFile]:
    """Open a CSV file until the block ends. Raise OSError or UnsafePath if that is not possible."""
    # Without O_NONBLOCK, opening a FIFO would wait for a writer.
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        found = os.fstat(descriptor)
        if not stat.S_ISREG(found.st_mode):
            raise UnsafePath(path, "it is not a regular file")
        yield CsvFile(path, descriptor, delimiter, found)
    finally:
        os.close(descriptor)


def survey(file: CsvFile, beat: Callable[[], None]) -> tuple[str, list[Part]]:
    """Return the SHA-256 of the file, and its parts. `beat` is called after each block."""
    size = file.found.st_size
    digest = hashlib.sha256()
    has_quote = False
    for offset in range(0, size, _BLOCK_BYTES):
        block = os.pread(file.descriptor, _BLOCK_BYTES, offset)
        digest.update(block)
        has_quote = has_quote or b'"' in block
        beat()
    if has_quote:
        # A line end may be inside of a quoted cell, so it is not known which of them end a row.
        parts = [Part(0, size)]
    else:
        parts = _divide_at_line_ends(file)
    return digest.hexdigest(), parts


def _divide_at_line_ends(file: CsvFile) -> list[Part]:
    """Return parts of about PART_BYTES. Each ends at the end of a line."""
    size = file.found.st_size
    bounds = {0, size}
    for offset in range(PART_BYTES, size, PART_BYTES):
        line_end = os.pread(file.descriptor, _BLOCK_BYTES, offset).find(b"\n")
        # If there is no line end nearby, the part before and the part behind stay one part.
        if line_end >= 0:
            bounds.add(offset + line_end + 1)
    return [Part(start, end) for start, end in pairwise(sorted(bounds))]


def read_header(file: CsvFile) -> Row:
    """Return the names of the columns. Raise BadRow if the first row cannot be used."""
    whole_file = Part(0, file.found.st_size)
    # Even an empty file has one row: an empty one.
    _line, header = next(PartReader(file, whole_file).rows())
    if not header:
        raise BadRow(1, "the first line must be a header, but it is empty")
    if len(header) > MAX_COLUMNS:
        raise BadRow(1, f"{len(header)} columns, but at most {MAX_COLUMNS} are allowed")
    return header


class PartReader:
    """A reader for the rows of one part. Several processes can share the file's descriptor."""

    def __init__(self, file: CsvFile, part: Part) -> None:
        self._file = file
        self._part = part
        # csv.reader() asks for a line only when it needs one.
        self._reader = csv.reader(self._lines(), delimiter=file.delimiter, strict=True)
        self._blocks_read = 0
        """How many blocks were read since the last batch was complete."""

    @property
    def line_count(self) -> int:
        """The number of lines in the rows that were read."""
        return self._reader.line_num

    def batches(self, width: int) -> Iterator[list[Row]]:
        """Yield the rows of the part, without the header and blank lines.

        A batch has about the rows of one block. Raise BadRow at a row without `width` cells.
        """
        batch: list[Row] = []
        rows = self.rows()
        if self._part.start == 0:
            # The first row has the names of the columns.
            next(rows, None)
        for line, row in rows:
            if len(row) == width:
                batch.append(row)
            elif row:
                raise BadRow(line, f"{counted(len(row), 'cell')} instead of {width}")
            if self._blocks_read > 0:
                yield batch
                batch = []
                self._blocks_read = 0
        yield batch

    def rows(self) -> Iterator[tuple[int, Row]]:
        """Yield the number of its first line and the cells of each row.

        Raise BadRow at a row that is not valid CSV or UTF-8.
        """
        first_line = 1
        try:
            for row in self._reader:
                yield first_line, row
                first_line = self._reader.line_num + 1
        except csv.Error as error:
            raise BadRow(first_line, str(error)) from error
        except UnicodeDecodeError as error:
            # The reader has counted the lines before the one that could not be decoded.
            raise BadRow(self._reader.line_num + 1, "the text is not UTF-8") from error

    def _lines(self) -> Iterator[str]:
        """Yield the lines of the part, with their ends. Raise csv.Error if a row is too long."""
        rest = b""
        for offset in range(self._part.start, self._part.end, _BLOCK_BYTES):
            self._blocks_read += 1
            if self._blocks_read > _MAX_BLOCKS_OF_ROW:
                max_bytes = _MAX_BLOCKS_OF_ROW * _BLOCK_BYTES
                raise csv.Error(f"the row is longer than {max_bytes} bytes")
            size = min(_BLOCK_BYTES, self._part.end - offset)
            block = os.pread(self._file.descriptor, size, offset)
            if offset == 0:
                block = block.removeprefix(BOM_UTF8)
            lines = (rest + block).splitlines(keepends=True)
            # The last line may continue in the next block, and so may "\r\n".
            rest = lines.pop() if lines else b""
            for line in lines:
                yield line.decode()
        yield rest.decode()
