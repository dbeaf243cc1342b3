"""What a column of text holds: how many values, of what type, how large, how many different, which most often.

As long as a column has few different values each is counted, and everything follows from the counts. Beyond that it is
measured as it streams by, and how many are different is no longer known. Columns of the parts of a file merge into the
columns of the file. What is kept is bounded for all columns together, and the same data gives the same profile.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from math import dist, fsum, isnan, sqrt
from typing import Any, Literal, NamedTuple

from sampletool.sample.csv_file import BadRow, Dialect, Part, read_rows

FORMAT = "column-profile/3"
MOST_COLUMNS = 4096
_DESCRIBED = 20
"""So many bad rows are described; the others are only counted."""
_MOST_COUNTED, _COUNTED_TOGETHER = 10_000, 80_000
"""Different values that are counted, of one column and of all together."""
_SHOWN_CHARS = 100
_SHOWN_VALUES = 5
_LARGEST = 1e140
"""What is larger is text: its square would not be a number."""

Type = Literal["integer", "number", "text"]
"""From the narrowest to the widest, which happens to be the order of the alphabet."""
Moments = tuple[int, float, float]
"""How many, their mean, and the sum of the squared distances from it."""


class PartProfile:
    """Of one part of a file. Lines are counted from its start."""

    def __init__(self, width: int) -> None:
        self.columns = [Column(min(_MOST_COUNTED, _COUNTED_TOGETHER // width)) for _ in range(width)]
        self.lines = 0
        self.skipped = 0
        self.bad_rows: list[BadRow] = []
        """The first of them."""
        self.stopped_at: BadRow | None = None

    def merge(self, behind: "PartProfile") -> None:
        """Add the part that comes next."""
        self.bad_rows += [row._replace(line=self.lines + row.line) for row in behind.bad_rows]
        if behind.stopped_at is not None:
            self.stopped_at = behind.stopped_at._replace(line=self.lines + behind.stopped_at.line)
        self.lines += behind.lines
        self.skipped += behind.skipped
        for column, other in zip(self.columns, behind.columns, strict=True):
            column.merge(other)

    def describe(self) -> dict[str, Any]:
        bad_rows = [{"line": row.line, "reason": row.reason} for row in self.bad_rows[:_DESCRIBED]]
        return {"rows": self.columns[0].rows, "skipped": self.skipped, "bad_rows": bad_rows}


def profile_part(descriptor: int, part: Part, dialect: Dialect, width: int, check: Callable[[], None]) -> PartProfile:
    """Every column of one part, no further than a bad row that cannot be skipped. `check` is called now and then."""
    profile = PartProfile(width)
    for batch in read_rows(descriptor, part, dialect, width):
        check()
        profile.lines = batch.lines
        profile.stopped_at = next((row for row in batch.bad_rows if row.is_last or dialect.on_error == "stop"), None)
        if profile.stopped_at is not None:
            break
        profile.skipped += len(batch.bad_rows)
        profile.bad_rows += batch.bad_rows[: _DESCRIBED - len(profile.bad_rows)]
        for column, values in zip(profile.columns, zip(*batch.rows, strict=True), strict=bool(batch.rows)):
            column.add(values)
    return profile


class Column:
    """One column of one part, or of several."""

    def __init__(self, most_counted: int) -> None:
        self.rows = 0
        self._empty = 0
        self._most_counted = most_counted
        self._counts: Counter[str] | None = Counter()
        """None when there are more different values than are counted; then the next says what was measured."""
        self._measures: Measures | None = None

    def add(self, values: Sequence[str]) -> None:
        self.rows += len(values)
        if self._counts is None:
            filled = [*filter(None, values)]
            self._empty += len(values) - len(filled)
            self._measure(filled)
        else:
            self._counts.update(values)
            self._keep_within_limit()

    def merge(self, other: "Column") -> None:
        self.rows += other.rows
        if self._counts is not None and other._counts is not None:
            self._counts.update(other._counts)
            self._keep_within_limit()
        else:
            self._stop_counting()
            other._stop_counting()
            self._empty += other._empty
            self._measures = _merged(self._measures, other._measures)

    def describe(self) -> dict[str, Any]:
        counts = self._counts
        self._stop_counting()
        described: dict[str, Any] = {"count": self.rows - self._empty, "empty": self._empty}
        described |= self._measures.describe() if self._measures else {}
        if counts is None:
            return described | {"distinct_more_than": self._most_counted}
        often = sorted((-count, value) for value, count in counts.items())[:_SHOWN_VALUES]
        frequent = [{"value": _shown(value), "count": -count} for count, value in often]
        return described | {"distinct": len(counts), "frequent": frequent}

    def _keep_within_limit(self) -> None:
        if self._counts is not None and len(self._counts) - ("" in self._counts) > self._most_counted:
            self._stop_counting()

    def _stop_counting(self) -> None:
        if self._counts is not None:
            counts, self._counts = self._counts, None
            self._empty = counts.pop("", 0)
            self._measure([*counts], [*counts.values()])

    def _measure(self, values: Sequence[str], weights: Sequence[int] | None = None) -> None:
        """`weights`: how often each occurs, where all are different."""
        if values:
            known = self._measures.type if self._measures else "integer"
            self._measures = _merged(self._measures, measure(values, weights, known))


def measure(values: Sequence[str], weights: Sequence[int] | None = None, known: Type = "integer") -> "Measures":
    """`known`: the type of others in the column.

    Python reads more as a number than people do: `1_000`, digits of other scripts, nan and inf are text here.
    Integers of more than 64 bits are numbers.
    """
    texts, joined = (min(values), max(values)), "".join(values)
    if known == "text" or not joined.isascii() or "_" in joined:
        return Measures("text", texts)
    with suppress(ValueError):
        numbers: list[float] = [*map(int if known == "integer" else float, values)]
        low, high = min(numbers), max(numbers)
        if known == "integer" and low >= -(2**63) and high < 2**63:
            return Measures("integer", texts, (low, high), _moments(numbers, weights))
        if known == "number" and not isnan(sum(numbers)) and low > -_LARGEST and high < _LARGEST:
            return Measures("number", texts, (low, high), _moments(numbers, weights))
    return measure(values, weights, "number" if known == "integer" else "text")


def _moments(numbers: list[float], weights: Sequence[int] | None) -> Moments:
    if weights is None:
        mean = fsum(numbers) / len(numbers)
        return len(numbers), mean, dist(numbers, [mean] * len(numbers)) ** 2
    mean = fsum(number * weight for number, weight in zip(numbers, weights, strict=True)) / sum(weights)
    squares = fsum(weight * (number - mean) ** 2 for number, weight in zip(numbers, weights, strict=True))
    return sum(weights), mean, squares


class Measures(NamedTuple):
    """What is known of values that are not counted. Moments and extremes of numbers are meant for numbers alone."""

    type: Type
    texts: tuple[str, str]
    """Smallest and largest; always, because the next value may turn numbers into text."""
    numbers: tuple[float, float] = (0, 0)
    moments: Moments = (0, 0.0, 0.0)

    def describe(self) -> dict[str, Any]:
        if self.type == "text":
            return {"type": self.type, "min": _shown(self.texts[0]), "max": _shown(self.texts[1])}
        (low, high), (n, mean, squares) = self.numbers, self.moments
        deviation = {"stddev": sqrt(squares / (n - 1))} if n > 1 else {}
        return {"type": self.type, "min": low, "max": high, "mean": mean, **deviation}


def _merged(a: Measures | None, b: Measures | None) -> Measures | None:
    if a is None or b is None:
        return a or b
    found: Type = a.type if a.type > b.type else b.type
    texts = min(a.texts[0], b.texts[0]), max(a.texts[1], b.texts[1])
    if found == "text":
        return Measures(found, texts)
    numbers = min(a.numbers[0], b.numbers[0]), max(a.numbers[1], b.numbers[1])
    n, apart = a.moments[0] + b.moments[0], b.moments[1] - a.moments[1]
    squares = a.moments[2] + b.moments[2] + apart * apart * a.moments[0] * b.moments[0] / n
    return Measures(found, texts, numbers, (n, a.moments[1] + apart * b.moments[0] / n, squares))


def _shown(value: str) -> str:
    return value if len(value) <= _SHOWN_CHARS else f"{value[:_SHOWN_CHARS]}…"
