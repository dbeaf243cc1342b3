"""CSV files: opened, cut into parts that can be read one beside the other, and the rows of one part, in batches.

A FIFO, a device or a directory is an error, not a wait. Standard input is first copied to a nameless temporary file,
so that it too can be read twice, by several at once; whatever ends the call, that file is gone. Only a file without
any quote is cut: there every line end is the end of a record. Parts depend on the file alone, never on how many work
on it, so neither does a result. Memory is bounded by a batch, whatever the file holds.
"""

import csv
import hashlib
import io
import os
import stat
from codecs import getincrementaldecoder
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from itertools import chain, pairwise
from sys import intern
from typing import Any, NamedTuple

from ..kit.contract.errors import ToolError
from ..kit.contract.expected import to_tool_error
from ..kit.contract.file_errors import from_os_error
from ..kit.safety.atomic_file import write_all
from ..kit.safety.errors import UnsafePath
from ..kit.safety.signals import Signals
from ..kit.stdin import stdin_blocks
from .errors import InputChanged, InvalidCsv

STDIN = "-"
MOST_COLUMNS = 4096
PART_BYTES = 16 * 1024 * 1024
LONG_CELL = 200
"""Only the beginning of a longer cell is kept."""
_BLOCK_BYTES = 1024 * 1024
_LONGEST_RECORD_BYTES = 2 * 1024 * 1024
_BATCH_BYTES = 128 * 1024
_UNUSABLE = (FileNotFoundError, NotADirectoryError, PermissionError, UnsafePath)
"""Faults of one input, reported with those of the others; any other failure ends the call at once."""

Row = list[str]


class Part(NamedTuple):
    start: int
    end: int


class BadRow(Exception):
    """Its line, counted from the start of the part, and why it cannot be used."""


class Input(NamedTuple):
    path: str
    descriptor: int
    found: os.stat_result
    header: Row

    def must_be_unchanged(self) -> None:
        now, then = os.fstat(self.descriptor), self.found
        if (now.st_size, now.st_mtime_ns, now.st_ctime_ns) != (then.st_size, then.st_mtime_ns, then.st_ctime_ns):
            raise InputChanged(self.path)


def open_inputs(names: list[str], delimiter: str, signals: Signals, stack: ExitStack) -> list[Input]:
    """Every input, open until the stack is left. Code and advice are those of the first that cannot be used."""
    inputs: list[Input] = []
    errors: list[ToolError] = []
    for name in names:
        path = name if name == STDIN else os.path.abspath(name)
        try:
            descriptor = _copy_of_stdin(signals, stack) if name == STDIN else _open(path, stack)
            found = os.fstat(descriptor)
            header = read_header(descriptor, found.st_size, delimiter)
            inputs.append(Input(path, descriptor, found, header))
        except BadRow as error:
            line, reason = error.args
            errors.append(InvalidCsv(path=path, line=line, reason=reason))
        except _UNUSABLE as error:
            errors.append(from_os_error(error, path) if isinstance(error, OSError) else to_tool_error(error))
    if len(errors) > 1:
        errors[0].context["problems"] = [error.message for error in errors]
        errors[0].message = f"{len(errors)} of {len(names)} inputs cannot be used; nothing was done."
    if errors:
        raise errors[0]
    return inputs


def _open(path: str, stack: ExitStack) -> int:
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    stack.callback(os.close, descriptor)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        raise UnsafePath(path, f"it is not a regular file; pipe it in and name {STDIN!r}")
    return descriptor


def _copy_of_stdin(signals: Signals, stack: ExitStack) -> int:
    import tempfile

    copy = stack.enter_context(tempfile.TemporaryFile(buffering=0))  # noqa: SIM115 - the stack closes it
    for block in stdin_blocks(signals):
        write_all(copy.fileno(), block)
    return copy.fileno()


def survey(descriptor: int, size: int, check: Callable[[], None]) -> tuple[str, list[Part]]:
    """The SHA-256 of all bytes, and the parts. `check` is called now and then, and may raise."""
    digest, offset, has_quote = hashlib.sha256(), 0, False
    while block := os.pread(descriptor, _BLOCK_BYTES, offset):
        check()
        digest.update(block)
        has_quote = has_quote or b'"' in block
        offset += len(block)
    count = 1 if has_quote else -(-size // PART_BYTES)
    wanted = [size * number // count for number in range(1, count)]  # parts of one size
    line_ends = {start + at for start in wanted if (at := os.pread(descriptor, _BLOCK_BYTES, start).find(b"\n") + 1)}
    return digest.hexdigest(), [Part(start, end) for start, end in pairwise(sorted({0, size} | line_ends))]


def read_header(descriptor: int, size: int, delimiter: str) -> Row:
    """The names in the first record."""
    source = _Source(descriptor, Part(0, size), delimiter)
    try:
        header = next((row for row in source.reader if row), None)
    except csv.Error as error:
        raise BadRow(1, _why(error)) from error
    if header is None:
        raise BadRow(1, "it is empty, without even a header")
    if len(header) > MOST_COLUMNS:
        raise BadRow(1, f"it has {len(header)} columns, more than {MOST_COLUMNS}")
    return [*map(intern, header)]  # many inputs have the same names


def read_rows(descriptor: int, part: Part, delimiter: str, width: int) -> Iterator[tuple[list[Row], int]]:
    """The rows behind the header, without blank lines, and the number of lines so far. It ends at the first bad row."""
    source = _Source(descriptor, part, delimiter)
    reader = source.reader
    if part.start == 0:
        next(row for row in reader if row)
    line = reader.line_num
    while True:
        rows: list[Row] = []
        batch, before = source.batch, line
        source.unfinished_bytes = 0
        try:
            for row in reader:
                if len(row) == width:
                    rows.append(row)
                elif row:
                    raise BadRow(line + 1, f"it has {len(row)} instead of {width} cells")
                line = reader.line_num
                if source.batch != batch:
                    break
        except csv.Error as error:
            raise BadRow(line + 1, _why(error)) from error
        # A long cell needs a long line, or a record of several lines.
        if source.longest > LONG_CELL or line > before + len(rows):
            rows = [[*map(_shortened, row)] for row in rows]
        yield rows, line
        if source.batch == batch:
            return


def _shortened(cell: str) -> str:
    """The beginning of a long cell, and a digest that keeps different ones different."""
    if len(cell) <= LONG_CELL:
        return cell
    return f"{cell[:LONG_CELL]}…{hashlib.blake2b(cell.encode(), digest_size=8).hexdigest()}"


def _why(error: Exception) -> str:
    """What is wrong with the record, in words for people."""
    if "field limit" in str(error):
        return f"a cell is longer than {csv.field_size_limit()} characters"
    return str(error).replace("unexpected end of data", "a quoted cell that never ends")


class _Source:
    """The lines of a part, a batch at a time. Reads by position, so that one descriptor serves several processes."""

    def __init__(self, descriptor: int, part: Part, delimiter: str) -> None:
        self.batch = 0
        self.longest = 0
        self.unfinished_bytes = 0
        """Since a record last ended, more or less; who takes the rows sets it back."""
        lines = chain.from_iterable(self._batches(descriptor, part))
        self.reader: Any = csv.reader(lines, delimiter=delimiter, strict=True)

    def _batches(self, descriptor: int, part: Part) -> Iterator[list[str]]:
        to_text = getincrementaldecoder("utf-8" if part.start else "utf-8-sig")("strict")
        decoder = io.IncrementalNewlineDecoder(to_text, translate=False)
        position, rest = part.start, ""
        while block := os.pread(descriptor, min(_BATCH_BYTES, part.end - position), position):
            position += len(block)
            self.unfinished_bytes += len(block)
            if self.unfinished_bytes > _LONGEST_RECORD_BYTES:
                raise csv.Error(f"it is longer than {_LONGEST_RECORD_BYTES} bytes")
            try:
                text = decoder.decode(block, position == part.end)
            except UnicodeDecodeError as error:
                text = error.object[: error.start].decode() + "\0"
            good, bad, _ = text.partition("\0")
            lines = io.StringIO(good, newline="").readlines() or [""]
            lines[0] = rest + lines[0]
            rest = lines.pop() if (bad or position < part.end) and not lines[-1].endswith(("\n", "\r")) else ""
            self.batch += 1
            self.longest = max(self.longest, *map(len, lines), 0)
            yield lines
            if bad:
                raise BadRow(self.reader.line_num + 1, "it holds a NUL byte, or is not UTF-8 text")
