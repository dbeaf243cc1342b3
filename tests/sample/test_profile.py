"""A profile is exact while it can be, and an estimate that says so from there on."""

import math
import os
import random
import statistics
import string
from collections.abc import Callable, Sequence
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import pytest

from sampletool.sample.csv_file import Dialect, read_header, survey
from sampletool.sample.profile import Column, profile_part, read

ROOM = 16_384
"""What a column has where there are eight."""


def column_of(values: Sequence[str], room: int = ROOM, batch: int = 1000) -> Column:
    column = Column(room)
    for start in range(0, len(values), batch):
        column.add(values[start : start + batch])
    return column


def profile_of(values: Sequence[str], room: int = ROOM) -> dict[str, Any]:
    return column_of(values, room).describe()


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        (["1", "-2", "+3", "007"], "integer"),
        (["1", "2.5"], "number"),
        (["1e5", ".5"], "number"),
        ([str(2**63)], "number"),
        (["2024-02-29", "2023-01-01"], "date"),
        (["2024-02-29 10:00:00", "2024-02-29 09:00"], "date"),
        (["2024-02-29", "2024-02-29T10:00:00.5"], "date"),
        (["2024-02-29 10:00:00", "2024-02-29T09:00"], "text"),
        (["2024-02-29T10:00:00Z"], "text"),
        (["2023-02-29"], "text"),
        (["2024-01-01523"], "text"),
        (["2024-01-01:10:00"], "text"),
        (["20240101", "2024-01-01T10:00-05:00", "2024-01-01T11:00-05:00"], "text"),
        (["2024-01-01T10:00:00-05:00"], "text"),
        (["True", "false"], "boolean"),
        (["1_000"], "text"),
        (["nan"], "text"),
        (["inf", "1"], "text"),
        (["1e999"], "text"),
        (["٣"], "text"),
        (["9" * 5000], "text"),
        (["1", "x"], "text"),
        (["true", "1"], "text"),
    ],
)
def test_the_type_is_the_narrowest_that_all_values_have(values: list[str], expected: str) -> None:
    assert read(values)[0] == expected
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


def test_different_values_are_exact_up_to_the_limit_and_then_an_estimate_that_says_so() -> None:
    limit = ROOM * 5 // 8

    few = profile_of([str(n) for n in range(10_000)])
    many = profile_of([str(n) for n in range(limit + 1)])

    assert few["distinct"] == 10_000
    assert "distinct_is_estimate" not in few
    assert many["distinct_is_estimate"]
    assert 0 < many["distinct_error"] < 0.02


def words(n: int) -> str:
    rng = random.Random(n)
    return "".join(rng.choices(string.ascii_lowercase, k=8))


@pytest.mark.parametrize(
    "pattern",
    [
        str,
        lambda n: f"{n:08d}",
        lambda n: f"user{n}@example.org",
        lambda n: f"{n * 1000}",
        lambda n: f"{n / 100:.2f}",
        lambda n: f"{n:x}",
        lambda n: (date(1900, 1, 1) + timedelta(days=n % 60_000)).isoformat(),
        words,
        lambda n: "é" * (n % 7) + str(n),
        lambda n: f"{n % 251}-{n // 251}",
    ],
    ids=["numbers", "padded", "addresses", "thousands", "cents", "hex", "days", "words", "accents", "pairs"],
)
def test_the_estimate_is_within_three_percent(pattern: Callable[[int], str]) -> None:
    values = [pattern(n) for n in range(70_000)]

    estimate = profile_of(values)["distinct"]

    assert abs(estimate / len(set(values)) - 1) < 0.03


@pytest.mark.parametrize("step", [4, 8, 25, 64])
def test_with_little_room_an_estimate_is_rough_but_never_absurd(step: int) -> None:
    for many in (40, 50, 64, 100, 400):
        profile = profile_of([f"{step * n}.0" for n in range(many)], room=32)

        assert many / 2 <= profile["distinct"] <= profile["count"]
        assert 0 < profile["distinct_error"] < 0.4


def test_a_frequent_value_is_found_among_many_others_within_the_stated_error() -> None:
    rng = random.Random(1)
    values = [f"v{n}" for n in range(40_000)] + ["often"] * 5000 + ["now and then"] * 2000
    rng.shuffle(values)

    profile = profile_of(values)

    found = {entry["value"]: entry["count"] for entry in profile["frequent"]}
    assert list(found)[:2] == ["often", "now and then"]
    assert 5000 - profile["frequent_error"] <= found["often"] <= 5000


def test_a_column_that_turns_into_text_late_has_the_extremes_of_text() -> None:
    values = [str(n) for n in range(30_000)] + ["n/a"]

    profile = profile_of(values)

    assert profile["type"] == "text"
    assert (profile["min"], profile["max"]) == ("0", "n/a")
    assert "mean" not in profile


def test_merging_columns_gives_the_column_of_all_of_it() -> None:
    rng = random.Random(3)
    values = [str(rng.randrange(25_000)) for _ in range(60_000)]
    whole = profile_of(values)

    for cuts in ([1000], [30_000], [100, 59_000], [20_000, 40_000]):
        parts = [column_of(values[a:b]) for a, b in zip([0, *cuts], [*cuts, None], strict=True)]
        for part in parts[1:]:
            parts[0].merge(part)
        merged = parts[0].describe()

        for fact in ("count", "empty", "type", "min", "max", "distinct"):
            assert merged[fact] == whole[fact], (cuts, fact)
        assert math.isclose(merged["stddev"], whole["stddev"], rel_tol=1e-10)


def test_what_is_kept_is_bounded_whatever_streams_by() -> None:
    column = Column(64)
    for n in range(200):
        column.add([f"{n}-{i}" for i in range(500)])

    assert len(column._counts) <= 40
    assert len(column._sample) <= 64


def test_long_cells_stay_different_and_are_shown_shortened(tmp_path: Path) -> None:
    (tmp_path / "long.csv").write_text("a\n" + "".join(f"{'x' * 5000}{n}\n" for n in range(50)))

    (column,) = profile_of_file(tmp_path / "long.csv")
    kept = max(map(len, column._counts))
    profile = column.describe()

    assert kept < 200
    assert profile["distinct"] == 50
    assert len(profile["min"]) <= 101


def test_a_column_without_values_has_no_type(tmp_path: Path) -> None:
    (tmp_path / "empty.csv").write_text("a,b\n,\n,\n")

    profile = profile_of_file(tmp_path / "empty.csv")[1].describe()

    assert profile == {"count": 0, "empty": 2, "distinct": 0, "frequent": []}


def profile_of_file(path: Path) -> list[Column]:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        size = path.stat().st_size
        header = read_header(descriptor, size, Dialect())
        (part,) = survey(descriptor, size, Dialect(), lambda: None)[1]
        return profile_part(descriptor, part, Dialect(), len(header), skip=False, check=lambda: None).columns
    finally:
        os.close(descriptor)
