"""A profile is exact, and says what it no longer knows."""

import math
import os
import random
import statistics
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from sampletool.sample.csv_file import read_header, survey
from sampletool.sample.profile import Column, measure, profile_part

MOST_COUNTED = 10_000


def column_of(values: Sequence[str], most_counted: int = MOST_COUNTED, batch: int = 1000) -> Column:
    column = Column(most_counted)
    for start in range(0, len(values), batch):
        column.add(values[start : start + batch])
    return column


def profile_of(values: Sequence[str], most_counted: int = MOST_COUNTED) -> dict[str, Any]:
    return column_of(values, most_counted).describe()


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        (["1", "-2", "+3", "007"], "integer"),
        (["1", "2.5"], "number"),
        (["1e5", ".5"], "number"),
        ([str(2**63)], "number"),
        (["2024-02-29"], "text"),
        (["true"], "text"),
        (["1_000"], "text"),
        (["nan"], "text"),
        (["inf", "1"], "text"),
        (["1e999"], "text"),
        (["٣"], "text"),
        (["9" * 5000], "text"),
        (["1", "x"], "text"),
    ],
)
def test_the_type_is_the_narrowest_that_all_values_have(values: list[str], expected: str) -> None:
    assert measure(values).type == expected
    assert profile_of(values)["type"] == expected


@pytest.mark.parametrize("many", [200, 30_000])
def test_counts_extremes_and_moments_are_exact_however_many_values(many: int) -> None:
    rng = random.Random(many)
    numbers = [round(rng.gauss(50, 12), 6) for _ in range(many)]

    profile = profile_of([str(number) for number in numbers] + ["", ""])

    assert (profile["count"], profile["empty"]) == (many, 2)
    assert (profile["min"], profile["max"]) == (min(numbers), max(numbers))
    assert math.isclose(profile["mean"], statistics.fmean(numbers), rel_tol=1e-12)
    assert math.isclose(profile["stddev"], statistics.stdev(numbers), rel_tol=1e-10)


def test_different_values_are_counted_up_to_a_limit_and_then_it_says_that_there_are_more() -> None:
    exact = profile_of([*(str(n) for n in range(10_000)), *["7"] * 5, ""])
    more = profile_of([str(n) for n in range(10_001)])

    assert (exact["distinct"], exact["frequent"][0]) == (10_000, {"value": "7", "count": 6})
    assert more["distinct_more_than"] == 10_000
    assert not {"distinct", "frequent"} & more.keys()


def test_a_column_that_turns_into_text_late_has_the_extremes_of_text() -> None:
    values = [str(n) for n in range(30_000)] + ["n/a"]

    profile = profile_of(values)

    assert profile["type"] == "text"
    assert (profile["min"], profile["max"]) == ("0", "n/a")
    assert "mean" not in profile


@pytest.mark.parametrize("different", [1_000, 9_900, 25_000])
def test_merging_columns_gives_the_column_of_all_of_it(different: int) -> None:
    rng = random.Random(3)
    values = [str(rng.randrange(different)) if n % 9 else "" for n in range(60_000)]
    whole = profile_of(values)

    for cuts in ([1000], [30_000], [100, 59_000], [20_000, 40_000]):
        parts = [column_of(values[a:b]) for a, b in zip([0, *cuts], [*cuts, None], strict=True)]
        for part in parts[1:]:
            parts[0].merge(part)
        merged = parts[0].describe()

        for fact in ("count", "empty", "type", "min", "max", "distinct", "distinct_more_than", "frequent"):
            assert merged.get(fact) == whole.get(fact), (cuts, fact)
        assert math.isclose(merged["stddev"], whole["stddev"], rel_tol=1e-10)


def test_what_is_kept_is_bounded_whatever_streams_by() -> None:
    column = Column(64)
    kept = []
    for n in range(200):
        column.add([f"{n}-{i}" for i in range(10)])
        kept.append(len(column._counts or ()))

    assert max(kept) <= 64
    assert kept[-1] == 0


def test_long_cells_stay_different_and_are_shown_shortened(tmp_path: Path) -> None:
    (tmp_path / "long.csv").write_text("a\n" + "".join(f"{'x' * 5000}{n}\n" for n in range(50)))

    (column,) = profile_of_file(tmp_path / "long.csv")
    kept = max(map(len, column._counts or ()))
    profile = column.describe()

    assert kept < 220
    assert profile["distinct"] == 50
    assert len(profile["min"]) < 220


def test_a_column_without_values_has_no_type(tmp_path: Path) -> None:
    (tmp_path / "empty.csv").write_text("a,b\n,\n,\n")

    profile = profile_of_file(tmp_path / "empty.csv")[1].describe()

    assert profile == {"count": 0, "empty": 2, "distinct": 0, "frequent": []}


def profile_of_file(path: Path) -> list[Column]:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        size = path.stat().st_size
        header = read_header(descriptor, size, ",")
        (part,) = survey(descriptor, size, lambda: None)[1]
        return profile_part(descriptor, part, ",", len(header), lambda: None).columns
    finally:
        os.close(descriptor)
