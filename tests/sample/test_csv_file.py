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

import pytest

from sampletool.kit.testing.scale import scale
from sampletool.sample.csv_file import BadRow, Dialect, Part, Row, read_header, read_rows, survey

PLAIN = Dialect()
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

    def header(self, dialect: Dialect = PLAIN) -> Row:
        return read_header(self.descriptor, self.path.stat().st_size, dialect)

    def parts(self, part_bytes: int) -> list[Part]:
        return survey(self.descriptor, self.path.stat().st_size, never, part_bytes)[1]

    def read(self, part: Part | None = None, dialect: Dialect = PLAIN) -> "Reading":
        part = part or Part(0, self.path.stat().st_size)
        reading = Reading()
        for batch in read_rows(self.descriptor, part, dialect, len(self.header(dialect))):
            reading.rows += batch.rows
            reading.bad_rows += batch.bad_rows
            reading.lines = batch.lines
            reading.ends_early = any(row.is_last for row in batch.bad_rows)
        return reading


@dataclass
class Reading:
    rows: list[Row] = field(default_factory=list)
    bad_rows: list[BadRow] = field(default_factory=list)
    lines: int = 0
    ends_early: bool = False

    @property
    def bad_lines(self) -> list[int]:
        return [row.line for row in self.bad_rows]


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
        assert not any(reading.bad_rows for reading in readings)
        assert (parts[0].start, parts[-1].end) == (0, csv_file.path.stat().st_size)
        assert sum(reading.lines for reading in readings) == len(csv_file.path.read_text().split("\n")[:-1])


def test_only_a_file_without_any_quote_is_cut_and_in_parts_of_one_size(csv_file: CsvFile) -> None:
    csv_file.write(b"a,b\n" + b"1,2\n" * 10_000)
    sizes = [part.end - part.start for part in csv_file.parts(15_000)]
    csv_file.write(b"a,b\n" + b"1,2\n" * 10_000 + b'3," \n"')

    assert len(sizes) == 4
    assert max(sizes) - min(sizes) < 10
    assert csv_file.parts(15_000) == [Part(0, csv_file.path.stat().st_size)]


def test_the_hash_is_of_every_byte(csv_file: CsvFile) -> None:
    content = b"a,b\n" + os.urandom(3_000_000)
    csv_file.write(content)

    sha256, _ = survey(csv_file.descriptor, len(content), never)

    assert sha256 == hashlib.sha256(content).hexdigest()


def test_bad_rows_are_named_by_the_line_they_begin_at_and_the_others_are_kept(csv_file: CsvFile) -> None:
    csv_file.write(b'a,b\n1,"two\nlines"\nshort\n\n2,x\n3,"4\n4",long\n5,\xff\n6,nul\0\n7,"quote" here\n9,z\n8,"open\n')

    reading = csv_file.read()

    assert [row[0] for row in reading.rows] == ["1", "2", "9"]
    assert reading.bad_lines == [4, 7, 9, 10, 11, 13]
    assert reading.bad_rows[-1].reason == "a quoted cell that never ends"
    assert reading.lines == 13
    assert not reading.ends_early


@pytest.mark.parametrize("inside", [b"7,7\n", b"x\n", b"x" * 140_000 + b"\n2,fake\n"])
def test_lines_of_a_cell_that_is_too_long_are_never_taken_for_rows(csv_file: CsvFile, inside: bytes) -> None:
    csv_file.write(b'a,b\n1,2\n3,"' + inside * (300_000 // len(inside)) + b'end"\n4,5\n')

    reading = csv_file.read()

    assert reading.rows == [["1", "2"]]
    assert reading.ends_early
    assert reading.bad_rows == [BadRow(3, "a cell is longer than 131072 characters; nothing behind it was read", True)]


def test_a_record_of_many_lines_is_never_read_into_memory_whole(csv_file: CsvFile) -> None:
    cell = b'"' + b"x" * 50_000 + b'\n"'
    csv_file.write(b",".join([b"a"] * 100) + b"\n" + b",".join([cell] * 100) + b"\n" + b",".join([b"1"] * 100))

    reading = csv_file.read()

    assert reading.rows == []
    assert reading.ends_early
    assert reading.bad_rows == [BadRow(2, "it is longer than 2097152 bytes; nothing behind it was read", True)]


def test_bad_rows_without_end_are_told_apart(csv_file: CsvFile) -> None:
    csv_file.write(b"a,b\n" + (b'1,"x" ' + b"y" * 1000 + b"\n") * 6000 + b"1,2\n")

    reading = csv_file.read()

    assert (reading.rows, len(reading.bad_rows), reading.ends_early) == ([["1", "2"]], 6000, False)


def test_a_line_without_an_end_is_named_and_never_read_into_memory(csv_file: CsvFile) -> None:
    csv_file.write(b"a,b\n1,2\n3," + b"x" * 30_000_000)
    tracemalloc.start()

    reading = csv_file.read()
    _, peak_bytes = tracemalloc.get_traced_memory()
    tracemalloc.stop()

    assert peak_bytes < 15_000_000
    assert reading.rows == [["1", "2"]]
    assert reading.ends_early
    assert reading.bad_lines == [3]


@pytest.mark.parametrize(
    "content",
    [b"\xef\xbb\xbfa,b\n1,2\n", b"a,b\r1,2\r", b"\n\na,b\n\n1,2", b"a\t b\n1\t2\n"],
    ids=["BOM", "CR only", "blank lines", "tabs"],
)
def test_unusual_files_are_read_too(csv_file: CsvFile, content: bytes) -> None:
    csv_file.write(content)
    dialect = Dialect("\t" if b"\t" in content else ",")

    reading = csv_file.read(dialect=dialect)

    assert [name.strip() for name in csv_file.header(dialect)] == ["a", "b"]
    assert reading.rows == [["1", "2"]]
    assert not reading.bad_rows


@pytest.mark.parametrize("content", [b"", b"\n\n", b"a,\xff\n1,2\n", b'a,"b\n1,2\n', b"a,b\0\n"])
def test_a_file_without_a_header_that_can_be_read_is_refused(csv_file: CsvFile, content: bytes) -> None:
    csv_file.write(content)

    with pytest.raises(ValueError, match=r"it |never ends"):
        csv_file.header()
