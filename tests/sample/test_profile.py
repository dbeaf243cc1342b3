"""sampletool/sample/profile.py: exact figures, and none for what is not known."""

import random
import statistics
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import pytest

from sampletool.sample.profile import ColumnProfile, merge_columns, profile_cells


def column_of(cells: Sequence[str], batch_size: int = 1000) -> ColumnProfile:
    """Return the profile of a column whose cells are read in batches."""
    columns = [ColumnProfile()]
    for start in range(0, len(cells), batch_size):
        columns = merge_columns(columns, [profile_cells(cells[start : start + batch_size])])
    return columns[0]


def description_of(cells: Sequence[str], batch_size: int = 1000) -> dict[str, Any]:
    return column_of(cells, batch_size).describe()


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        (["1", "-2", "+3", "007"], "integer"),
        ([str(2**53 - 1), str(1 - 2**53)], "integer"),
        ([str(2**53)], "number"),
        ([str(-(2**53))], "number"),
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
@pytest.mark.parametrize("batch_size", [1, 100])
def test_the_type_is_the_narrowest_that_all_values_have(
    values: list[str], expected: str, batch_size: int
) -> None:
    assert description_of(values, batch_size)["type"] == expected


@pytest.mark.parametrize("count", [200, 30_000])
def test_the_figures_are_exact_for_any_number_of_values(count: int) -> None:
    random_numbers = random.Random(count)
    numbers = [round(random_numbers.gauss(50, 12), 6) for _ in range(count)]

    column = description_of([str(number) for number in numbers] + ["", ""])

    assert (column["count"], column["missing"]) == (count, 2)
    assert (column["min"], column["max"]) == (min(numbers), max(numbers))
    assert column["mean"] == statistics.fmean(numbers)


def test_a_sum_loses_nothing_between_batches() -> None:
    values = ["1e17", *["1.5"] * 1000, "-1e17"]

    assert description_of(values, batch_size=1)["mean"] == float(Fraction(1500) / 1002)


def test_a_column_without_values_has_no_type_and_no_range() -> None:
    assert description_of(["", "", ""], batch_size=2) == {"count": 0, "missing": 3}


def test_a_number_that_follows_integers_makes_them_numbers() -> None:
    column = description_of(["1", "2.5"], batch_size=1)

    assert (column["type"], column["max"], column["mean"]) == ("number", 2.5, 1.75)
    assert str(column["min"]) == "1.0"


def test_a_text_that_follows_numbers_makes_them_texts() -> None:
    column = description_of([*(str(number) for number in range(3000)), "n/a"])

    assert column["type"] == "text"
    assert (column["min"], column["max"]) == ("0", "n/a")
    assert "mean" not in column


def test_different_values_are_counted_up_to_a_limit() -> None:
    values = [str(number) for number in range(10_000)]

    known = description_of([*values, *["7"] * 5])
    unknown = description_of([*values, "10000"])

    assert (known["distinct"], known["frequent"][0]) == (10_000, {"value": "7", "count": 6})
    assert not {"distinct", "frequent"} & unknown.keys()


def test_many_different_values_in_one_batch_are_not_counted_either() -> None:
    values = [str(number) for number in range(10_001)]

    assert "distinct" not in description_of(values, batch_size=20_000)
    assert "distinct" not in description_of([*values, ""], batch_size=10_001)


def test_many_columns_share_the_limit() -> None:
    cells = profile_cells([str(number) for number in range(81)])

    few_columns = merge_columns([ColumnProfile()] * 8, [cells] * 8)
    many_columns = merge_columns([ColumnProfile()] * 1000, [cells] * 1000)

    assert few_columns[0].counts is not None
    assert many_columns[0].counts is None


def test_long_values_are_not_counted_and_shown_in_part() -> None:
    longest_counted = "x" * 200

    column = description_of(["y" * 201, longest_counted])

    assert "distinct" not in column
    assert (column.get("min"), column.get("max")) == (longest_counted, "y" * 200)
    assert description_of([longest_counted])["distinct"] == 1


def test_the_five_most_frequent_values_are_shown_the_first_of_equals_first() -> None:
    column = description_of([*"gfedcba", "a", "a", "b"], batch_size=3)

    shown = [(entry["value"], entry["count"]) for entry in column["frequent"]]
    assert shown == [("a", 3), ("b", 2), ("g", 1), ("f", 1), ("e", 1)]


@pytest.mark.parametrize("different", [1000, 9900, 25_000])
def test_the_profiles_of_parts_merge_into_that_of_the_whole(different: int) -> None:
    random_numbers = random.Random(3)
    cells = []
    for number in range(30_000):
        cells.append(str(random_numbers.randrange(different)) if number % 9 else "")
    whole = description_of(cells)

    for cut in (1, 1000, 15_000, 29_999):
        parts = merge_columns([column_of(cells[:cut])], [column_of(cells[cut:])])
        assert parts[0].describe() == whole, cut


def test_the_number_of_counted_values_is_bounded() -> None:
    columns = [ColumnProfile()]
    kept = []
    for batch in range(30):
        cells = [f"{batch}-{number}" for number in range(1000)]
        columns = merge_columns(columns, [profile_cells(cells)])
        kept.append(len(columns[0].counts or ()))

    assert max(kept) == 10_000
    assert kept[-1] == 0


@pytest.mark.parametrize("cells", [["b", "a", "c"], ["c", "a", "b"], ["b", "c", "a"]])
@pytest.mark.parametrize("batch_size", [1, 2, 3])
def test_the_range_does_not_depend_on_the_order(cells: list[str], batch_size: int) -> None:
    texts = description_of(cells, batch_size)
    numbers = description_of([str(ord(cell)) for cell in cells], batch_size)

    assert (texts["min"], texts["max"]) == ("a", "c")
    assert (numbers["min"], numbers["max"]) == (ord("a"), ord("c"))
