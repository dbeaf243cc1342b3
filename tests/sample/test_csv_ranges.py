"""work/csv_ranges.py: cut at record ends, and every bad row named by its line."""

import csv
import hashlib
import io
import os
import random
from collections.abc import Iterator
from pathlib import Path

import pytest

from sampletool.kit.testing.scale import scale
from sampletool.sample.csv_ranges import Dialect, Range, Reading, Row, read_header, read_rows, survey

PLAIN = Dialect()
CELLS = ["", "a", "0", "two\nlines", "two\r\nlines", 'a "quoted" word', '"', "comma, comma", "ä€𝄞", " "]


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

    def header(self, dialect: Dialect = PLAIN) -> tuple[Row, int]:
        return read_header(self.descriptor, self.path.stat().st_size, dialect)

    def ranges(self, range_bytes: int) -> list[Range]:
        return survey(self.descriptor, self.path.stat().st_size, Dialect(), never, range_bytes)[1]

    def read(
        self, part: Range | None = None, dialect: Dialect = PLAIN, *, stop: bool = False
    ) -> tuple[list[Row], Reading]:
        part = part or Range(0, self.path.stat().st_size)
        names, header_end = self.header(dialect)
        reading = Reading()
        batches = read_rows(self.descriptor, part, dialect, len(names), header_end, reading, stop=stop)
        return [row for batch in batches for row in batch], reading


def a_table(rng: random.Random) -> list[Row]:
    return [[rng.choice(CELLS) for _ in range(3)] for _ in range(rng.randint(0, 60))]


def as_csv(rows: list[Row], line_end: str) -> bytes:
    text = io.StringIO()
    csv.writer(text, lineterminator=line_end, quoting=csv.QUOTE_ALL).writerows(rows)
    return text.getvalue().encode()


@pytest.mark.parametrize("line_end", ["\n", "\r\n"])
def test_the_rows_of_the_ranges_are_the_rows_of_the_file(csv_file: CsvFile, line_end: str) -> None:
    for seed in range(scale(40, 2000)):
        rng = random.Random(seed)
        rows = a_table(rng)
        csv_file.write(as_csv([["one", "t\nwo", "three"], *rows], line_end))

        ranges = csv_file.ranges(rng.choice([5, 20, 100, 1000]))
        parts = [csv_file.read(part) for part in ranges]

        assert [row for found, _ in parts for row in found] == rows, seed
        assert not any(reading.ends_open for _, reading in parts)
        assert (ranges[0].start, ranges[-1].end) == (0, csv_file.path.stat().st_size)
        assert sum(reading.lines for _, reading in parts) == len(csv_file.path.read_text().split("\n")[:-1])


def test_ranges_have_about_one_size_whoever_reads_them(csv_file: CsvFile) -> None:
    csv_file.write(b"a,b\n" + b"1,2\n" * 10_000)

    sizes = [part.end - part.start for part in csv_file.ranges(15_000)]

    assert len(sizes) == 4
    assert max(sizes) - min(sizes) < 10


def test_a_range_that_a_stray_quote_had_cut_inside_a_cell_says_so(csv_file: CsvFile) -> None:
    csv_file.write(b'a,b\n5" pipe,1\n' + b'x,"two\nlines"\n' * 200)

    first = csv_file.read(csv_file.ranges(100)[0])[1]
    rows, whole = csv_file.read()

    assert first.ends_open
    assert not whole.ends_open
    assert len(rows) == 201


def test_the_hash_is_of_every_byte(csv_file: CsvFile) -> None:
    content = b"a,b\n" + os.urandom(3_000_000)
    csv_file.write(content)

    sha256, _ = survey(csv_file.descriptor, len(content), Dialect(), never)

    assert sha256 == hashlib.sha256(content).hexdigest()


def test_bad_rows_are_named_by_the_line_they_begin_at_and_the_others_are_kept(csv_file: CsvFile) -> None:
    csv_file.write(
        b'a,b\n1,"two\nlines"\nshort\n\n2,x\n3,4,long\n5,\xff\n6,nul\0\n7,"quote" here\n8,"'
        + b"x" * 140_000
        + b'"\n9,z\n'
    )

    rows, reading = csv_file.read()

    assert [row[0] for row in rows] == ["1", "2", "9"]
    assert [line for line, _ in reading.bad_rows] == [4, 7, 8, 9, 10, 11]
    assert reading.skipped == 6
    assert reading.lines == 12


@pytest.mark.parametrize("inside", [b"7,7\n", b"x\n", b"x" * 140_000 + b"\n2,fake\n"])
def test_lines_of_a_cell_that_is_too_long_are_never_taken_for_rows(csv_file: CsvFile, inside: bytes) -> None:
    csv_file.write(b'a,b\n1,2\n3,"' + inside * (300_000 // len(inside)) + b'end"\n4,5\n')

    rows, reading = csv_file.read()

    assert rows == [["1", "2"]]
    assert reading.is_cut_short
    assert reading.bad_rows == [
        (3, "a cell is longer than 131072 characters, and nobody knows where it ends; nothing behind it was read")
    ]


@pytest.mark.parametrize("stop", [True, False])
def test_a_record_of_many_lines_is_never_read_into_memory_whole(csv_file: CsvFile, *, stop: bool) -> None:
    cell = b'"' + b"x" * 50_000 + b'\n"'
    csv_file.write(b",".join([b"a"] * 100) + b"\n" + b",".join([cell] * 100) + b"\n" + b",".join([b"1"] * 100))

    rows, reading = csv_file.read(stop=stop)

    assert rows == []
    assert reading.is_cut_short
    assert reading.bad_rows == [(2, "it is longer than 4194304 characters; nothing behind it was read")]


def test_bad_rows_without_end_are_told_apart_and_not_kept(csv_file: CsvFile) -> None:
    csv_file.write(b"a,b\n" + (b'1,"x" ' + b"y" * 1000 + b"\n") * 6000 + b"1,2\n")

    rows, reading = csv_file.read()

    assert (rows, reading.skipped, reading.is_cut_short) == ([["1", "2"]], 6000, False)


@pytest.mark.parametrize("long", [b"x" * 140_000, b'"' + b"x" * 140_000 + b'"'])
def test_a_cell_that_is_too_long_but_ends_on_its_line_is_a_bad_row_like_others(csv_file: CsvFile, long: bytes) -> None:
    csv_file.write(b"a,b\n1,2\n" + b"3," + long + b"\n" + b"4,5\n" * 50_000 + b"6," + long + b"\n7,8\n")

    rows, reading = csv_file.read()

    assert (len(rows), rows[-1]) == (50_002, ["7", "8"])
    assert reading.bad_rows == [(line, "a cell is longer than 131072 characters") for line in (3, 50_004)]


def test_stopping_names_the_first_bad_row(csv_file: CsvFile) -> None:
    csv_file.write(b'a,b\n1,2\nshort\n7,"quote" here\n')

    _, reading = csv_file.read(stop=True)

    assert reading.is_cut_short
    assert [line for line, _ in reading.bad_rows] == [3]


def test_a_line_without_an_end_is_named_and_never_read_into_memory(csv_file: CsvFile) -> None:
    csv_file.write(b"a,b\n1,2\n3," + b"x" * 3_000_000)

    rows, reading = csv_file.read()

    assert rows == [["1", "2"]]
    assert reading.is_cut_short
    assert reading.bad_rows[-1][0] == 3


@pytest.mark.parametrize(
    ("content", "encoding"),
    [
        (b"\xef\xbb\xbfa,b\n1,2\n", "utf-8"),
        ("a,b\n1,2\n".encode("utf-16"), "utf-16"),
        (b"a,b\r1,2\r", "utf-8"),
        (b"\n\na,b\n\n1,2", "latin-1"),
        (b"a\t b\n1\t2\n", "utf-8"),
    ],
    ids=["BOM", "UTF-16", "CR only", "blank lines", "tabs"],
)
def test_unusual_files_are_read_too(csv_file: CsvFile, content: bytes, encoding: str) -> None:
    csv_file.write(content)
    dialect = Dialect("\t" if b"\t" in content else ",", encoding)

    rows, reading = csv_file.read(dialect=dialect)

    assert [name.strip() for name in csv_file.header(dialect)[0]] == ["a", "b"]
    assert rows == [["1", "2"]]
    assert not reading.bad_rows


@pytest.mark.parametrize("content", [b"", b"\n\n", b"a,\xff\n1,2\n", b'a,"b\n1,2\n', b"a,b\0\n"])
def test_a_file_without_a_header_that_can_be_read_is_refused(csv_file: CsvFile, content: bytes) -> None:
    csv_file.write(content)

    with pytest.raises(ValueError, match=r"it |never ends"):
        csv_file.header()
