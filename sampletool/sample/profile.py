"""What a column of text holds: how many values, of what type, how large, how many different, which most often.

As long as a column has few different values each is counted, and everything follows from the counts. Beyond that it is
measured as it streams by, and how many are different is no longer known. Columns of the parts of a file merge into the
columns of the file. What is kept is bounded for all columns together, and the same data gives the same profile.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from math import dist, fsum, isnan, sqrt
from typing import Any, Literal, NamedTuple

from .csv_file import Part, read_rows

FORMAT = "column-profile/3"
_MOST_COUNTED, _COUNTED_TOGETHER = 10_000, 80_000
"""Different values that are counted, of one column and of all together."""
_SHOWN_VALUES = 5
_LARGEST = 1e140
"""What is larger is text: its square would not be a number."""

Type = Literal["integer", "number", "text"]
"""From the narrowest to the widest, which happens to be the order of the alphabet."""


class PartProfile:
    """Of one part of a file."""

    def __init__(self, width: int) -> None:
        self.columns = [Column(min(_MOST_COUNTED, _COUNTED_TOGETHER // width)) for _ in range(width)]
        self.lines = 0

    def merge(self, behind: "PartProfile") -> None:
        """Add the part that comes next."""
        self.lines += behind.lines
        for column, other in zip(self.columns, behind.columns, strict=True):
            column.merge(other)


def profile_part(descriptor: int, part: Part, delimiter: str, width: int, check: Callable[[], None]) -> PartProfile:
    """Every column of one part. `check` is called now and then."""
    profile = PartProfile(width)
    for rows, profile.lines in read_rows(descriptor, part, delimiter, width):
        check()
        for column, values in zip(profile.columns, zip(*rows, strict=True), strict=bool(rows)):
            column.add(values)
    return profile


class Column:
    """One column of one part, or of several."""

    def __init__(self, most_counted: int) -> None:
        self.rows = 0
        self._most_counted = most_counted
        self._counts: Counter[str] | None = Counter()
        """None when there are more different values than are counted; then the next says what was measured."""
        self._measures = _NOTHING

    def add(self, values: Sequence[str]) -> None:
        self.rows += len(values)
        if self._counts is None:
            self._measure([*filter(None, values)])
        else:
            self._count(values)

    def merge(self, other: "Column") -> None:
        self.rows += other.rows
        if self._counts is None or other._counts is None:
            self._stop_counting()
            other._stop_counting()
            self._measures = _merged(self._measures, other._measures)
        else:
            self._count(other._counts)

    def describe(self) -> dict[str, Any]:
        counts = self._counts
        self._stop_counting()
        count = self._measures.total
        described = {"count": count, "empty": self.rows - count, **self._measures.describe()}
        if counts is None:
            return described | {"distinct_more_than": self._most_counted}
        often = sorted((-count, value) for value, count in counts.items())[:_SHOWN_VALUES]
        frequent = [{"value": value, "count": -count} for count, value in often]
        return described | {"distinct": len(counts), "frequent": frequent}

    def _count(self, values: Iterable[str]) -> None:
        """Values, or the counts of another column."""
        assert self._counts is not None
        self._counts.update(values)
        self._counts.pop("", None)
        if len(self._counts) > self._most_counted:
            self._stop_counting()

    def _stop_counting(self) -> None:
        counts, self._counts = self._counts or Counter(), None
        self._measure([*counts], [*counts.values()])

    def _measure(self, values: Sequence[str], weights: Sequence[int] | None = None) -> None:
        """`weights`: how often each occurs, where all are different."""
        if values:
            self._measures = _merged(self._measures, measure(values, weights, self._measures.type))


def measure(values: Sequence[str], weights: Sequence[int] | None = None, known: Type = "integer") -> "Measures":
    """`known`: the type of others in the column.

    Python reads more as a number than people do: `1_000`, digits of other scripts, nan and inf are text here.
    Integers of more than 64 bits are numbers.
    """
    count = len(values) if weights is None else sum(weights)
    texts, joined = (min(values), max(values)), "".join(values)
    if known == "text" or not joined.isascii() or "_" in joined:
        return Measures("text", count, texts)
    with suppress(ValueError):
        numbers: list[float] = [*map(int if known == "integer" else float, values)]
        low, high = (-(2**63), 2**63) if known == "integer" else (-_LARGEST, _LARGEST)
        if low <= min(numbers) and max(numbers) < high and not isnan(sum(numbers)):
            return Measures(known, count, texts, (min(numbers), max(numbers)), *_moments(numbers, weights, count))
    return measure(values, weights, "number" if known == "integer" else "text")


def _moments(numbers: list[float], weights: Sequence[int] | None, count: int) -> tuple[float, float]:
    """Their mean, and the sum of the squared distances from it."""
    if weights is None:
        mean = fsum(numbers) / count
        return mean, dist(numbers, [mean] * count) ** 2
    mean = fsum(number * weight for number, weight in zip(numbers, weights, strict=True)) / count
    return mean, fsum(weight * (number - mean) ** 2 for number, weight in zip(numbers, weights, strict=True))


class Measures(NamedTuple):
    """What is known of values that are not counted. The members behind `texts` are meant for numbers alone."""

    type: Type
    total: int
    """How many."""
    texts: tuple[str, str]
    """Smallest and largest; always, because the next value may turn numbers into text."""
    numbers: tuple[float, float] = (0, 0)
    mean: float = 0.0
    squares: float = 0.0
    """The sum of the squared distances from the mean."""

    def describe(self) -> dict[str, Any]:
        if not self.total:
            return {}
        if self.type == "text":
            return {"type": self.type, "min": self.texts[0], "max": self.texts[1]}
        described = {"type": self.type, "min": self.numbers[0], "max": self.numbers[1], "mean": self.mean}
        return described | ({"stddev": sqrt(self.squares / (self.total - 1))} if self.total > 1 else {})


_NOTHING = Measures("integer", 0, ("", ""))


def _merged(a: Measures, b: Measures) -> Measures:
    if not a.total or not b.total:
        return a if a.total else b
    found: Type = a.type if a.type > b.type else b.type
    count, apart = a.total + b.total, b.mean - a.mean
    texts = min(a.texts[0], b.texts[0]), max(a.texts[1], b.texts[1])
    if found == "text":
        return Measures(found, count, texts)
    numbers = min(a.numbers[0], b.numbers[0]), max(a.numbers[1], b.numbers[1])
    squares = a.squares + b.squares + apart * apart * a.total * b.total / count
    return Measures(found, count, texts, numbers, a.mean + apart * b.total / count, squares)
