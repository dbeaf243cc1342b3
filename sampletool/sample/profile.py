"""What a column of text holds: how many values, of what type, how large, how different, which most often.

A column is exact as long as it has few different values: each is counted, and everything follows from the counts.
Beyond that it is measured as it streams by: moments exactly, different values by a sample of their checksums,
frequent ones with a stated error. Columns of the parts of a file merge into the columns of the file. What is kept
is bounded for all columns together, and the same data gives the same profile.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from hashlib import blake2b
from math import dist, fsum, isnan, log1p, sqrt
from typing import Any, Literal
from zlib import crc32

from sampletool.sample.csv_file import LONG_CELL, BadRow, Dialect, Part, read_rows

FORMAT_VERSION = 1
MOST_COLUMNS = 4096
DESCRIBED = 20
"""So many bad rows are described; the others are only counted."""
_ROOM = 131_072
"""Checksums that are kept for all columns together; of values that are counted, five eighths of it."""
_SHOWN_CHARS = 100
_SHOWN_VALUES = 5
_CHECKSUMS = 2**32
_MIXED = 699_053
"""Checksums of values that are alike have bits alike; their remainders by this, a prime, are mixed well."""
_DATE_CHARS = [set("0123456789-:.T"), set("0123456789-:. ")]
_LARGEST = 1e140
"""What is larger is text: its square would not be a number."""

Type = Literal["integer", "number", "date", "boolean", "text"]
Span = tuple[float, float]
Moments = tuple[int, float, float]
"""How many, their mean, and the sum of the squared distances from it."""


@dataclass
class PartProfile:
    """Of one part of a file. Lines are counted from its start."""

    columns: list["Column"]
    lines: int = 0
    skipped: int = 0
    bad_rows: list[BadRow] = field(default_factory=list)
    """The first of them."""
    stopped_at: BadRow | None = None
    can_be_skipped: bool = False

    def followed_by(self, other: "PartProfile") -> "PartProfile":
        """This part and the one behind it."""
        self.bad_rows += (BadRow(self.lines + line, reason) for line, reason in other.bad_rows)
        if other.stopped_at is not None:
            self.stopped_at = other.stopped_at._replace(line=self.lines + other.stopped_at.line)
            self.can_be_skipped = other.can_be_skipped
        self.lines += other.lines
        self.skipped += other.skipped
        for column, behind in zip(self.columns, other.columns, strict=True):
            column.merge(behind)
        return self


def profile_part(
    descriptor: int, part: Part, dialect: Dialect, width: int, *, skip: bool, check: Callable[[], None]
) -> PartProfile:
    """Every column of one part; without `skip` no further than its first bad row. `check` is called now and then."""
    profile = PartProfile([Column(_ROOM // width) for _ in range(width)])
    for batch in read_rows(descriptor, part, dialect, width):
        check()
        profile.lines = batch.lines
        if batch.bad_rows and (batch.ends_here or not skip):
            profile.can_be_skipped = not batch.ends_here
            profile.stopped_at = batch.bad_rows[-1 if skip else 0]
            break
        profile.skipped += len(batch.bad_rows)
        profile.bad_rows += batch.bad_rows[: DESCRIBED - len(profile.bad_rows)]
        for column, values in zip(profile.columns, zip(*batch.rows, strict=True), strict=bool(batch.rows)):
            column.add([shortened(value) for value in values] if batch.has_long_cells else values)
    return profile


class Column:
    """One column of one part, or of several."""

    def __init__(self, room: int) -> None:
        self.rows = 0
        self._empty = 0
        self._most_counted = min(10_000, room * 5 // 8)
        self._most_sampled = min(16_384, room)
        self._is_exact = True
        self._counts: Counter[str] = Counter()
        """Of every value; no longer exact, of those that come often, too low by no more than the error."""
        self._counts_error = 0
        self._type: Type | None = None
        self._numbers: Span | None = None
        self._texts: tuple[str, str] | None = None
        """Smallest and largest. Those of texts always: the next value may turn numbers into text."""
        self._moments: Moments = (0, 0.0, 0.0)
        self._sample: set[int] = set()
        self._mask = 0

    def add(self, values: Sequence[str]) -> None:
        self.rows += len(values)
        before = self._counts.copy() if not self._is_exact else self._counts
        self._counts.update(values)
        if empty := self._counts.pop("", 0):
            self._empty += empty
            values = [value for value in values if value]
        if not self._is_exact:
            self._measure(values)
            if len(self._counts) == len(before) + len(values):
                # None of them occurs twice, so none would be left: usual, and cheaper so.
                self._counts = before
            self._forget(1)
        self._keep_within_limits()

    def merge(self, other: "Column") -> None:
        self.rows += other.rows
        self._empty += other._empty
        if not (self._is_exact and other._is_exact):
            self._stop_counting()
            other._stop_counting()
            self._become(other._type)
            self._texts = _span(self._texts, other._texts)
            self._numbers = _span(self._numbers, other._numbers)
            self._moments = _merged(self._moments, other._moments)
            self._mask |= other._mask
            self._sample = {c for c in self._sample | other._sample if not c % _MIXED & self._mask}
        self._counts.update(other._counts)
        self._counts_error += other._counts_error
        self._keep_within_limits()

    def describe(self) -> dict[str, Any]:
        described: dict[str, Any] = {"count": self.rows - self._empty, "empty": self._empty}
        was_exact = self._is_exact
        self._stop_counting()
        if self._type is not None:
            described["type"] = self._type
        if was_exact:
            described["distinct"] = len(self._counts)
        else:
            # Some remainders are sampled, and stand for all; that different values may share a checksum is put right.
            share = len(self._sample) * _MIXED / -(-_MIXED // (self._mask + 1)) / _CHECKSUMS
            distinct = round(-_CHECKSUMS * log1p(-min(share, 0.999)))
            described["distinct"] = max(1, min(distinct, described["count"]))
            described["distinct_is_estimate"] = True
            described["distinct_error"] = round(1 / sqrt(max(1, len(self._sample))), 4)
        if self._numbers and self._type in ("integer", "number"):
            n, mean, squares = self._moments
            described |= {"min": self._numbers[0], "max": self._numbers[1], "mean": mean}
            described |= {"stddev": sqrt(squares / (n - 1))} if n > 1 else {}
        elif self._texts:
            described |= {"min": _shown(self._texts[0]), "max": _shown(self._texts[1])}
        # What is not listed occurs at most `error` times, so what is not seen more often than that tells nothing.
        often = sorted((-count, value) for value, count in self._counts.items() if count > self._counts_error)
        described["frequent"] = [{"value": _shown(value), "count": -count} for count, value in often[:_SHOWN_VALUES]]
        return described | ({} if was_exact else {"frequent_error": self._counts_error})

    def _stop_counting(self) -> None:
        if self._is_exact:
            self._is_exact = False
            self._measure(list(self._counts), list(self._counts.values()))

    def _measure(self, values: Sequence[str], weights: Sequence[int] | None = None) -> None:
        """`weights`: how often each occurs, where all are different."""
        if not values:
            return
        self._texts = _span(self._texts, (min(values), max(values)))
        if self._type != "text":
            found, numbers, span = read(values, self._type)
            self._become(found)
            if numbers:
                self._numbers = _span(self._numbers, span)
                self._moments = _merged(self._moments, _moments(numbers, weights))
        self._sample.update([c for c in map(crc32, map(str.encode, values)) if not c % _MIXED & self._mask])

    def _become(self, found: Type | None) -> None:
        if self._type is None or found in (None, self._type):
            self._type = self._type or found
        else:
            self._type = "number" if {self._type, found} == {"integer", "number"} else "text"

    def _keep_within_limits(self) -> None:
        if len(self._counts) > self._most_counted:
            self._stop_counting()
            self._forget(sorted(self._counts.values(), reverse=True)[self._most_counted])
        while len(self._sample) > self._most_sampled and self._mask < _MIXED:
            self._mask = self._mask * 2 + 1
            self._sample = {c for c in self._sample if not c % _MIXED & self._mask}

    def _forget(self, count: int) -> None:
        """Lossy counting: every count falls, and those that reach nothing are dropped."""
        self._counts_error += count
        self._counts = Counter({value: n - count for value, n in self._counts.items() if n > count})


def read(values: Sequence[str], known: Type | None = None) -> tuple[Type, list[float], Span | None]:
    """The narrowest type that all of them have, their numbers, and the span of these; `known`: what others have.

    Python reads more as a number than people do: `1_000`, digits of other scripts, nan and inf are text here.
    Integers of more than 64 bits are numbers. Dates are `YYYY-MM-DD`, also with a time but without an offset, all with
    `T` or all with a space, so that their order as text is their order in time.
    """
    joined = "".join(values)
    if not joined.isascii() or "_" in joined:
        return "text", [], None
    for wanted, convert in (("integer", int), ("number", float), ("date", datetime.fromisoformat)):
        if known not in (None, wanted, "integer" if wanted == "number" else wanted):
            continue
        try:
            found: list[Any] = list(map(convert, values))
        except ValueError:
            continue
        span = (min(found), max(found)) if wanted != "date" else (0, 0)
        if wanted == "integer" and span[0] >= -(2**63) and span[1] < 2**63:
            return "integer", found, span
        if wanted == "number" and not isnan(sum(found)) and span[0] > -_LARGEST and span[1] < _LARGEST:
            return "number", found, span
        # Between date and time Python takes any character, and before it `20240101` too.
        if wanted != "date" or not {value[7:11:3] for value in values} <= {"-", "-T", "- "}:
            continue
        if joined.count("-") == 2 * len(values) and any(map(set(joined).issubset, _DATE_CHARS)):
            return "date", [], None
    return "boolean" if {value.lower() for value in values} <= {"true", "false"} else "text", [], None


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


def shortened(value: str) -> str:
    """Of a long cell only the beginning is kept, and a digest that keeps different ones different."""
    if len(value) <= LONG_CELL:
        return value
    return f"{value[:_SHOWN_CHARS]}…{blake2b(value.encode(), digest_size=8).hexdigest()}"


def _shown(value: str) -> str:
    return value if len(value) <= _SHOWN_CHARS else f"{value[:_SHOWN_CHARS]}…"
