"""Describe the columns of a CSV file: how many values, their type, their range, the most frequent.

Each part of the file has a profile, and these profiles are merged in the order of the file. So the
result does not depend on which process has read which part.

Memory is bounded: a column counts its distinct values only as long as there are few, and of a long
value, it keeps the first characters and a digest.
"""

from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from hashlib import sha256
from math import fsum
from typing import Any, TypeVar

from ..kit.contract.text import counted
from .csv_file import CsvFile, Part, read_rows

FORMAT = "column-profile/6"
"""The version of the result. Raise it with each change that gives another result for some file."""

_MAX_DISTINCT = 80_000
"""How many distinct values are counted in all columns. Each column has the same share."""

MAX_VALUE_CHARACTERS = 200
"""How much of a value is shown. A longer one is cut off, and ends with "…"."""

_MAX_FREQUENT = 5

_MAX_NUMBER = 1e200
"""Numbers with a larger sum count as texts. Otherwise, the sum of a column could be infinite."""

_TYPES = ("integer", "number", "text")
"""From narrow to wide: every integer is a number, and every number is a text."""

Value = TypeVar("Value", str, float)


@dataclass(frozen=True)
class ColumnProfile:
    """What is known about one column of some rows."""

    count: int
    """How many cells are not empty. The others are `missing`."""
    missing: int
    type: str
    """The first of _TYPES that all values have."""
    texts: tuple[str, ...]
    """The smallest and the largest value, compared as texts. It is empty if there are no values."""
    numbers: tuple[float, ...]
    """The smallest and the largest value, compared as numbers. Only for numeric types."""
    sums: tuple[float, float]
    """The sum of the numbers as a float, and the part of the exact sum that this float lacks.

    Without the second one, small errors would add up from part to part.
    """
    counts: Counter[str] | None
    """How often each value occurs. None if there are too many distinct values."""

    def describe(self) -> dict[str, Any]:
        """Return the column as the result shows it, without what is not known."""
        description: dict[str, Any] = {"count": self.count, "missing": self.missing}
        if self.count == 0:
            return description
        description["type"] = self.type
        if self.type == "text":
            description["min"], description["max"] = map(_shown, self.texts)
        else:
            description["min"], description["max"] = self.numbers
            description["mean"] = self.sums[0] / self.count
        if self.counts is not None:
            description["distinct"] = len(self.counts)
            description["frequent"] = []
            for value, count in self.counts.most_common(_MAX_FREQUENT):
                description["frequent"].append({"value": _shown(value), "count": count})
        return description


def profile_part(part: Part, file: CsvFile, width: int) -> list[ColumnProfile]:
    """Return the profile of each column of a part.

    Raise InvalidCsv at the first row that is not valid CSV, or does not have `width` cells.
    """
    rows = []
    for line, row in read_rows(file, part):
        # The first line has the names of the columns. Later, a line can be blank.
        if line == 1 or not row:
            continue
        if len(row) != width:
            raise file.invalid_row(line, f"{counted(len(row), 'cell')} instead of {width}")
        rows.append(row)
    columns = []
    for number in range(width):
        cells = [row[number] for row in rows]
        columns.append(profile_cells(cells, _MAX_DISTINCT // width))
    return columns


def profile_cells(cells: Sequence[str], max_distinct: int) -> ColumnProfile:
    """Return the profile of some cells of one column. An empty cell counts as missing."""
    values = [cell for cell in cells if cell]
    type_of_values, numbers = _read_numbers(values)
    counts = Counter([_shorten(value) for value in values])
    return ColumnProfile(
        count=len(values),
        missing=len(cells) - len(values),
        type=type_of_values,
        texts=_range(counts),
        numbers=_range(numbers),
        sums=_add(numbers),
        counts=counts if len(counts) <= max_distinct else None,
    )


def merge_columns(first: list[ColumnProfile], second: list[ColumnProfile]) -> list[ColumnProfile]:
    """Return the profiles of the columns from those of some rows, and of the rows that follow."""
    max_distinct = _MAX_DISTINCT // len(first)
    merged = []
    for first_column, second_column in zip(first, second, strict=True):
        merged.append(_merge_column(first_column, second_column, max_distinct))
    return merged


def _merge_column(
    first: ColumnProfile,
    second: ColumnProfile,
    max_distinct: int,
) -> ColumnProfile:
    """Return the profile of one column from those of some rows, and of the rows that follow."""
    counts = None
    if first.counts is not None and second.counts is not None:
        counts = first.counts.copy()
        counts.update(second.counts)
        if len(counts) > max_distinct:
            counts = None
    return ColumnProfile(
        count=first.count + second.count,
        missing=first.missing + second.missing,
        # The column has the wider one of the two types.
        type=max(first.type, second.type, key=_TYPES.index),
        texts=_range(first.texts + second.texts),
        numbers=_range(first.numbers + second.numbers),
        sums=_add(first.sums + second.sums),
        counts=counts,
    )


def _read_numbers(values: list[str]) -> tuple[str, list[float]]:
    """Return the type of the values, and the values as numbers. There are none if one is a text."""
    # Python reads more as a number than people do, such as 1_000 and digits of other scripts.
    all_text = "".join(values)
    if not all_text.isascii() or "_" in all_text:
        return "text", []
    for name, convert in (("integer", int), ("number", float)):
        try:
            numbers: list[float] = [convert(value) for value in values]
        except ValueError:
            continue
        # If a value is infinite or not a number (nan), so is the sum. A comparison with nan fails.
        if sum(map(abs, numbers)) <= _MAX_NUMBER:
            return name, numbers
    return "text", []


def _shorten(value: str) -> str:
    """Return the value. Of a long one, return the start, and a digest that tells it from others."""
    if len(value) <= MAX_VALUE_CHARACTERS:
        return value
    digest = sha256(value.encode()).hexdigest()
    return f"{value[:MAX_VALUE_CHARACTERS]}…{digest}"


def _shown(shortened: str) -> str:
    """Return a value from `_shorten` as the result shows it, without the digest."""
    return shortened[: MAX_VALUE_CHARACTERS + 1]


def _range(values: Collection[Value]) -> tuple[Value, ...]:
    """Return the smallest and the largest value, or an empty tuple if there are no values."""
    if not values:
        return ()
    return min(values), max(values)


def _add(numbers: Sequence[float]) -> tuple[float, float]:
    """Return the sum as a float, and the part of the exact sum that this float lacks."""
    total = fsum(numbers)
    return total, fsum([*numbers, -total])
