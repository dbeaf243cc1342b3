"""CSV in, a profile of every column out: streaming, in parallel, and never over somebody else's result."""

import os
from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from sampletool.commands._csv_inputs import Source, advice, open_sources, read_dialect
from sampletool.contract.errors import InvalidValues, Mistake
from sampletool.contract.exit_status import ExitStatus
from sampletool.contract.file_errors import FileNotFound, PermissionDenied, UnsafePath
from sampletool.contract.printable import counted
from sampletool.contract.process_errors import InvalidCsv, ProcessPartial
from sampletool.contract.promise import Promise
from sampletool.domain.csv_ranges import DESCRIBED, Dialect, Range, Reading, survey
from sampletool.domain.profile import FORMAT_VERSION, Column, profile_range
from sampletool.options import JobsOption
from sampletool.progress import Progress
from sampletool.safety.input_file import STDIN, InputFile
from sampletool.safety.output import Result, forecast, publish
from sampletool.safety.places import session_root
from sampletool.safety.workers import Check, workers
from sampletool.wiring import AT_ONCE, Wiring

promise = Promise(
    effect="outputs",
    ends_with=(
        ExitStatus.PARTIAL,
        ExitStatus.PRECONDITION,
        ExitStatus.NOT_FOUND,
        ExitStatus.CONFLICT,
        ExitStatus.PERMISSION,
        ExitStatus.LOCK_HELD,
    ),
    locks=("session", "output"),
    examples=(
        "tool process --input data.csv --session-id demo",
        "tool process --input a.csv b.csv --output profile.json",
        "tool process --input - --delimiter tab --on-error skip",
    ),
)

OnError = Literal["stop", "skip"]


@dataclass(frozen=True)
class BadRow:
    line: int
    reason: str


@dataclass(frozen=True)
class Table:
    """What is told about one input; in a forecast not yet how many rows it has."""

    input: str
    sha256: str
    columns: int
    rows: int | None = None
    skipped: int | None = None
    bad_rows: list[BadRow] | None = None


@dataclass(frozen=True)
class Processed:
    effect: Literal["created", "updated", "unchanged"]
    output: str
    inputs: list[Table]

    def lines(self) -> list[str]:
        told = [f"{self.output}: {self.effect}"]
        for table in self.inputs:
            rows = "" if table.rows is None else f"{counted(table.rows, 'row')}, "
            told.append(f"  {table.input}: {rows}{counted(table.columns, 'column')}")
            told += [f"    left out: line {row.line}, {row.reason}" for row in table.bad_rows or ()]
        return told


@dataclass
class Total:
    """What is known about one input after the ranges that have been merged."""

    lines: int = 0
    rows: int = 0
    skipped: int = 0
    bad_rows: list[BadRow] = field(default_factory=list)
    columns: list[Column] = field(default_factory=list)
    described: list[dict[str, Any]] = field(default_factory=list)
    """Once all are merged: with many inputs there is no room for the columns themselves."""

    def finish(self) -> None:
        self.rows = self.columns[0].rows
        while self.columns:
            self.described.append(self.columns.pop(0).describe())


def process(
    wiring: Wiring,
    names: list[str],
    output: str | None,
    dialect: Dialect,
    *,
    on_error: OnError,
    overwrite: bool = False,
    dry_run: bool = False,
) -> Processed:
    with ExitStack() as stack:
        sources = open_sources(wiring, names, dialect, stack)
        path = output_path(wiring, output, [source.file for source in sources], dry_run=dry_run)
        surveys: list[tuple[str, list[Range]]] = []

        def identify() -> dict[str, Any]:
            files = [source.file for source in sources]
            surveys[:] = [survey(file.descriptor, file.size, dialect, wiring.signals.check) for file in files]
            return {
                "format": f"column-profile/{FORMAT_VERSION}",
                "inputs": [sha256 for sha256, _ in surveys],
                "options": {**asdict(dialect), "on_error": on_error},
            }

        def compute() -> Result:
            totals = profile(wiring, sources, [parts for _, parts in surveys], dialect, on_error)
            for source in sources:
                source.file.must_be_unchanged()
            return Result({"inputs": [_summary(total) for total in totals]}, "columns", _items(sources, totals))

        def hold(lock: Path, name: str) -> AbstractContextManager[object]:
            return wiring.hold(lock, name, "exclusive", AT_ONCE)

        if dry_run:
            wiring.meta["dry_run"] = True
            published = forecast(path, identify, overwrite=overwrite)
        else:
            published = publish(path, identify, compute, hold, overwrite=overwrite)
    known = published.about.get("inputs", [{}] * len(sources))
    tables = [
        Table(source.file.path, sha256, len(source.header[0]), **{**about, "bad_rows": _bad_rows(about)})
        for source, (sha256, _), about in zip(sources, surveys, known, strict=True)
    ]
    done = Processed(published.effect, str(path), tables)
    if skipped := sum(table.skipped or 0 for table in tables):
        raise ProcessPartial(skipped, done)
    return done


def output_path(wiring: Wiring, output: str | None, files: list[InputFile], *, dry_run: bool) -> Path:
    """Where the result goes; whatever can be said against it is said before the work."""
    if output is None:
        directory = session_root() / wiring.session_id if dry_run else wiring.session_directory
        return directory / "result.json"
    named = Path(os.path.abspath(output))
    path = Path(os.path.realpath(named.parent)) / named.name
    if not output or not path.name or path.name.startswith("-") or not path.name.isprintable():
        raise UnsafePath(output, "that is not a name for a file")
    if not path.parent.is_dir():
        raise FileNotFound(str(path.parent))
    if not os.access(path.parent, os.W_OK | os.X_OK):
        raise PermissionDenied(str(path.parent), "nothing can be written here")
    if any(file.is_at(path) for file in files):
        raise UnsafePath(str(path), "it is one of the inputs")
    return path


def profile(
    wiring: Wiring, sources: list[Source], ranges: list[list[Range]], dialect: Dialect, on_error: OnError
) -> list[Total]:
    """The columns of every input, by worker processes that each take some of the ranges."""
    totals = [Total() for _ in sources]

    def work(task: tuple[int, Range], check: Check) -> Iterator[Reading | Column]:
        source = sources[task[0]]
        reading, columns = profile_range(
            source.file.descriptor, task[1], dialect, source.header, stop=on_error == "stop", check=check
        )
        yield reading
        yield from columns

    jobs = wiring.settings.value("jobs") or os.cpu_count() or 1
    tasks = [(number, part) for number, parts in enumerate(ranges) for part in parts]
    with Progress(wiring, "process", sum(source.file.size for source in sources)) as progress:
        while tasks:
            misled: set[int] = set()
            done = 0
            with workers(tasks, work, jobs, wiring.signals) as results:
                for (number, part), pieces in results:
                    reading: Reading = next(pieces)
                    if reading.ends_open:
                        misled.add(number)
                    if number in misled:
                        for _ in pieces:
                            pass
                        continue
                    _add(totals[number], reading, pieces, sources[number].file)
                    if part.is_last:
                        totals[number].finish()
                    done += part.end - part.start
                    progress.show(done)
            # A stray quote had them cut inside a cell: whole, they are read right.
            for number in misled:
                totals[number] = Total()
            tasks = [(number, Range(0, sources[number].file.size)) for number in sorted(misled)]
    return totals


def _add(total: Total, reading: Reading, columns: Iterator[Column], file: InputFile) -> None:
    bad_rows = [BadRow(total.lines + line, reason) for line, reason in reading.bad_rows]
    if reading.is_cut_short:
        raise InvalidCsv(file.path, bad_rows[-1].line, bad_rows[-1].reason, advice(file))
    total.skipped += reading.skipped
    total.bad_rows = (total.bad_rows + bad_rows)[:DESCRIBED]
    total.lines += reading.lines
    if total.columns:
        for column, other in zip(total.columns, columns, strict=True):
            column.merge(other)
    else:
        total.columns = list(columns)


def _summary(total: Total) -> dict[str, Any]:
    bad_rows = [asdict(row) for row in total.bad_rows]
    return {"rows": total.rows, "skipped": total.skipped, "bad_rows": bad_rows}


def _items(sources: list[Source], totals: list[Total]) -> Iterator[dict[str, Any]]:
    for number, (source, total) in enumerate(zip(sources, totals, strict=True), 1):
        for position, (name, facts) in enumerate(zip(source.header[0], total.described, strict=True), 1):
            yield {"input": number, "position": position, "name": name, **facts}


def _bad_rows(about: dict[str, Any]) -> list[BadRow] | None:
    return [BadRow(**row) for row in about["bad_rows"]] if about.get("bad_rows") else None


def command(
    ctx: typer.Context,
    inputs: Annotated[
        list[str] | None, typer.Option("--input", metavar="CSV...", help="A file, or `-` for stdin.")
    ] = None,
    more: Annotated[list[str] | None, typer.Argument(metavar="[CSV]...", help="Inputs, as with --input.")] = None,
    output: Annotated[
        str | None, typer.Option(metavar="FILE", help="Where to write.  [default: result.json in the session]")
    ] = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace what is at the output's path.")] = False,
    delimiter: Annotated[str, typer.Option(metavar="CHAR", help="What separates cells; `tab` for a tab.")] = ",",
    encoding: Annotated[str, typer.Option(metavar="NAME", help="Such as utf-8, latin-1, utf-16.")] = "utf-8",
    on_error: Annotated[OnError, typer.Option(help="At a bad row: stop, or skip it and count it.")] = "stop",
    jobs: JobsOption = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Say what would be written; write nothing.")] = False,
) -> Processed:
    """Profile the columns of CSV files.

    How many values, their type, extremes, mean, and how many are different. The result is a JSON file in the session,
    or at --output. The same inputs and options again are `unchanged`.
    """
    wiring: Wiring = ctx.obj
    if jobs is not None:
        wiring.options["jobs"] = jobs
    names = [*(inputs or ()), *(more or ())]
    if not names:
        raise InvalidValues(Mistake("--input", "MISSING", "Missing option '--input'", suggestion="Name a CSV file."))
    if names.count(STDIN) > 1:
        raise InvalidValues(Mistake("--input", "INVALID_VALUE", "stdin can be read only once", STDIN))
    dialect = read_dialect(delimiter, encoding)
    return process(wiring, names, output, dialect, on_error=on_error, overwrite=overwrite, dry_run=dry_run)
