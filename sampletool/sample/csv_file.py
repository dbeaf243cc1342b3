"""A CSV file as parts that can be read one beside the other, and the good rows of one part, in batches.

Only a file without any quote is cut: there every line end is the end of a record. Parts depend on the file alone,
never on how many work on it, so neither does a result. Memory is bounded by a batch, whatever the file holds.
"""

import csv
import hashlib
import io
import os
from codecs import getincrementaldecoder
from collections.abc import Callable, Iterator
from itertools import chain, pairwise
from sys import intern
from typing import Any, Literal, NamedTuple

PART_BYTES = 32 * 1024 * 1024
LONG_CELL = 200
"""Only the beginning of a longer cell is kept."""
_KEPT_CHARS = 100
_BLOCK_BYTES = 1024 * 1024
_LONGEST_RECORD_BYTES = 2 * 1024 * 1024
_BATCH_BYTES = 128 * 1024
_LAST = "; nothing behind it was read"
_BAD_TEXT = "it holds a NUL byte, or is not UTF-8 text"

OnError = Literal["stop", "skip"]
Row = list[str]


class Dialect(NamedTuple):
    delimiter: str = ","
    on_error: OnError = "stop"


class Part(NamedTuple):
    start: int
    end: int


class BadRow(NamedTuple):
    line: int
    reason: str
    is_last: bool = False
    """Nothing behind it can be read."""


class Batch(NamedTuple):
    rows: list[Row]
    bad_rows: list[BadRow]
    lines: int
    """Of the part, up to the end of this batch."""


def survey(
    descriptor: int, size: int, check: Callable[[], None], part_bytes: int = PART_BYTES
) -> tuple[str, list[Part]]:
    """The SHA-256 of all bytes, and the parts. `check` is called now and then, and may raise."""
    digest, offset, has_quote = hashlib.sha256(), 0, False
    while block := os.pread(descriptor, _BLOCK_BYTES, offset):
        check()
        digest.update(block)
        has_quote = has_quote or b'"' in block
        offset += len(block)
    # Parts of one size, and an even number of them, so that two workers have the same to do; small files are not cut.
    count = 1 if has_quote or size <= part_bytes // 4 else 2 * -(-size // (2 * part_bytes))
    wanted = [size * number // count for number in range(1, count)]
    line_ends = [start + os.pread(descriptor, _BLOCK_BYTES, start).find(b"\n") + 1 for start in wanted]
    cuts = [0, *sorted({cut for cut, start in zip(line_ends, wanted, strict=True) if start < cut < size}), size]
    return digest.hexdigest(), [Part(start, end) for start, end in pairwise(cuts)]


def read_header(descriptor: int, size: int, dialect: Dialect) -> Row:
    """The names in the first record. ValueError: the line, and why there are none."""
    source = _Source(descriptor, Part(0, size), dialect)
    try:
        for row in source.reader:
            if source.has_bad_text and _is_bad_text("".join(row)):
                raise ValueError(source.reader.line_num, _BAD_TEXT)
            if row:
                return [*map(intern, row)]  # many inputs have the same names
            if source.batch > 1:
                break  # blank lines without end are not worth a search
    except csv.Error as error:
        raise ValueError(1, _why(error)) from error
    raise ValueError(1, "it is empty, without even a header")


def read_rows(descriptor: int, part: Part, dialect: Dialect, width: int) -> Iterator[Batch]:
    """The rows behind the header. Blank lines are left out; rows of another width are bad."""
    source = _Source(descriptor, part, dialect)
    if part.start == 0:
        next(row for row in source.reader if row)
    is_over = False
    while not is_over:
        rows: list[Row] = []
        bad_rows: list[BadRow] = []
        batch, before, lines = source.batch, source.reader.line_num, []
        source.unfinished_bytes = 0
        try:
            for row in source.reader:
                rows.append(row)
                lines.append(source.reader.line_num)
                if source.batch != batch:
                    break
            else:
                is_over = True
        except csv.Error as error:
            is_over = _why(error).endswith(_LAST)
            bad_rows.append(BadRow((lines or [before])[-1] + 1, _why(error), is_over))
        if source.has_bad_text or set(map(len, rows)) != {width}:
            starts = [before + 1, *(line + 1 for line in lines)]
            found = [(row, line, _why_bad(source, row, width)) for row, line in zip(rows, starts, strict=False) if row]
            rows = [row for row, _, why in found if not why]
            bad_rows = [BadRow(line, why) for _, line, why in found if why] + bad_rows
        # A long cell needs a long line, or a record of several lines.
        if source.longest > LONG_CELL or source.reader.line_num > before + len(rows):
            rows = [[*map(_shortened, row)] for row in rows]
        yield Batch(rows, bad_rows, source.reader.line_num)


def _why_bad(source: "_Source", row: Row, width: int) -> str:
    if len(row) != width:
        return f"it has {len(row)} instead of {width} cells"
    return _BAD_TEXT if source.has_bad_text and _is_bad_text("".join(row)) else ""


def _is_bad_text(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return True
    return "\0" in text


def _shortened(cell: str) -> str:
    """The beginning of a long cell, and a digest that keeps different ones different."""
    if len(cell) <= LONG_CELL:
        return cell
    return f"{cell[:_KEPT_CHARS]}…{hashlib.blake2b(cell.encode(), digest_size=8).hexdigest()}"


def _why(error: Exception) -> str:
    """What is wrong with the record, in words for people."""
    if "field limit" in str(error):
        return f"a cell is longer than {csv.field_size_limit()} characters{_LAST}"
    return str(error).replace("unexpected end of data", "a quoted cell that never ends")


class _Source:
    """The lines of a part, a batch at a time. Reads by position, so that one descriptor serves several processes."""

    def __init__(self, descriptor: int, part: Part, dialect: Dialect) -> None:
        self.batch = 0
        self.longest = 0
        self.has_bad_text = False
        self.unfinished_bytes = 0
        """Since a record last ended, more or less; who takes the rows sets it back."""
        lines = chain.from_iterable(self._batches(descriptor, part))
        self.reader: Any = csv.reader(lines, delimiter=dialect.delimiter, strict=True)

    def _batches(self, descriptor: int, part: Part) -> Iterator[list[str]]:
        to_text = getincrementaldecoder("utf-8" if part.start else "utf-8-sig")("surrogateescape")
        decoder = io.IncrementalNewlineDecoder(to_text, translate=False)
        position, rest = part.start, ""
        while block := os.pread(descriptor, min(_BATCH_BYTES, part.end - position), position):
            position += len(block)
            self.unfinished_bytes += len(block)
            if self.unfinished_bytes > _LONGEST_RECORD_BYTES:
                raise csv.Error(f"it is longer than {_LONGEST_RECORD_BYTES} bytes{_LAST}")
            text = decoder.decode(block, position == part.end)
            lines = io.StringIO(text, newline="").readlines() or [""]
            lines[0] = rest + lines[0]
            rest = lines.pop() if position < part.end and not lines[-1].endswith("\n") else ""
            self.batch += 1
            self.longest = max(self.longest, *map(len, lines), 0)
            self.has_bad_text = self.has_bad_text or _is_bad_text(text)
            yield lines
