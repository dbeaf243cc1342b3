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

from ..kit.safety.errors import UnsafePath
from .errors import InputChanged

PART_BYTES = 16 * 1024 * 1024
MAX_COLUMNS = 1000

_BLOCK_BYTES = 256 * 1024
_MAX_BLOCKS_OF_ROW = 8

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
    bounds = {0, size}
    # In quotes, the end of a line may be inside of a cell. So a file with quotes has one part.
    if not has_quote:
        for offset in range(PART_BYTES, size, PART_BYTES):
            line_end = os.pread(file.descriptor, _BLOCK_BYTES, offset).find(b"\n")
            # If there is none, the two parts stay together.
            if line_end >= 0:
                bounds.add(offset + line_end + 1)
    parts = [Part(start, end) for start, end in pairwise(sorted(bounds))]
    return digest.hexdigest(), parts


def read_header(file: CsvFile) -> Row:
    """Return the names of the columns. Raise BadRow if the first row cannot be used."""
    header = PartReader(file, Part(0, file.found.st_size)).header
    if len(header) > MAX_COLUMNS:
        raise BadRow(1, f"{len(header)} columns, but at most {MAX_COLUMNS} are allowed")
    return header


class PartReader:
    """A reader for the rows of one part. Several processes can share the file's descriptor."""

    def __init__(self, file: CsvFile, part: Part) -> None:
        """Begin at the start of the part. Read the header, if it is in this part."""
        self.line = 0
        """The number of lines in the rows that were read."""
        self._blocks = 0
        """How many blocks were read since the last batch was complete."""
        lines = self._lines(file.descriptor, part)
        # csv.reader() asks for a line only when it needs one.
        self._reader = csv.reader(lines, delimiter=file.delimiter, strict=True)
        self.header: Row = []
        if part.start == 0:
            self.header = next(self._rows(), [])
            if not self.header:
                raise BadRow(1, "the first line must be a header, but it is empty")

    def batches(self, width: int) -> Iterator[list[Row]]:
        """Yield the rows, without blank lines. Raise BadRow at a row without `width` cells."""
        batch: list[Row] = []
        line = self.line + 1
        for row in self._rows():
            if len(row) == width:
                batch.append(row)
            elif row:
                raise BadRow(line, f"{len(row)} cells instead of {width}")
            line = self.line + 1
            if self._blocks > 0:
                yield batch
                batch = []
                self._blocks = 0
        yield batch

    def _rows(self) -> Iterator[Row]:
        """Yield the rows. Raise BadRow at a row that is not valid CSV or UTF-8."""
        try:
            for row in self._reader:
                self.line = self._reader.line_num
                yield row
        except csv.Error as error:
            raise BadRow(self.line + 1, str(error)) from error
        except UnicodeDecodeError as error:
            # The reader has counted the lines before the one that could not be decoded.
            raise BadRow(self._reader.line_num + 1, "the text is not UTF-8") from error

    def _lines(self, descriptor: int, part: Part) -> Iterator[str]:
        """Yield the lines of the part, with their ends."""
        rest = b""
        for offset in range(part.start, part.end, _BLOCK_BYTES):
            self._blocks += 1
            if self._blocks > _MAX_BLOCKS_OF_ROW:
                max_bytes = _MAX_BLOCKS_OF_ROW * _BLOCK_BYTES
                raise csv.Error(f"the row is longer than {max_bytes} bytes")
            block = os.pread(descriptor, min(_BLOCK_BYTES, part.end - offset), offset)
            if offset == 0:
                block = block.removeprefix(BOM_UTF8)
            lines = (rest + block).splitlines(keepends=True)
            # The last line may continue in the next block, and so may "\r\n".
            rest = lines.pop() if lines else b""
            for line in lines:
                yield line.decode()
        yield rest.decode()
