"""Describe the columns of a CSV file: how many values, their type, their range, the most frequent.

A profile is computed for each batch of rows, and merged with the profile of the rows before. In the
same way, the profiles of the parts of a file are merged, in the order of the file. So the result
does not depend on which process has read which part.

Memory is bounded: a column counts its different values only as long as they are few and short.
"""

from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from math import fsum, isfinite
from typing import Any

from .csv_file import CsvFile, Part, PartReader

FORMAT = "column-profile/4"
"""The version of the result. Raise it with each change that gives another result for some file."""

_MAX_DISTINCT = 10_000
_MAX_DISTINCT_OF_ALL_COLUMNS = 80_000
_MAX_VALUE_CHARACTERS = 200
_MAX_FREQUENT = 5

_MAX_INTEGER = 2**53 - 1
"""The largest integer that every reader of JSON represents exactly. A larger one is a number."""

_MAX_NUMBER = 1e200
"""A larger number is a text. The sum of such numbers could be too large for a float."""


@dataclass(frozen=True)
class Numbers:
    """What is known about values that are all numbers."""

    are_integers: bool
    minimum: float
    maximum: float
    total: float
    rest: float
    """The difference between the exact sum and `total`. Without it, small errors would add up."""

    def describe(self) -> dict[str, Any]:
        """Return the type and the range of the numbers, as the result shows them."""
        if self.are_integers:
            return {"type": "integer", "min": self.minimum, "max": self.maximum}
        # A batch of rows that has only integers gives an `int` as its minimum and maximum, even if
        # other batches of the column have floats. The result shows both as floats, such as 3.0.
        return {"type": "number", "min": float(self.minimum), "max": float(self.maximum)}


@dataclass(frozen=True)
class ColumnProfile:
    """What is known about one column of some rows."""

    missing: int = 0
    """How many cells are empty."""
    count: int = 0
    """How many cells are not empty. If it is 0, the attributes below mean nothing."""
    minimum: str = ""
    """The smallest value as a text. It is needed for numbers too: the next value may be a text."""
    maximum: str = ""
    numbers: Numbers | None = None
    """None if a value is not a number."""
    counts: Counter[str] | None = None
    """How often each value occurs. None if there are too many different values, or long ones."""

    def describe(self) -> dict[str, Any]:
        """Return the column as the result shows it, without what is not known."""
        description: dict[str, Any] = {"count": self.count, "missing": self.missing}
        if self.count == 0:
            return description
        if self.numbers is None:
            description["type"] = "text"
            description["min"] = self.minimum
            description["max"] = self.maximum
        else:
            description |= self.numbers.describe()
            description["mean"] = self.numbers.total / self.count
        if self.counts is not None:
            description["distinct"] = len(self.counts)
            description["frequent"] = []
            for value, count in self.counts.most_common(_MAX_FREQUENT):
                description["frequent"].append({"value": value, "count": count})
        return description


def profile_part(file: CsvFile, part: Part, width: int) -> tuple[list[ColumnProfile], int]:
    """Return the profile of each column of a part, and the number of lines in the part.

    Raise BadRow at the first row that is not valid CSV or UTF-8, or does not have `width` cells.
    """
    columns = [ColumnProfile() for _column in range(width)]
    reader = PartReader(file, part)
    for batch in reader.batches(width):
        if not batch:
            # It has no rows, for example because all of its lines are blank. So it has no columns
            # that could be merged.
            continue
        columns_of_batch = []
        for cells in zip(*batch, strict=True):
            columns_of_batch.append(profile_cells(cells))
        columns = merge_columns(columns, columns_of_batch)
    return columns, reader.line_count


def profile_cells(cells: Sequence[str]) -> ColumnProfile:
    """Return the profile of some cells of one column. An empty cell counts as missing."""
    values = [cell for cell in cells if cell]
    missing = len(cells) - len(values)
    if not values:
        return ColumnProfile(missing)
    counts: Counter[str] = Counter(values)
    are_short = max(map(len, counts)) <= _MAX_VALUE_CHARACTERS
    return ColumnProfile(
        missing=missing,
        count=len(values),
        minimum=min(counts)[:_MAX_VALUE_CHARACTERS],
        maximum=max(counts)[:_MAX_VALUE_CHARACTERS],
        numbers=_read_numbers(values),
        counts=counts if are_short else None,
    )


def merge_columns(first: list[ColumnProfile], second: list[ColumnProfile]) -> list[ColumnProfile]:
    """Return the profiles of the columns from those of some rows, and of the rows that follow."""
    # With many columns, each one may count fewer values, because all counters share the memory.
    share_of_column = _MAX_DISTINCT_OF_ALL_COLUMNS // len(first)
    max_distinct = min(_MAX_DISTINCT, share_of_column)
    merged = []
    for first_column, second_column in zip(first, second, strict=True):
        merged.append(_merge_column(first_column, second_column, max_distinct))
    return merged


def _merge_column(
    first: ColumnProfile,
    second: ColumnProfile,
    max_distinct: int,
) -> ColumnProfile:
    """Return the profile of one column from those of some rows, and of the rows that follow.

    If it has more than `max_distinct` different values, they are no longer counted.
    """
    missing = first.missing + second.missing
    # A profile without values has no minimum, so it must not be compared with another one.
    if first.count == 0:
        merged = replace(second, missing=missing)
    elif second.count == 0:
        merged = replace(first, missing=missing)
    else:
        merged = ColumnProfile(
            missing=missing,
            count=first.count + second.count,
            minimum=min(first.minimum, second.minimum),
            maximum=max(first.maximum, second.maximum),
            numbers=_merge_numbers(first.numbers, second.numbers),
            counts=_merge_counts(first.counts, second.counts),
        )
    if merged.counts is not None and len(merged.counts) > max_distinct:
        return replace(merged, counts=None)
    return merged


def _merge_counts(first: Counter[str] | None, second: Counter[str] | None) -> Counter[str] | None:
    """Return how often each value occurs in both parts of a column.

    None means that the values of a part were not counted, because there are too many, or long ones.
    The sum is then unknown too, so return None.
    """
    if first is None or second is None:
        return None
    # This changes the counter of the first profile, which is not used any more. A new counter for
    # each batch would cost time.
    first.update(second)
    return first


def _merge_numbers(first: Numbers | None, second: Numbers | None) -> Numbers | None:
    """Return what is known about all numbers, or None if there are values that are no numbers."""
    if first is None or second is None:
        return None
    total, rest = _add([first.total, first.rest, second.total, second.rest])
    return Numbers(
        are_integers=first.are_integers and second.are_integers,
        minimum=min(first.minimum, second.minimum),
        maximum=max(first.maximum, second.maximum),
        total=total,
        rest=rest,
    )


def _read_numbers(values: list[str]) -> Numbers | None:
    """Return what is known about the numbers, or None if one of the values is not a number."""
    # Python reads more as a number than people do, such as 1_000 and digits of other scripts.
    text = "".join(values)
    if text.isascii() and "_" not in text:
        with suppress(ValueError):
            return _summarize([int(value) for value in values], _MAX_INTEGER)
        # Not all of them are integers, or one is too large.
        with suppress(ValueError):
            return _summarize([float(value) for value in values], _MAX_NUMBER)
    return None


def _summarize(numbers: Sequence[float], limit: float) -> Numbers:
    """Return what is known about these numbers.

    Raise ValueError if one of them is nan, infinite, or further from 0 than the limit.
    """
    minimum, maximum = min(numbers), max(numbers)
    # Each comparison with nan is false, so min() and max() may miss one. The sum does not.
    if not (-limit <= minimum and maximum <= limit and isfinite(sum(numbers))):
        raise ValueError(numbers)
    total, rest = _add(numbers)
    return Numbers(
        are_integers=isinstance(minimum, int),
        minimum=minimum,
        maximum=maximum,
        total=total,
        rest=rest,
    )


def _add(numbers: Sequence[float]) -> tuple[float, float]:
    """Return the sum as a float, and the part of the exact sum that this float lacks."""
    total = fsum(numbers)
    return total, fsum([*numbers, -total])
