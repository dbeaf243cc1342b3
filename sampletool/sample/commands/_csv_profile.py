"""The columns of CSV files, profiled by worker processes and put together range by range."""

import io
import json
import os
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from typing import IO, Any, Literal

from sampletool.kit.context import Context
from sampletool.kit.terminal import Progress
from sampletool.sample.commands._csv_inputs import Source, advice
from sampletool.sample.csv_ranges import DESCRIBED, Dialect, Range, Reading
from sampletool.sample.errors import InvalidCsv
from sampletool.sample.profile import Column, profile_range
from sampletool.sample.workers import Check, workers

OnError = Literal["stop", "skip"]
_FEW_COLUMNS = 8192
_SKIP_ADVICE = "Correct it, name its --encoding or --delimiter, or leave bad rows out with --on-error skip."
_CUT_ADVICE = "Correct it, or name its --encoding or --delimiter; --on-error skip cannot leave it out."


@dataclass(frozen=True)
class BadRow:
    line: int
    reason: str


@dataclass
class Total:
    """What is known about one input after the ranges that have been merged."""

    lines: int = 0
    rows: int = 0
    skipped: int = 0
    bad_rows: list[BadRow] = field(default_factory=list)
    columns: list[Column] = field(default_factory=list)
    described_at: int = 0
    """Once all are merged: where in the spool, a line each. With many inputs there is no room for them in memory."""

    def add(self, reading: Reading, columns: Iterator[Column], source: Source) -> None:
        bad_rows = [BadRow(self.lines + line, reason) for line, reason in reading.bad_rows]
        if reading.is_cut_short:
            usual = _SKIP_ADVICE if reading.can_be_skipped else _CUT_ADVICE
            line, reason = bad_rows[-1].line, bad_rows[-1].reason
            raise InvalidCsv(path=source.file.path, line=line, reason=reason, suggestion=advice(source.file, usual))
        self.skipped += reading.skipped
        self.bad_rows = (self.bad_rows + bad_rows)[:DESCRIBED]
        self.lines += reading.lines
        if self.columns:
            for column, other in zip(self.columns, columns, strict=True):
                column.merge(other)
        else:
            self.columns = list(columns)

    def finish(self, spool: IO[bytes]) -> None:
        self.rows = self.columns[0].rows
        self.described_at = spool.seek(0, os.SEEK_END)
        while self.columns:
            spool.write(json.dumps(self.columns.pop(0).describe()).encode() + b"\n")

    def described(self, spool: IO[bytes], width: int) -> Iterator[dict[str, Any]]:
        spool.seek(self.described_at)
        return (json.loads(spool.readline()) for _ in range(width))

    def summary(self) -> dict[str, Any]:
        bad_rows = [asdict(row) for row in self.bad_rows]
        return {"rows": self.rows, "skipped": self.skipped, "bad_rows": bad_rows}


def new_spool(columns: int) -> IO[bytes]:
    """Where columns are kept once they are described: in memory if they are few."""
    if columns <= _FEW_COLUMNS:
        return io.BytesIO()
    from tempfile import TemporaryFile

    return TemporaryFile()


def profile(
    context: Context,
    sources: list[Source],
    ranges: list[list[Range]],
    dialect: Dialect,
    on_error: OnError,
    spool: IO[bytes],
) -> list[Total]:
    """What is known about every input, by workers that each take some of the ranges."""
    totals = [Total() for _ in sources]

    def work(task: tuple[int, Range], check: Check) -> Iterator[Reading | Column]:
        source = sources[task[0]]
        reading, columns = profile_range(
            source.file.descriptor, task[1], dialect, source.header, stop=on_error == "stop", check=check
        )
        yield reading
        yield from columns

    tasks = [(number, part) for number, parts in enumerate(ranges) for part in parts]
    with Progress(context, "process", sum(source.file.size for source in sources)) as progress:
        while tasks:
            misled: set[int] = set()
            done = 0
            with workers(tasks, work, context.jobs(), context.signals) as results:
                for (number, part), pieces in results:
                    reading: Reading = next(pieces)
                    if reading.ends_open:
                        misled.add(number)
                    if number in misled:
                        for _ in pieces:
                            pass
                        continue
                    totals[number].add(reading, pieces, sources[number])
                    if part.is_last:
                        totals[number].finish(spool)
                    done += part.end - part.start
                    progress.show(done)
            # A stray quote had them cut inside a cell: whole, they are read right.
            for number in misled:
                totals[number] = Total()
            tasks = [(number, Range(0, sources[number].file.size)) for number in sorted(misled)]
    return totals
