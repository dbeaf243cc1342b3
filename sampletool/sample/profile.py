"""What a column of text holds: how many values, of what type, how large, how many different, which most often.

As long as a column has few different values each is counted, and everything follows from the counts. Beyond that it is
measured as it streams by, and how many are different is no longer known. Columns of the parts of a file merge into the
columns of the file. What is kept is bounded for all columns together, and the same data gives the same profile.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from datetime import datetime
from math import dist, fsum, isnan, sqrt
from typing import Any, Literal

from sampletool.sample.csv_file import BadRow, Dialect, Part, read_rows

FORMAT = "column-profile/2"
MOST_COLUMNS = 4096
_DESCRIBED = 20
"""So many bad rows are described; the others are only counted."""
_MOST_COUNTED, _COUNTED_TOGETHER = 10_000, 80_000
"""Different values that are counted, of one column and of all together."""
_SHOWN_CHARS = 100
_SHOWN_VALUES = 5
_DATE_CHARS = [set("0123456789-:.T"), set("0123456789-:. ")]
_LARGEST = 1e140
"""What is larger is text: its square would not be a number."""

Type = Literal["integer", "number", "date", "boolean", "text"]
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
        """None when there are more different values than are counted; then the others say what was measured."""
        self._type: Type | None = None
        self._numbers: tuple[float, float] | None = None
        self._texts: tuple[str, str] | None = None
        """Smallest and largest. Those of texts always: the next value may turn numbers into text."""
        self._moments: Moments = (0, 0.0, 0.0)

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
            return
        self._stop_counting()
        other._stop_counting()
        self._empty += other._empty
        self._become(other._type)
        self._texts = _span(self._texts, other._texts)
        self._numbers = _span(self._numbers, other._numbers)
        self._moments = _merged(self._moments, other._moments)

    def describe(self) -> dict[str, Any]:
        counts = self._counts
        self._stop_counting()
        described: dict[str, Any] = {"count": self.rows - self._empty, "empty": self._empty}
        if self._type is not None:
            described["type"] = self._type
        if counts is None:
            described["distinct_more_than"] = self._most_counted
        else:
            described["distinct"] = len(counts)
        if self._numbers and self._type in ("integer", "number"):
            n, mean, squares = self._moments
            described |= {"min": self._numbers[0], "max": self._numbers[1], "mean": mean}
            described |= {"stddev": sqrt(squares / (n - 1))} if n > 1 else {}
        elif self._texts:
            described |= {"min": _shown(self._texts[0]), "max": _shown(self._texts[1])}
        if counts is not None:
            often = sorted((-count, value) for value, count in counts.items())[:_SHOWN_VALUES]
            described["frequent"] = [{"value": _shown(value), "count": -count} for count, value in often]
        return described

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
        if not values:
            return
        self._texts = _span(self._texts, (min(values), max(values)))
        if self._type != "text":
            found, numbers = read(values, self._type)
            self._become(found)
            if numbers:
                self._numbers = _span(self._numbers, (min(numbers), max(numbers)))
                self._moments = _merged(self._moments, _moments(numbers, weights))

    def _become(self, found: Type | None) -> None:
        if self._type is None or found in (None, self._type):
            self._type = self._type or found
        else:
            self._type = "number" if {self._type, found} == {"integer", "number"} else "text"


def read(values: Sequence[str], known: Type | None = None) -> tuple[Type, list[float]]:
    """The narrowest type that all of them have, and their numbers; `known`: what others have.

    Python reads more as a number than people do: `1_000`, digits of other scripts, nan and inf are text here.
    Integers of more than 64 bits are numbers. Dates are `YYYY-MM-DD`, also with a time but without an offset, all with
    `T` or all with a space, so that their order as text is their order in time.
    """
    joined = "".join(values)
    if not joined.isascii() or "_" in joined:
        return "text", []
    for wanted, convert in (("integer", int), ("number", float), ("date", datetime.fromisoformat)):
        if known not in (None, wanted, "integer" if wanted == "number" else wanted):
            continue
        try:
            found: list[Any] = list(map(convert, values))
        except ValueError:
            continue
        if wanted == "integer" and min(found) >= -(2**63) and max(found) < 2**63:
            return "integer", found
        if wanted == "number" and not isnan(sum(found)) and min(found) > -_LARGEST and max(found) < _LARGEST:
            return "number", found
        # Between date and time Python takes any character, and before it `20240101` too.
        if wanted != "date" or not {value[7:11:3] for value in values} <= {"-", "-T", "- "}:
            continue
        if joined.count("-") == 2 * len(values) and any(map(set(joined).issubset, _DATE_CHARS)):
            return "date", []
    return "boolean" if {value.lower() for value in values} <= {"true", "false"} else "text", []


def _moments(numbers: list[float], weights: Sequence[int] | None) -> Moments:
    if weights is None:
        mean = fsum(numbers) / len(numbers)
        return len(numbers), mean, dist(numbers, [mean] * len(numbers)) ** 2
    mean = fsum(number * weight for number, weight in zip(numbers, weights, strict=True)) / sum(weights)
    squares = fsum(weight * (number - mean) ** 2 for number, weight in zip(numbers, weights, strict=True))
    return sum(weights), mean, squares


def _merged(a: Moments, b: Moments) -> Moments:
    n, apart = a[0] + b[0], b[1] - a[1]
    return (n, a[1] + apart * b[0] / n, a[2] + b[2] + apart * apart * a[0] * b[0] / n) if n else a


def _span(a: Any, b: Any) -> Any:
    return (min(a[0], b[0]), max(a[1], b[1])) if a and b else a or b


def _shown(value: str) -> str:
    return value if len(value) <= _SHOWN_CHARS else f"{value[:_SHOWN_CHARS]}…"
