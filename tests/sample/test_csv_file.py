"""A CSV file is cut at record ends, and every bad row is named by its line."""

import csv
import hashlib
import io
import os
import random
import tracemalloc
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from sampletool.kit.testing.scale import scale
from sampletool.sample.csv_file import BadRow, Part, Row, read_header, read_rows, survey

CELLS = ["", "a", "0", "two\nlines", "two\r\nlines", 'a "quoted" word', '"', "comma, comma", "ä€𝄞", " "]
PLAIN_CELLS = ["", "a", "0", "ä€𝄞", " "]


def never() -> None:
    """Nobody asks to stop."""


@pytest.fixture
def csv_file(tmp_path: Path) -> Iterator["CsvFile"]:
    file = CsvFile(tmp_path / "data.csv")
    yield file
    file.close()


class CsvFile:
    def __init__(self, path: Path) -> None:
        self.path = path
        self.descriptor = -1

    def write(self, content: bytes) -> "CsvFile":
        self.close()
        self.path.write_bytes(content)
        self.descriptor = os.open(self.path, os.O_RDONLY)
        return self

    def close(self) -> None:
        if self.descriptor >= 0:
            os.close(self.descriptor)
            self.descriptor = -1

    def header(self, delimiter: str = ",") -> Row:
        return read_header(self.descriptor, self.path.stat().st_size, delimiter)

    def parts(self, part_bytes: int) -> list[Part]:
        with pytest.MonkeyPatch.context() as patched:
            patched.setattr("sampletool.sample.csv_file.PART_BYTES", part_bytes)
            return survey(self.descriptor, self.path.stat().st_size, never)[1]

    def read(self, part: Part | None = None, delimiter: str = ",") -> "Reading":
        """The good rows; the line of the bad one that ends it, and why."""
        part = part or Part(0, self.path.stat().st_size)
        reading = Reading()
        try:
            for rows, lines in read_rows(self.descriptor, part, delimiter, len(self.header(delimiter))):
                reading.rows += rows
                reading.lines = lines
        except BadRow as error:
            reading.bad = error.args
        return reading


@dataclass
class Reading:
    rows: list[Row] = field(default_factory=list)
    lines: int = 0
    bad: tuple[Any, ...] = ()


def a_table(rng: random.Random) -> list[Row]:
    cells = rng.choice([CELLS, PLAIN_CELLS])
    return [[rng.choice(cells) for _ in range(3)] for _ in range(rng.randint(0, 60))]


def as_csv(rows: list[Row], line_end: str) -> bytes:
    text = io.StringIO()
    csv.writer(text, lineterminator=line_end, quoting=csv.QUOTE_MINIMAL).writerows(rows)
    return text.getvalue().encode()


@pytest.mark.parametrize("line_end", ["\n", "\r\n"])
def test_the_rows_of_the_parts_are_the_rows_of_the_file(csv_file: CsvFile, line_end: str) -> None:
    for seed in range(scale(40, 2000)):
        rng = random.Random(seed)
        rows = a_table(rng)
        csv_file.write(as_csv([["one", "two", "three"], *rows], line_end))

        parts = csv_file.parts(rng.choice([5, 20, 100, 1000]))
        readings = [csv_file.read(part) for part in parts]

        assert [row for reading in readings for row in reading.rows] == rows, seed
        assert not any(reading.bad for reading in readings)
        assert (parts[0].start, parts[-1].end) == (0, csv_file.path.stat().st_size)
        assert sum(reading.lines for reading in readings) == len(csv_file.path.read_text().split("\n")[:-1])


def test_only_a_file_without_any_quote_is_cut_and_in_parts_of_one_size(csv_file: CsvFile) -> None:
    csv_file.write(b"a,b\n" + b"1,2\n" * 10_000)
    sizes = [part.end - part.start for part in csv_file.parts(15_000)]
    csv_file.write(b"a,b\n" + b"1,2\n" * 10_000 + b'3," \n"')

    assert len(sizes) == 3
    assert max(sizes) - min(sizes) < 10
    assert csv_file.parts(15_000) == [Part(0, csv_file.path.stat().st_size)]


def test_the_hash_is_of_every_byte(csv_file: CsvFile) -> None:
    content = b"a,b\n" + os.urandom(3_000_000)
    csv_file.write(content)

    sha256, _ = survey(csv_file.descriptor, len(content), never)

    assert sha256 == hashlib.sha256(content).hexdigest()


@pytest.mark.parametrize(
    ("rows", "line", "reason"),
    [
        (b"1,2\nshort\n", 3, "it has 1 instead of 2 cells"),
        (b'1,"two\nlines"\n\n1,"two\nlines",3\n', 5, "it has 3 instead of 2 cells"),
        (b"1,2\r\n5,\xff\n", 3, "it holds a NUL byte, or is not UTF-8 text"),
        (b'1,"a\n6,nul\0"\n', 3, "it holds a NUL byte, or is not UTF-8 text"),
        (b"1,2\n" * 40_000 + b"5,\xc3", 40_002, "it holds a NUL byte, or is not UTF-8 text"),
        (b"short\n7,\xff\n", 2, "it has 1 instead of 2 cells"),
        (b"1,2\nshort\n7,\0\n", 3, "it has 1 instead of 2 cells"),
        (b"1,2\r7,\0\r", 3, "it holds a NUL byte, or is not UTF-8 text"),
        (b'7,"quote" here\n', 2, "',' expected after '\"'"),
        (b'1,2\n3,"open\n1,2\n', 3, "a quoted cell that never ends"),
        (b'1,2\n3,"' + b"7,7\n" * 75_000 + b'end"\n4,5\n', 3, "a cell is longer than 131072 characters"),
        (b'"' + b"x" * 140_000 + b'\n2,fake\n"', 2, "a cell is longer than 131072 characters"),
    ],
    ids=[
        "short",
        "long",
        "no text",
        "NUL",
        "half a character",
        "before",
        "before a NUL",
        "CR",
        "quote",
        "open",
        "long cell",
        "long line",
    ],
)
def test_the_first_bad_row_is_named_by_its_line(csv_file: CsvFile, rows: bytes, line: int, reason: str) -> None:
    csv_file.write(b"a,b\n" + rows)

    assert csv_file.read().bad == (line, reason)


def test_a_record_of_many_lines_is_never_read_into_memory_whole(csv_file: CsvFile) -> None:
    cell = b'"' + b"x" * 50_000 + b'\n"'
    csv_file.write(b",".join([b"a"] * 100) + b"\n" + b",".join([cell] * 100) + b"\n" + b",".join([b"1"] * 100))

    assert csv_file.read().bad == (2, "it is longer than 2097152 bytes")


def test_a_file_of_many_records_of_many_lines_is_read_whole(csv_file: CsvFile) -> None:
    csv_file.write(b"a,b\n" + (b'1,"x\n' + b"y" * 1000 + b'"\n') * 6000)

    reading = csv_file.read()

    assert (len(reading.rows), reading.lines, reading.bad) == (6000, 12_001, ())


def test_a_line_without_an_end_is_named_and_never_read_into_memory(csv_file: CsvFile) -> None:
    csv_file.write(b"a,b\n1,2\n3," + b"x" * 30_000_000)
    tracemalloc.start()

    reading = csv_file.read()
    _, peak_bytes = tracemalloc.get_traced_memory()
    tracemalloc.stop()

    assert peak_bytes < 15_000_000
    assert reading.bad == (3, "it is longer than 2097152 bytes")


@pytest.mark.parametrize(
    "content",
    [b"\xef\xbb\xbfa,b\n1,2\n", b"a,b\r1,2\r", b"\n\na,b\n\n1,2", b"a\t b\n1\t2\n"],
    ids=["BOM", "CR only", "blank lines", "tabs"],
)
def test_unusual_files_are_read_too(csv_file: CsvFile, content: bytes) -> None:
    csv_file.write(content)
    delimiter = "\t" if b"\t" in content else ","

    reading = csv_file.read(delimiter=delimiter)

    assert [name.strip() for name in csv_file.header(delimiter)] == ["a", "b"]
    assert reading.rows == [["1", "2"]]
    assert not reading.bad


@pytest.mark.parametrize("content", [b"", b"\n\n", b"a,\xff\n1,2\n", b'a,"b\n1,2\n', b"a,b\0\n"])
def test_a_file_without_a_header_that_can_be_read_is_refused(csv_file: CsvFile, content: bytes) -> None:
    csv_file.write(content)

    with pytest.raises(BadRow, match=r"it |never ends"):
        csv_file.header()
