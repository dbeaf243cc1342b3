"""A CSV file as ranges of bytes that end where a record ends, and the good rows of one range, in batches.

Ranges depend on the file alone, never on how many work on it, so neither does a result. They are cut at line ends
with an even number of quotes before them. A stray quote can fool that, so each range tells whether it really ended at
a record end: if all did, each also began at one; if not, the file has to be read as one range. Memory is bounded by
the size of a batch, whatever the file holds.
"""

import codecs
import csv
import hashlib
import io
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import chain, islice
from sys import intern

RANGE_BYTES = 32 * 1024 * 1024
LONG_CELL = 200
_BLOCK_BYTES = _LONGEST_LINE_BYTES = 1024 * 1024
_LONGEST_RECORD_CHARS = 4 * 1024 * 1024
_BATCH_CHARS = 128 * 1024
LONGEST_CELL = csv.field_size_limit()
DESCRIBED = 20
"""So many bad rows are described; the others are only counted."""
_CUT_ANYWHERE = ("utf-8", "ascii", "iso8859", "cp125")
"""Encodings in which the bytes of a quote and of a line end are never part of something else."""

Row = list[str]


@dataclass(frozen=True)
class Dialect:
    delimiter: str = ","
    encoding: str = "utf-8"


@dataclass(frozen=True)
class Range:
    start: int
    end: int
    is_last: bool = True


@dataclass
class Reading:
    """How reading one range went. Lines are counted from its start."""

    lines: int = 0
    skipped: int = 0
    has_long_cells: bool = False
    bad_rows: list[tuple[int, str]] = field(default_factory=list)
    """Where the first of them begin, and what is wrong with them."""
    ends_open: bool = False
    """It ended inside a quoted cell, so it was cut at the wrong place."""
    is_cut_short: bool = False
    """By a bad row that had to stop it, or by something behind which nothing can be read."""
    can_be_skipped: bool = False
    """It was such a bad row."""

    def skip(self, line: int, reason: str) -> None:
        self.skipped += 1
        if len(self.bad_rows) < DESCRIBED or self.is_cut_short:
            self.bad_rows.append((line, reason))


def survey(
    descriptor: int, size: int, dialect: Dialect, check: Callable[[], None], range_bytes: int = RANGE_BYTES
) -> tuple[str, list[Range]]:
    """The SHA-256 of all bytes, and the ranges. `check` is called now and then, and may raise."""
    can_be_cut = codecs.lookup(dialect.encoding).name.startswith(_CUT_ANYWHERE)
    # Ranges of one size, and an even number of them, so that two workers have the same to do; small files are not cut.
    count = 2 * -(-size // (2 * range_bytes)) if size > range_bytes // 4 else 1
    step = -(-size // count) or 1
    digest, cuts, quotes, offset = hashlib.sha256(), [0], 0, 0
    while block := os.pread(descriptor, min(step, _BLOCK_BYTES), offset):
        check()
        digest.update(block)
        wanted = len(cuts) * step - offset
        if can_be_cut and wanted < len(block) and (cut := _record_end(block, max(0, wanted), quotes)):
            cuts.append(offset + cut)
        quotes += block.count(b'"')
        offset += len(block)
    ends = [cut for cut in cuts[1:] if cut < offset] + [offset]
    return digest.hexdigest(), [Range(start, end, end == offset) for start, end in zip(cuts, ends, strict=False)]


def _record_end(block: bytes, begin: int, quotes: int) -> int | None:
    quotes += block.count(b'"', 0, begin)
    while (newline := block.find(b"\n", begin)) >= 0:
        quotes += block.count(b'"', begin, newline)
        begin = newline + 1
        if quotes % 2 == 0:
            return begin
    return None


def read_header(descriptor: int, size: int, dialect: Dialect) -> tuple[Row, int]:
    """The names in the first record, and the line it ends at. ValueError: the line, and why there are none."""
    for rows, begins, problems in _batches(descriptor, Range(0, size), dialect, 0, Reading()):
        for index, row in enumerate(rows):
            if index in problems:
                raise ValueError(begins[index], problems[index])
            if row:
                return [*map(intern, row)], begins[index + 1] - 1  # many inputs have the same names
        break  # Blank lines without end are not worth a search; and no range may be cut before the header.
    raise ValueError(1, "it is empty, without even a header")


def read_rows(
    descriptor: int, part: Range, dialect: Dialect, width: int, header_end: int, reading: Reading, *, stop: bool
) -> Iterator[list[Row]]:
    """Bad rows are reported and left out; with `stop` the first of them ends it."""
    for rows, begins, problems in _batches(descriptor, part, dialect, 0 if part.start else header_end, reading):
        if problems or set(map(len, rows)) != {width}:
            for index, row in enumerate(rows):
                if row and len(row) != width:
                    problems.setdefault(index, f"it has {len(row)} instead of {width} cells")
            for index in sorted(problems)[: 1 if stop else None]:
                reading.skip(begins[index], problems[index])
            if problems and stop:
                reading.can_be_skipped = not reading.is_cut_short
                reading.is_cut_short = True
                return
            rows = [row for index, row in enumerate(rows) if row and index not in problems]
        yield rows


def _batches(
    descriptor: int, part: Range, dialect: Dialect, header_end: int, reading: Reading
) -> Iterator[tuple[list[Row], list[int], dict[int, str]]]:
    """Rows, the lines at which each and the next begin, and what is wrong with some. A blank line has no cells."""
    source = _Source(descriptor, part, dialect)
    lines = islice(chain.from_iterable(source.batches()), header_end, None)
    reader = csv.reader(lines, delimiter=dialect.delimiter, strict=True)
    rows: list[Row] = []
    after = header_end + 1
    begins, problems, batch = [after], {}, source.batch

    def finished() -> tuple[list[Row], list[int], dict[int, str]]:
        if source.is_suspicious:
            wrong = f"it holds a NUL byte, or is not {dialect.encoding} text"
            problems.update({index: wrong for index, row in enumerate(rows) if _is_unreadable("".join(row))})
        reading.lines = begins[-1] - 1
        # A long cell needs a long line, or a record of several lines.
        reading.has_long_cells = source.longest > LONG_CELL or reading.lines >= begins[0] + len(rows)
        return rows, begins, problems

    while not reading.is_cut_short:
        try:
            for row in reader:
                if source.batch != batch:
                    if rows:
                        yield finished()
                    rows, begins, problems, batch = [], begins[-1:], {}, source.batch
                    source.record_chars = 0
                rows.append(row)
                begins.append(reader.line_num + after)
            if source.failure is None:
                break
            reason = source.failure
            reading.is_cut_short = True
        except csv.Error as error:
            reading.ends_open = source.is_exhausted and not source.part.is_last
            if reading.ends_open:
                return
            reason = str(error)
            if source.is_exhausted:
                reason = source.failure or "a quoted cell that never ends"
                reading.is_cut_short = source.failure is not None
            if "field limit" in reason:
                reason = f"a cell is longer than {LONGEST_CELL} characters"
                line = header_end + reader.line_num
                if line > begins[-1] or not _is_whole(source.line(line), dialect):
                    # Its rest would be taken for rows, and nobody knows where it ends.
                    reading.is_cut_short = True
                    reason += ", and nobody knows where it ends; nothing behind it was read"
        problems[len(rows)] = reason
        rows.append([])
        begins.append(reader.line_num + after)
        source.record_chars = 0
        if source.batch != batch:
            yield finished()
            rows, begins, problems, batch = [], begins[-1:], {}, source.batch
    yield finished()


def _is_whole(line: str, dialect: Dialect) -> bool:
    """Is it a record of one line, however long its cells are?"""
    csv.field_size_limit(len(line))
    try:
        return bool(list(csv.reader([line], delimiter=dialect.delimiter, strict=True)))
    except csv.Error:
        return False
    finally:
        csv.field_size_limit(LONGEST_CELL)


def _is_unreadable(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return True
    return "\0" in text


class _Source(io.RawIOBase):
    """The lines of a range. Reads by position, so that one descriptor serves several processes."""

    def __init__(self, descriptor: int, part: Range, dialect: Dialect) -> None:
        self.part = part
        self.batch = 0
        self.longest = 0
        self.is_suspicious = False
        self.is_exhausted = False
        self.record_chars = 0
        """Since a record last ended, more or less; the reader of the lines has to say so."""
        self.failure: str | None = None
        """Why nothing behind the last batch can be read."""
        self._descriptor = descriptor
        self._position = part.start
        self._line_bytes = 0
        self._lines: list[str] = []
        self._lines_before = 0
        name = codecs.lookup(dialect.encoding).name
        if name.startswith("utf-8"):
            name = "utf-8" if part.start else "utf-8-sig"
        self._text = io.TextIOWrapper(io.BufferedReader(self, 65536), name, "surrogateescape", newline="")

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        block = os.pread(self._descriptor, min(len(buffer), self.part.end - self._position), self._position)
        end = max(block.rfind(b"\n"), block.rfind(b"\r"))
        self._line_bytes = len(block) - end if end >= 0 else self._line_bytes + len(block)
        if self._line_bytes > _LONGEST_LINE_BYTES:
            self.failure = f"it is longer than {_LONGEST_LINE_BYTES} bytes; nothing behind it was read"
            return 0
        self._position += len(block)
        buffer[: len(block)] = block
        return len(block)

    def batches(self) -> Iterator[list[str]]:
        while lines := self._read():
            self.batch += 1
            self._lines_before += len(self._lines)
            self._lines = lines
            self.record_chars += sum(map(len, lines))
            if self.record_chars > _LONGEST_RECORD_CHARS:
                self.failure = f"it is longer than {_LONGEST_RECORD_CHARS} characters; nothing behind it was read"
                break
            self.longest = max(self.longest, max(map(len, lines)))
            self.is_suspicious = self.is_suspicious or _is_unreadable("".join(lines))
            yield lines
        self.is_exhausted = True

    def line(self, number: int) -> str:
        """One of the last batch."""
        return self._lines[number - self._lines_before - 1]

    def _read(self) -> list[str]:
        try:
            lines = self._text.readlines(_BATCH_CHARS)
        except UnicodeError as error:
            self.failure = str(error)
            return []
        return lines[:-1] if self.failure and lines else lines
