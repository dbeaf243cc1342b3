"""sampletool/sample/profile.py: exact figures, and none for what is not known."""

import os
import random
import statistics
from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from sampletool.kit.safety.atomic_file import opened_regular
from sampletool.sample.csv_file import CsvFile, divide
from sampletool.sample.errors import InvalidCsv
from sampletool.sample.profile import (
    ColumnProfile,
    merge_columns,
    profile_cells,
    profile_part,
)

MAX_DISTINCT = 80_000
"""The limit for a file with one column."""


def column_of(cells: Sequence[str], part_size: int = 1000) -> ColumnProfile:
    """Return the profile of the only column of a file. Its cells are read in parts."""
    columns = [profile_cells([], MAX_DISTINCT)]
    for start in range(0, len(cells), part_size):
        part = profile_cells(cells[start : start + part_size], MAX_DISTINCT)
        columns = merge_columns(columns, [part])
    return columns[0]


def description_of(cells: Sequence[str], part_size: int = 1000) -> dict[str, Any]:
    return column_of(cells, part_size).describe()


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        (["1", "-2", "+3", "007"], "integer"),
        ([str(2**53), str(-(2**53))], "integer"),
        ([str(2**63)], "integer"),
        (["1" + "0" * 199, "1" + "0" * 300], "text"),
        (["-1" + "0" * 300], "text"),
        (["1", "2.5"], "number"),
        (["1e5", ".5"], "number"),
        (["1e200"], "number"),
        (["2024-02-29"], "text"),
        (["true"], "text"),
        (["1_000"], "text"),
        (["nan"], "text"),
        (["inf", "1"], "text"),
        (["inf", "-inf"], "text"),
        (["1e999"], "text"),
        (["1e308", "1e308"], "text"),
        (["1", "nan"], "text"),
        (["٣"], "text"),
        (["9" * 5000], "text"),
        (["1", "x"], "text"),
    ],
)
@pytest.mark.parametrize("part_size", [1, 100])
def test_the_type_is_the_narrowest_that_all_values_have(
    values: list[str], expected: str, part_size: int
) -> None:
    assert description_of(values, part_size)["type"] == expected


@pytest.mark.parametrize("count", [200, 30_000])
def test_the_figures_are_exact_for_any_number_of_values(count: int) -> None:
    random_numbers = random.Random(count)
    numbers = [round(random_numbers.gauss(50, 12), 6) for _ in range(count)]

    column = description_of([str(number) for number in numbers] + ["", ""])

    assert (column["count"], column["missing"]) == (count, 2)
    assert (column["min"], column["max"]) == (min(numbers), max(numbers))
    assert column["mean"] == statistics.fmean(numbers)


def test_a_sum_loses_nothing_between_parts() -> None:
    values = ["1e17", *["1.5"] * 1000, "-1e17"]

    assert description_of(values, part_size=1)["mean"] == float(Fraction(1500) / 1002)


def test_a_column_without_values_has_no_type_and_no_range() -> None:
    assert description_of(["", "", ""], part_size=2) == {"count": 0, "missing": 3}


def test_a_number_that_follows_integers_makes_them_numbers() -> None:
    column = description_of(["1", "2.5"], part_size=1)

    assert column == description_of(["1.0", "2.5"]) | {"frequent": column["frequent"]}


def test_a_text_that_follows_numbers_makes_them_texts() -> None:
    column = description_of([*(str(number) for number in range(3000)), "n/a"])

    assert column["type"] == "text"
    assert (column["min"], column["max"]) == ("0", "n/a")
    assert "mean" not in column


@pytest.mark.parametrize("part_size", [10_000, 100_000])
def test_different_values_are_counted_up_to_a_limit(part_size: int) -> None:
    values = [str(number) for number in range(80_000)]

    known = description_of([*values, *["7"] * 5], part_size)
    unknown = description_of([*values, "80000"], part_size)

    assert (known["distinct"], known["frequent"][0]) == (80_000, {"value": "7", "count": 6})
    assert not {"distinct", "frequent"} & unknown.keys()


def test_all_columns_share_the_limit() -> None:
    columns = [profile_cells([str(number) for number in range(9)], max_distinct=9)]
    others = [profile_cells([str(number) for number in range(81)], max_distinct=81)]

    few_columns = merge_columns(columns * 8, others * 8)
    many_columns = merge_columns(columns * 1000, others * 1000)

    assert few_columns[0].counts is not None
    assert many_columns[0].counts is None


def test_only_the_first_200_characters_of_a_value_are_shown() -> None:
    column = description_of(["y" * 201, "x" * 200])

    assert (column["min"], column["max"]) == ("x" * 200, "y" * 200 + "…")
    assert [entry["value"] for entry in column["frequent"]] == ["y" * 200 + "…", "x" * 200]


@pytest.mark.parametrize("part_size", [1, 100])
def test_two_values_that_differ_only_at_their_end_are_counted_apart(part_size: int) -> None:
    start = "y" * 3000

    column = description_of([f"{start}1", f"{start}2", f"{start}2", "y" * 200], part_size)

    assert column["distinct"] == 3
    assert [entry["count"] for entry in column["frequent"]] == [2, 1, 1]


def test_a_long_value_takes_no_more_memory_than_its_start_and_a_digest() -> None:
    column = column_of(["y" * 100_000])

    assert column.counts is not None
    (kept,) = column.counts
    assert len(kept) < 300


def test_the_five_most_frequent_values_are_shown_the_first_of_equals_first() -> None:
    column = description_of([*"gfedcba", "a", "a", "b"], part_size=3)

    shown = [(entry["value"], entry["count"]) for entry in column["frequent"]]
    assert shown == [("a", 3), ("b", 2), ("g", 1), ("f", 1), ("e", 1)]


@pytest.mark.parametrize("different", [1000, 9900, 200_000])
def test_the_profiles_of_parts_merge_into_that_of_the_whole(different: int) -> None:
    random_numbers = random.Random(3)
    cells = []
    for number in range(100_000):
        cells.append(str(random_numbers.randrange(different)) if number % 9 else "")
    whole = description_of(cells, part_size=10_000)

    for cut in (1, 50_000, 99_999):
        parts = merge_columns([column_of(cells[:cut], 10_000)], [column_of(cells[cut:], 10_000)])
        assert parts[0].describe() == whole, cut


def test_the_number_of_counted_values_is_bounded() -> None:
    columns = [profile_cells([], MAX_DISTINCT)]
    kept = []
    for part in range(30):
        cells = [f"{part}-{number}" for number in range(4000)]
        columns = merge_columns(columns, [profile_cells(cells, MAX_DISTINCT)])
        kept.append(len(columns[0].counts or ()))

    assert max(kept) == 80_000
    assert kept[-1] == 0


def test_merging_leaves_the_profiles_as_they_are() -> None:
    first = profile_cells(["a"], MAX_DISTINCT)
    second = profile_cells(["a", "b"], MAX_DISTINCT)

    merge_columns([first], [second])

    assert first == profile_cells(["a"], MAX_DISTINCT)


@pytest.mark.parametrize("cells", [["b", "a", "c"], ["c", "a", "b"], ["b", "c", "a"]])
@pytest.mark.parametrize("part_size", [1, 2, 3])
def test_the_range_does_not_depend_on_the_order(cells: list[str], part_size: int) -> None:
    texts = description_of(cells, part_size)
    numbers = description_of([str(ord(cell)) for cell in cells], part_size)

    assert (texts["min"], texts["max"]) == ("a", "c")
    assert (numbers["min"], numbers["max"]) == (ord("a"), ord("c"))


# The profile of a part


def profile_of_file(path: Path, width: int) -> list[ColumnProfile]:
    """Return the profiles of the columns of a file that is so small that it has one part."""
    with opened_regular(path) as descriptor:
        file = CsvFile(str(path), descriptor, ",", os.fstat(descriptor))
        (part,), _digest = divide(file, lambda: None)
        return profile_part(part, file, width)


def test_the_header_and_blank_lines_are_no_values(tmp_path: Path) -> None:
    path = tmp_path / "data.csv"
    path.write_text("a,b\n\n1,x\n\n")

    first, second = profile_of_file(path, 2)

    assert (first.count, first.missing, first.numbers) == (1, 0, (1, 1))
    assert (second.count, second.missing, second.texts) == (1, 0, ("x", "x"))


def test_a_part_without_rows_has_a_profile_of_each_column(tmp_path: Path) -> None:
    path = tmp_path / "data.csv"
    path.write_text("a,b\n\n")

    assert profile_of_file(path, 2) == [profile_cells([], 0), profile_cells([], 0)]


@pytest.mark.parametrize(
    ("rows", "line", "reason"),
    [
        ("1,2\nshort\n", 3, "1 cell instead of 2"),
        ('1,"two\nlines"\n\n1,"two\nlines",3\n', 5, "3 cells instead of 2"),
    ],
    ids=["short", "long"],
)
def test_a_row_must_have_a_cell_for_each_column(
    tmp_path: Path, rows: str, line: int, reason: str
) -> None:
    path = tmp_path / "data.csv"
    path.write_text(f"a,b\n{rows}")

    with pytest.raises(InvalidCsv) as caught:
        profile_of_file(path, 2)

    assert caught.value.context == {"path": str(path), "line": line, "reason": reason}
