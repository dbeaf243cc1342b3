"""sampletool/sample/csv_file.py: parts that together are the file, and the line of each bad row."""

import csv
import hashlib
import io
import os
import random
import tracemalloc
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from sampletool.kit.safety.errors import UnsafePath
from sampletool.kit.testing.failing import failure_of
from sampletool.kit.testing.scale import scale
from sampletool.sample import csv_file as module
from sampletool.sample.csv_file import (
    BadRow,
    CsvFile,
    Part,
    PartReader,
    Row,
    opened_csv,
    read_header,
    survey,
)
from sampletool.sample.errors import InputChanged

QUOTED_CELLS = ["", "a", "two\nlines", "two\r\nlines", 'a "quoted" word', '"', "a, b", "ä€𝄞", " "]
PLAIN_CELLS = ["", "a", "0", "ä€𝄞", " "]


def do_nothing() -> None:
    """Show no progress."""


class Files:
    """A directory in which a test writes CSV files."""

    def __init__(self, directory: Path, exit_stack: ExitStack) -> None:
        self._directory = directory
        self._exit_stack = exit_stack

    def create(self, content: bytes, delimiter: str = ",") -> CsvFile:
        path = self._directory / f"{os.urandom(4).hex()}.csv"
        path.write_bytes(content)
        return self._exit_stack.enter_context(opened_csv(str(path), delimiter))


@pytest.fixture
def files(tmp_path: Path) -> Iterator[Files]:
    with ExitStack() as exit_stack:
        yield Files(tmp_path, exit_stack)


def parts_of(file: CsvFile) -> list[Part]:
    return survey(file, do_nothing)[1]


def rows_of(file: CsvFile, parts: list[Part]) -> list[Row]:
    width = len(read_header(file))
    rows = []
    for part in parts:
        for batch in PartReader(file, part).batches(width):
            rows += batch
    return rows


def random_rows(random_numbers: random.Random, cells: list[str]) -> list[Row]:
    rows = []
    for _ in range(random_numbers.randint(0, 60)):
        rows.append([random_numbers.choice(cells) for _ in range(3)])
    return rows


def as_csv(rows: list[Row], line_end: str) -> bytes:
    text = io.StringIO()
    csv.writer(text, lineterminator=line_end).writerows(rows)
    return text.getvalue().encode()


@pytest.mark.parametrize("line_end", ["\n", "\r\n"])
@pytest.mark.parametrize("cells", [QUOTED_CELLS, PLAIN_CELLS], ids=["quoted", "plain"])
def test_the_rows_of_all_parts_are_the_rows_of_the_file(
    files: Files, monkeypatch: pytest.MonkeyPatch, line_end: str, cells: list[str]
) -> None:
    part_counts = set()
    for seed in range(scale(40, 2000)):
        random_numbers = random.Random(seed)
        rows = random_rows(random_numbers, cells)
        file = files.create(as_csv([["one", "two", "three"], *rows], line_end))
        monkeypatch.setattr(module, "PART_BYTES", random_numbers.choice([30, 100, 1000]))
        monkeypatch.setattr(module, "_BLOCK_BYTES", random_numbers.choice([64, 100, 1000]))

        parts = parts_of(file)

        assert rows_of(file, parts) == rows, seed
        assert (parts[0].start, parts[-1].end) == (0, file.found.st_size)
        part_counts.add(len(parts))
    if cells is PLAIN_CELLS:
        assert max(part_counts) > 5


def test_a_file_with_a_quote_is_one_part(files: Files, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "PART_BYTES", 15_000)
    rows = b"a,b\n" + b"1,2\n" * 10_000

    plain = parts_of(files.create(rows))
    quoted = parts_of(files.create(rows + b'3," \n"'))

    assert len(plain) == 3
    assert quoted == [Part(0, len(rows) + 6)]


def test_parts_without_a_line_end_between_them_stay_together(
    files: Files, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "PART_BYTES", 10)
    file = files.create(b"a,b\n1," + b"2" * 50)

    assert parts_of(file) == [Part(0, 56)]


def test_the_digest_is_that_of_the_whole_file(files: Files) -> None:
    content = b"a,b\n" + os.urandom(700_000)

    digest, _ = survey(files.create(content), do_nothing)

    assert digest == hashlib.sha256(content).hexdigest()


def test_a_survey_shows_progress_after_each_block(files: Files) -> None:
    beats: list[int] = []

    survey(files.create(b"a\n" * 300_000), lambda: beats.append(1))

    assert len(beats) == 3


@pytest.mark.parametrize(
    ("rows", "line", "reason"),
    [
        (b"1,2\nshort\n", 3, "1 cell instead of 2"),
        (b'1,"two\nlines"\n\n1,"two\nlines",3\n', 5, "3 cells instead of 2"),
        (b"1,2\n5,\xff\n", 3, "the text is not UTF-8"),
        (b"1,2\n" * 90_000 + b"5,\xc3\n", 90_002, "the text is not UTF-8"),
        (b"1,2\n3,\xc3", 3, "the text is not UTF-8"),
        (b"short\n7,\xff\n", 2, "1 cell instead of 2"),
        (b'7,"quote" here\n', 2, "',' expected after '\"'"),
        (b'1,2\n3,"open\n1,2\n', 3, "unexpected end of data"),
        (b"3," + b"x" * 140_000 + b"\n4,5\n", 2, "field larger than field limit (131072)"),
    ],
    ids=["short", "long", "byte", "late", "end", "first", "quote", "open", "cell"],
)
def test_the_first_bad_row_is_named_by_its_line(
    files: Files, rows: bytes, line: int, reason: str
) -> None:
    file = files.create(b"a,b\n" + rows)

    with pytest.raises(BadRow) as caught:
        rows_of(file, [Part(0, file.found.st_size)])

    assert (caught.value.line, caught.value.reason) == (line, reason)


def test_a_row_that_is_too_long_is_never_in_memory_as_a_whole(files: Files) -> None:
    cell = b'"' + b"x" * 50_000 + b'\n"'
    one_line = files.create(b"a,b\n1,2\n3," + b"x" * 30_000_000)
    many_lines = files.create(b",".join([b"a"] * 600) + b"\n" + b",".join([cell] * 600))
    tracemalloc.start()

    for file, line in ((one_line, 3), (many_lines, 2)):
        with pytest.raises(BadRow, match=r"longer than 2097152 bytes") as caught:
            rows_of(file, [Part(0, file.found.st_size)])
        assert caught.value.line == line

    _, peak_bytes = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak_bytes < 15_000_000


def test_many_rows_of_several_lines_are_no_long_row(files: Files) -> None:
    file = files.create(b"a,b\n" + (b'1,"x\n' + b"y" * 1000 + b'"\n') * 6000)

    assert len(rows_of(file, parts_of(file))) == 6000


def test_batches_are_bounded(files: Files) -> None:
    file = files.create(b"a,b\n" + b"1,2\n" * 500_000)

    sizes = [len(batch) for batch in PartReader(file, Part(0, file.found.st_size)).batches(2)]

    assert sum(sizes) == 500_000
    assert max(sizes) <= 256 * 1024 / 4 + 1


@pytest.mark.parametrize(
    ("content", "delimiter"),
    [
        (b"\xef\xbb\xbfa,b\n1,2\n", ","),
        (b"a,b\n\n1,2", ","),
        (b"a,b\r1,2\r", ","),
        (b"a\tb\n1\t2\n", "\t"),
        (b"a\xc2\xa7b\n1\xc2\xa72\n", "§"),
    ],
    ids=["byte order mark", "blank line", "CR", "tab", "not ASCII"],
)
def test_unusual_files_can_be_read(files: Files, content: bytes, delimiter: str) -> None:
    file = files.create(content, delimiter)

    assert read_header(file) == ["a", "b"]
    assert rows_of(file, parts_of(file)) == [["1", "2"]]


@pytest.mark.parametrize(
    "content",
    [b"", b"\n1,2\n", b"a,\xff\n1,2\n", b'a,"b\n1,2\n', b",".join([b"a"] * 1001)],
    ids=["empty", "blank", "byte", "open quote", "columns"],
)
def test_a_file_without_a_usable_header_is_refused(files: Files, content: bytes) -> None:
    file = files.create(content)

    with pytest.raises(BadRow) as caught:
        read_header(file)

    assert caught.value.line == 1


def test_what_is_not_a_regular_file_is_refused_at_once(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo.csv")

    for path in (tmp_path / "fifo.csv", tmp_path):
        with pytest.raises(UnsafePath), opened_csv(str(path), ","):
            pass


@pytest.mark.parametrize("change", ["size", "time"])
def test_a_file_that_was_changed_is_noticed(files: Files, change: str) -> None:
    file = files.create(b"a\n1\n")
    assert failure_of(file.check_unchanged) is None

    if change == "size":
        with open(file.path, "a") as writer:
            writer.write("2\n")
        os.utime(file.path, ns=(file.found.st_mtime_ns, file.found.st_mtime_ns))
    else:
        os.utime(file.path, ns=(0, 0))

    with pytest.raises(InputChanged):
        file.check_unchanged()


@pytest.mark.parametrize("content", [b"", b"\xef\xbb\xbf", b"\n", b"\r\n"])
def test_a_file_without_a_header_is_refused(files: Files, content: bytes) -> None:
    with pytest.raises(BadRow, match="must be a header") as caught:
        read_header(files.create(content))

    assert caught.value.line == 1


@pytest.mark.parametrize("block_bytes", [1000, 5000])
def test_a_batch_has_about_the_rows_of_one_block(
    files: Files, monkeypatch: pytest.MonkeyPatch, block_bytes: int
) -> None:
    monkeypatch.setattr(module, "_BLOCK_BYTES", block_bytes)
    file = files.create(b"a,b\n" + b"11,22\n" * 10_000)

    batches = list(PartReader(file, Part(0, file.found.st_size)).batches(2))

    rows_of_block = block_bytes // len(b"11,22\n")
    assert sum(len(batch) for batch in batches) == 10_000
    # The reader asks for the next block when it has read the last line that is complete.
    assert max(len(batch) for batch in batches) <= rows_of_block + 2
    assert len(batches) <= 10_000 // rows_of_block + 2
