"""A CSV file as parts that can be read one beside the other, and the good rows of one part, in batches.

Only a file without any quote is cut: there every line end is the end of a record. Parts depend on the file alone,
never on how many work on it, so neither does a result. Memory is bounded by a batch, whatever the file holds.
"""

import codecs
import csv
import hashlib
import io
import os
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import chain
from sys import intern
from typing import Any, NamedTuple

PART_BYTES = 32 * 1024 * 1024
LONG_CELL = 200
_BLOCK_BYTES = _LONGEST_LINE_BYTES = 1024 * 1024
_LONGEST_RECORD_CHARS = 4 * 1024 * 1024
_BATCH_CHARS = 128 * 1024
_LONGEST_CELL = csv.field_size_limit()
_CUT_ANYWHERE = ("utf-8", "ascii", "iso8859", "cp125")
"""Encodings in which the bytes of a quote and of a line end are never part of something else."""
_LINE_END = re.compile("\r\n|\r|\n")

Row = list[str]


@dataclass(frozen=True)
class Dialect:
    delimiter: str = ","
    encoding: str = "utf-8"


class Part(NamedTuple):
    start: int
    end: int


class BadRow(NamedTuple):
    line: int
    reason: str


class Batch(NamedTuple):
    rows: list[Row]
    bad_rows: list[BadRow]
    lines: int
    """Of the part, up to the end of this batch."""
    has_long_cells: bool
    ends_here: bool
    """Nothing behind the last bad row can be read."""


class _Unreadable(Exception):
    """Nothing behind the last line can be read."""


def survey(
    descriptor: int, size: int, dialect: Dialect, check: Callable[[], None], part_bytes: int = PART_BYTES
) -> tuple[str, list[Part]]:
    """The SHA-256 of all bytes, and the parts. `check` is called now and then, and may raise."""
    # Parts of one size, and an even number of them, so that two workers have the same to do; small files are not cut.
    count = 2 * -(-size // (2 * part_bytes)) if size > part_bytes // 4 else 1
    step = -(-size // count) or 1
    digest, cuts, offset, has_quote = hashlib.sha256(), [0], 0, False
    while block := os.pread(descriptor, min(step, _BLOCK_BYTES), offset):
        check()
        digest.update(block)
        has_quote = has_quote or b'"' in block
        wanted = max(0, len(cuts) * step - offset)
        if wanted < len(block) and (line_end := block.find(b"\n", wanted)) >= 0:
            cuts.append(offset + line_end + 1)
        offset += len(block)
    if has_quote or not codecs.lookup(dialect.encoding).name.startswith(_CUT_ANYWHERE):
        cuts = [0]
    ends = [cut for cut in cuts[1:] if cut < offset] + [offset]
    return digest.hexdigest(), [Part(start, end) for start, end in zip(cuts, ends, strict=False)]


def read_header(descriptor: int, size: int, dialect: Dialect) -> Row:
    """The names in the first record. ValueError: the line, and why there are none."""
    source = _Source(descriptor, Part(0, size), dialect)
    reader = source.reader()
    try:
        for row in reader:
            if source.is_suspicious and _is_unreadable(row):
                raise ValueError(reader.line_num, _unreadable(dialect))
            if row:
                return [*map(intern, row)]  # many inputs have the same names
            if source.batch > 1:
                break  # blank lines without end are not worth a search
    except (csv.Error, _Unreadable) as error:
        raise ValueError(1, _reason(error)) from error
    raise ValueError(1, "it is empty, without even a header")


def read_rows(descriptor: int, part: Part, dialect: Dialect, width: int) -> Iterator[Batch]:
    """The rows behind the header. Blank lines are left out; rows of another width are bad."""
    source = _Source(descriptor, part, dialect)
    reader = source.reader()
    if part.start == 0:
        next(row for row in reader if row)
    ends_here = is_over = False
    while not is_over and not ends_here:
        rows: list[Row] = []
        before, batch, reason = reader.line_num, source.batch, None
        source.record_chars = 0
        try:
            for row in reader:
                rows.append(row)
                if source.batch != batch:
                    break
            else:
                is_over = True
        except (csv.Error, _Unreadable) as error:
            reason = _reason(error)
            ends_here = isinstance(error, _Unreadable) or "field limit" in str(error)
        bad_rows: list[BadRow] = []
        # A long cell needs a long line, or a record of several lines.
        has_long_cells = source.longest > LONG_CELL or reader.line_num > before + len(rows)
        if reason or source.is_suspicious or set(map(len, rows)) != {width}:
            line, good = before + 1, []
            for row in rows:
                if row and len(row) != width:
                    bad_rows.append(BadRow(line, f"it has {len(row)} instead of {width} cells"))
                elif source.is_suspicious and _is_unreadable(row):
                    bad_rows.append(BadRow(line, _unreadable(dialect)))
                elif row:
                    good.append(row)
                line += 1 + sum(len(_LINE_END.findall(cell)) for cell in row)
            rows = good
            if reason:
                bad_rows.append(BadRow(line, reason))
        yield Batch(rows, bad_rows, reader.line_num, has_long_cells, ends_here)


def _reason(error: Exception) -> str:
    if "field limit" in str(error):
        return f"a cell is longer than {_LONGEST_CELL} characters; nothing behind it was read"
    return str(error).replace("unexpected end of data", "a quoted cell that never ends")


def _unreadable(dialect: Dialect) -> str:
    return f"it holds a NUL byte, or is not {dialect.encoding} text"


def _is_unreadable(cells: list[str]) -> bool:
    text = "".join(cells)
    try:
        text.encode()
    except UnicodeEncodeError:
        return True
    return "\0" in text


class _Source(io.RawIOBase):
    """The lines of a part. Reads by position, so that one descriptor serves several processes."""

    def __init__(self, descriptor: int, part: Part, dialect: Dialect) -> None:
        self.batch = 0
        self.longest = 0
        self.is_suspicious = False
        self.record_chars = 0
        """Since a record last ended, more or less; the reader of the lines sets it back."""
        self._descriptor, (self._position, self._end) = descriptor, part
        self._line_bytes = 0
        self._dialect = dialect
        name = codecs.lookup(dialect.encoding).name
        if name.startswith("utf-8"):
            name = "utf-8" if part.start else "utf-8-sig"
        self._text = io.TextIOWrapper(io.BufferedReader(self, 65536), name, "surrogateescape", newline="")

    def reader(self) -> Any:
        lines = chain.from_iterable(self._batches())
        return csv.reader(lines, delimiter=self._dialect.delimiter, strict=True)

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        if self._line_bytes > _LONGEST_LINE_BYTES:
            return 0
        block = os.pread(self._descriptor, min(len(buffer), self._end - self._position), self._position)
        line_end = max(block.rfind(b"\n"), block.rfind(b"\r"))
        self._line_bytes = len(block) - line_end if line_end >= 0 else self._line_bytes + len(block)
        self._position += len(block)
        buffer[: len(block)] = block
        return len(block)

    def _batches(self) -> Iterator[list[str]]:
        while lines := self._read():
            self.batch += 1
            self.record_chars += sum(map(len, lines))
            if self.record_chars > _LONGEST_RECORD_CHARS:
                raise _Unreadable(f"it is longer than {_LONGEST_RECORD_CHARS} characters; nothing behind it was read")
            self.longest = max(self.longest, max(map(len, lines)))
            self.is_suspicious = self.is_suspicious or _is_unreadable(lines)
            yield lines
        if self._line_bytes > _LONGEST_LINE_BYTES:
            raise _Unreadable(f"it is longer than {_LONGEST_LINE_BYTES} bytes; nothing behind it was read")

    def _read(self) -> list[str]:
        try:
            lines = self._text.readlines(_BATCH_CHARS)
        except UnicodeError as error:
            raise _Unreadable(str(error)) from error
        return lines[:-1] if self._line_bytes > _LONGEST_LINE_BYTES else lines
