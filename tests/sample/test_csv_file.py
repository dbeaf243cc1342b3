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

from sampletool.kit.safety.atomic_file import opened_regular
from sampletool.kit.testing.failing import failure_of
from sampletool.kit.testing.scale import scale
from sampletool.sample import csv_file as module
from sampletool.sample.csv_file import CsvFile, Part, Row, divide, read_header, read_rows
from sampletool.sample.errors import InputChanged, InvalidCsv

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
        descriptor = self._exit_stack.enter_context(opened_regular(path))
        return CsvFile(str(path), descriptor, delimiter, os.fstat(descriptor))


@pytest.fixture
def files(tmp_path: Path) -> Iterator[Files]:
    with ExitStack() as exit_stack:
        yield Files(tmp_path, exit_stack)


@pytest.fixture
def small_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make parts so small that a few rows are several parts."""
    monkeypatch.setattr(module, "MAX_PART_BYTES", 40)


def parts_of(file: CsvFile) -> list[Part]:
    return divide(file, do_nothing)[0]


def numbered_rows_of(file: CsvFile) -> list[tuple[int, Row]]:
    rows: list[tuple[int, Row]] = []
    for part in parts_of(file):
        rows += read_rows(file, part)
    return rows


def rows_of(file: CsvFile) -> list[Row]:
    return [row for _line, row in numbered_rows_of(file)]


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
        rows = [["one", "two", "three"], *random_rows(random_numbers, cells)]
        content = as_csv(rows, line_end)
        file = files.create(content)
        monkeypatch.setattr(module, "MAX_PART_BYTES", random_numbers.choice([80, 100, 1000]))

        parts = parts_of(file)

        assert rows_of(file) == rows, seed
        assert sum(part.size for part in parts) == len(content)
        assert max(part.size for part in parts) <= module.MAX_PART_BYTES
        part_counts.add(len(parts))
    assert max(part_counts) > 5


def test_a_part_does_not_end_inside_of_a_quoted_cell(
    files: Files, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "MAX_PART_BYTES", 30)
    rows = [["a", "b"], ["1", "many\nlines\nin\none cell"], ["2", "x"]]
    file = files.create(as_csv(rows, "\n"))

    parts = parts_of(file)

    assert [part.start for part in parts] == [0, 4, 31]
    assert rows_of(file) == rows


@pytest.mark.usefixtures("small_parts")
@pytest.mark.parametrize("row", [b'5" pipe,1\n', b'"5"" pipe",1\n'], ids=["stray", "quoted"])
def test_a_quote_inside_of_a_cell_does_no_harm(files: Files, row: bytes) -> None:
    file = files.create(b"a,b\n" + b"1,2\n" * 20 + row + b'"3",4\n' * 40)

    assert rows_of(file) == [["a", "b"], *[["1", "2"]] * 20, ['5" pipe', "1"], *[["3", "4"]] * 40]
    assert len(parts_of(file)) > 5


@pytest.mark.usefixtures("small_parts")
def test_a_stray_quote_among_cells_with_line_ends_gives_an_error_or_the_right_rows(
    files: Files,
) -> None:
    results = set()
    for rows_before in range(30):
        content = b'a,b\n5" pipe,1\n' + b"1,2\n" * rows_before + b'3,"x\ny"\n' * 20
        file = files.create(content)
        try:
            rows = rows_of(file)
        except InvalidCsv:
            results.add("error")
        else:
            results.add("rows")
            assert rows == list(csv.reader(io.StringIO(content.decode(), newline="")))

    assert results == {"error", "rows"}


def test_the_parts_of_a_file_do_not_change_from_run_to_run(files: Files) -> None:
    file = files.create(b"a,b\n" + b"1,2\n" * 600_000)

    parts = parts_of(file)

    assert [part.start for part in parts] == [0, 1048576, 2097152]
    assert [part.first_line for part in parts] == [1, 262145, 524289]


def test_the_digest_is_that_of_the_whole_file(files: Files) -> None:
    content = b"a,b\n" * 700_000

    _, digest = divide(files.create(content), do_nothing)

    assert digest == hashlib.sha256(content).hexdigest()


def test_dividing_shows_progress_between_parts(files: Files) -> None:
    beats: list[int] = []

    parts, _ = divide(files.create(b"a\n" * 1_200_000), lambda: beats.append(1))

    assert len(beats) == len(parts) - 1 == 2


@pytest.mark.parametrize(
    ("rows", "line", "reason"),
    [
        (b"1,2\n5,\xff\n", 3, "the text is not UTF-8"),
        (b"1,2\n\xff,5\n", 3, "the text is not UTF-8"),
        (b"1,2\n" * 300_000 + b"5,\xc3\n", 300_002, "the text is not UTF-8"),
        (b"1,2\n3,\xc3", 3, "the text is not UTF-8"),
        (b'7,"quote" here\n', 2, "',' expected after '\"'"),
        (b"1,2\n" * 300_000 + b'7,"quote" here\n', 300_002, "',' expected after '\"'"),
        (b'1,2\n3,"open\n1,2\n', 3, "unexpected end of data"),
        (b"3," + b"x" * 140_000 + b"\n4,5\n", 2, "field larger than field limit (131072)"),
    ],
    ids=["byte", "first", "late", "end", "quote", "late quote", "open", "cell"],
)
def test_the_first_bad_row_is_named_by_its_line(
    files: Files, rows: bytes, line: int, reason: str
) -> None:
    file = files.create(b"a,b\n" + rows)

    with pytest.raises(InvalidCsv) as caught:
        rows_of(file)

    assert caught.value.context == {"path": file.path, "line": line, "reason": reason}


@pytest.mark.usefixtures("small_parts")
def test_a_row_is_named_by_its_first_line_in_each_part(files: Files) -> None:
    file = files.create(b'a,b\n1,"two\nlines"\n\n' + b"1,2\n" * 20)

    lines = [line for line, _row in numbered_rows_of(file)]

    assert lines == [1, 2, 4, *range(5, 25)]
    assert len(parts_of(file)) > 2


def test_a_row_that_is_too_long_is_never_in_memory_as_a_whole(files: Files) -> None:
    file = files.create(b"a,b\n1,2\n3," + b"x" * 30_000_000)
    tracemalloc.start()

    with pytest.raises(InvalidCsv, match=r"longer than 1048576 bytes") as caught:
        rows_of(file)

    _, peak_bytes = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert caught.value.context["line"] == 3
    assert peak_bytes < 5_000_000


def test_a_quoted_cell_that_is_too_long_is_an_error(files: Files) -> None:
    cell = b'"' + b"x" * 50_000 + b'\n"'
    file = files.create(b"a\n" + b",".join([cell] * 600) + b"\n1\n")

    with pytest.raises(InvalidCsv) as caught:
        rows_of(file)

    assert caught.value.context["line"] == 2


@pytest.mark.parametrize(
    ("content", "delimiter"),
    [
        (b"\xef\xbb\xbfa,b\n1,2\n", ","),
        (b'\xef\xbb\xbf"a","b"\n1,2\n', ","),
        (b"a,b\n1,2", ","),
        (b"a,b\r1,2\r", ","),
        (b"a\tb\n1\t2\n", "\t"),
    ],
    ids=["byte order mark", "quoted header", "no line end", "CR", "tab"],
)
def test_unusual_files_can_be_read(files: Files, content: bytes, delimiter: str) -> None:
    file = files.create(content, delimiter)

    assert read_header(file, parts_of(file)[0]) == ["a", "b"]
    assert rows_of(file) == [["a", "b"], ["1", "2"]]


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "the first line must be a header, but it is empty"),
        (b"\xef\xbb\xbf", "the first line must be a header, but it is empty"),
        (b"\n1,2\n", "the first line must be a header, but it is empty"),
        (b"\r\n", "the first line must be a header, but it is empty"),
        (b"a,\xff\n1,2\n", "the text is not UTF-8"),
        (b'a,"b\n1,2\n', "unexpected end of data"),
        (b",".join([b"a"] * 1001), "1001 columns, but at most 1000 are allowed"),
    ],
    ids=["empty", "byte order mark", "blank", "blank with CR", "byte", "open quote", "columns"],
)
def test_a_file_without_a_usable_header_is_refused(
    files: Files, content: bytes, reason: str
) -> None:
    file = files.create(content)

    with pytest.raises(InvalidCsv) as caught:
        read_header(file, parts_of(file)[0])

    assert (caught.value.context["line"], caught.value.context["reason"]) == (1, reason)


def test_a_file_can_have_a_thousand_columns(files: Files) -> None:
    file = files.create(b",".join([b"a"] * 1000))

    assert len(read_header(file, parts_of(file)[0])) == 1000


@pytest.mark.parametrize("change", ["size", "time"])
def test_a_file_that_was_changed_is_noticed(files: Files, change: str) -> None:
    file = files.create(b"a\n1\n")
    assert failure_of(file.check_unchanged) is None

    if change == "size":
        with open(file.path, "a") as writer:
            writer.write("2\n")
        modified_ns = file.opened_as.st_mtime_ns
        os.utime(file.path, ns=(modified_ns, modified_ns))
    else:
        os.utime(file.path, ns=(0, 0))

    with pytest.raises(InputChanged):
        file.check_unchanged()


def test_a_file_that_was_shortened_is_not_taken_for_one_with_a_long_row(files: Files) -> None:
    file = files.create(b"a\n" * 1_000_000)
    os.truncate(file.path, 10)

    with pytest.raises(InputChanged):
        divide(file, do_nothing)


def test_half_of_a_row_that_is_being_written_is_not_taken_for_a_bad_row(files: Files) -> None:
    file = files.create(b'a,b\n1,"x')
    (part,) = parts_of(file)
    with open(file.path, "a") as writer:
        writer.write('"\n')

    with pytest.raises(InputChanged):
        list(read_rows(file, part))
