"""CSV in, a profile of every column out: streaming, in parallel, and never over somebody else's result."""

import json
import os
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from sampletool.kit.context import AT_ONCE, Context
from sampletool.kit.contract.command_spec import CommandSpec
from sampletool.kit.contract.errors import InvalidValues, Mistake
from sampletool.kit.contract.file_errors import OutputExists, UnsafePath
from sampletool.kit.contract.table import Line, heads
from sampletool.kit.contract.text import counted
from sampletool.kit.global_options import DryRunOption
from sampletool.kit.safety.places import session_root
from sampletool.sample.commands._options import JobsOption
from sampletool.sample.csv_file import Dialect, Part, survey
from sampletool.sample.csv_inputs import Source, invalid_csv, open_sources, read_dialect
from sampletool.sample.errors import InputChanged, InvalidCsv, ProcessPartial, WorkerLost
from sampletool.sample.input_file import STDIN
from sampletool.sample.output import Result, forecast, lock_path, must_be_writable, publish
from sampletool.sample.profile import FORMAT_VERSION, PartProfile, profile_part
from sampletool.sample.progress import Progress
from sampletool.sample.workers import Check, workers

spec = CommandSpec(
    effect="outputs",
    errors=(InvalidCsv, InputChanged, OutputExists, ProcessPartial, WorkerLost),
    locks=("session", "output"),
    examples=(
        "process --input data.csv --session-id demo",
        "process --input a.csv b.csv --output profile.json",
        "process --input - --delimiter tab --on-error skip",
    ),
)
_SKIP_ADVICE = "Correct it, name its --encoding or --delimiter, or leave bad rows out with --on-error skip."
_CUT_ADVICE = "Correct it, or name its --encoding or --delimiter; --on-error skip cannot leave it out."
_SHOWN_BYTES = 48 * 1024
"""Of all columns in an answer, which is at most 64 KiB; the result has all of them."""

OnError = Literal["stop", "skip"]


@dataclass(frozen=True)
class Table:
    """What the answer says about one input."""

    input: str
    sha256: str
    columns: int
    rows: int
    skipped: int
    bad_rows: list[dict[str, Any]] | None
    profile: list[dict[str, Any]] = field(default_factory=list)


@dataclass(frozen=True)
class Processed:
    effect: Literal["created", "updated", "unchanged"]
    output: str
    inputs: list[Table]

    def lines(self) -> list[Line]:
        lines: list[Line] = [] if self.output == STDIN else [f"{self.output}: {self.effect}"]
        for table in self.inputs:
            lines.append(f"  {table.input}: {counted(table.rows, 'row')}, {counted(table.columns, 'column')}")
            lines += [f"    left out: line {row['line']}, {row['reason']}" for row in table.bad_rows or ()]
            lines += _as_table(table.profile)
        return lines


def process(
    context: Context,
    names: list[str],
    output: str | None,
    dialect: Dialect,
    *,
    on_error: OnError,
    jobs: int,
    overwrite: bool = False,
    dry_run: bool = False,
) -> Processed:
    """A dry run does all the work, and publishes nothing."""
    with ExitStack() as stack:
        sources = open_sources(context, names, dialect, stack)
        path = None if output == "-" else _output_path(context, output, sources, dry_run=dry_run)
        if path is not None and not dry_run:
            hold = stack.enter_context(context.hold(lock_path(path), f"output {path}", "exclusive", AT_ONCE))
        progress = stack.enter_context(Progress(context, "input", sum(source.file.size for source in sources)))
        surveys = [survey(file.descriptor, file.size, dialect, progress.beat) for file, _ in sources]
        identity = {
            "format": f"column-profile/{FORMAT_VERSION}",
            "inputs": [sha256 for sha256, _ in surveys],
            "options": {**asdict(dialect), "on_error": on_error},
        }
        columns: Iterable[dict[str, Any]] = ()

        def compute() -> Result:
            nonlocal columns
            parts = [parts for _, parts in surveys]
            result = _profile(context, sources, parts, dialect, jobs, progress, skip=on_error == "skip")
            columns = result.items
            return result

        effect: Literal["created", "updated", "unchanged"] = "unchanged"
        if path is None:
            about = compute().summary
        elif dry_run:
            published = forecast(path, lambda: identity, overwrite=overwrite)
            effect, about = published.effect, published.about
            if effect != "unchanged":
                about = compute().summary
        else:
            published = publish(path, lambda: identity, compute, overwrite=overwrite)
            effect, about = published.effect, published.about
            hold.did_work = effect != "unchanged"
    tables = [
        Table(file.path, sha256, len(header), known["rows"], known["skipped"], known["bad_rows"] or None)
        for (file, header), (sha256, _), known in zip(sources, surveys, about["inputs"], strict=True)
    ]
    if path is not None and effect == "unchanged":
        columns = _read_columns(path)
    _show(context, tables, columns, limit=None if path is None else _SHOWN_BYTES)
    done = Processed(effect, output if path is None and output else str(path), tables)
    if skipped := sum(table.skipped for table in tables):
        raise ProcessPartial(skipped=skipped, data=done)
    return done


def _profile(
    context: Context,
    sources: list[Source],
    parts: list[list[Part]],
    dialect: Dialect,
    jobs: int,
    progress: Progress,
    *,
    skip: bool,
) -> Result:
    """By workers that each take some of the parts; an input is described as soon as its last part is there."""

    def work(task: tuple[int, Part], check: Check) -> PartProfile:
        file, header = sources[task[0]]
        return profile_part(file.descriptor, task[1], dialect, len(header), skip=skip, check=check)

    about: list[dict[str, Any]] = []
    columns: list[dict[str, Any]] = []
    total: PartProfile | None = None
    tasks = [(number, part) for number, of_one in enumerate(parts) for part in of_one]
    with workers(tasks, work, jobs, context.signals, progress.beat) as results:
        for (number, part), profile in zip(tasks, results, strict=True):
            total = total.followed_by(profile) if total else profile
            progress.done += part.end - part.start
            file, header = sources[number]
            if bad_row := total.stopped_at:
                _must_be_unchanged(sources)
                raise invalid_csv(
                    file, bad_row.line, bad_row.reason, _SKIP_ADVICE if total.can_be_skipped else _CUT_ADVICE
                )
            if part.end == file.size:
                bad_rows = [bad_row._asdict() for bad_row in total.bad_rows]
                about.append({"rows": total.columns[0].rows, "skipped": total.skipped, "bad_rows": bad_rows})
                for position, (name, column) in enumerate(zip(header, total.columns, strict=True), 1):
                    columns.append({"input": number + 1, "position": position, "name": name, **column.describe()})
                total = None
    _must_be_unchanged(sources)
    return Result({"inputs": about}, "columns", columns)


def _must_be_unchanged(sources: list[Source]) -> None:
    for source in sources:
        source.file.must_be_unchanged()


def _read_columns(path: Path) -> Iterator[dict[str, Any]]:
    """A result has one column on each line."""
    with path.open() as file:
        for line in file:
            if line.startswith('{"input":'):
                yield json.loads(line.rstrip(",]\n"))


def _show(context: Context, tables: list[Table], columns: Iterable[dict[str, Any]], limit: int | None) -> None:
    """Put the columns into the answer, as far as there is room."""
    used = 0
    for column in columns:
        used += len(json.dumps(column))
        if limit is not None and used > limit:
            context.meta["truncated"] = True
            context.warn("TRUNCATED", "Not all columns are shown; the output has them, and --output - shows them.")
            return
        tables[column["input"] - 1].profile.append(column)


def _as_table(columns: list[dict[str, Any]]) -> Iterator[Line]:
    """One line for each column."""
    if columns:
        yield heads("column", "type", "count", "empty", "distinct", "min", "max", "mean", "most frequent")
    for column in columns:
        distinct = f"{'~' if column.get('distinct_is_estimate') else ''}{column['distinct']}"
        cells = [column["name"], column.get("type", "-"), column["count"], column["empty"], distinct]
        for cell in map(column.get, ("min", "max", "mean")):
            cells.append(f"{cell:.6g}" if isinstance(cell, float) else "" if cell is None else cell)
        frequent = "".join(f"{entry['value']} ({entry['count']})" for entry in column["frequent"][:1])
        yield (*map(str, cells), frequent)


def _output_path(context: Context, output: str | None, sources: list[Source], *, dry_run: bool) -> Path:
    """Where the result goes; what can be said against it is said before the work."""
    if output is None:
        directory = session_root() / context.session_id if dry_run else context.session_directory
        return directory / "result.json"
    named = Path(os.path.abspath(output))
    path = Path(os.path.realpath(named.parent)) / named.name
    if not output or not path.name or path.name.startswith("-") or not path.name.isprintable():
        raise UnsafePath(output, "that is not a name for a file")
    must_be_writable(path)
    if any(source.file.is_at(path) for source in sources):
        raise UnsafePath(str(path), "it is one of the inputs")
    return path


def command(
    ctx: typer.Context,
    inputs: Annotated[
        list[str] | None, typer.Option("--input", metavar="CSV...", help="A file, or `-` for stdin.")
    ] = None,
    more: Annotated[list[str] | None, typer.Argument(metavar="[CSV]...", help="Inputs, as with --input.")] = None,
    output: Annotated[
        str | None,
        typer.Option(
            metavar="FILE", help="Where to write; `-` for the answer alone.  [default: result.json in the session]"
        ),
    ] = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace what is at the output's path.")] = False,
    delimiter: Annotated[str, typer.Option(metavar="CHAR", help="What separates cells; `tab` for a tab.")] = ",",
    encoding: Annotated[str, typer.Option(metavar="NAME", help="Such as utf-8, latin-1, utf-16.")] = "utf-8",
    on_error: Annotated[OnError, typer.Option(help="At a bad row: stop, or skip it and count it.")] = "stop",
    jobs: JobsOption = None,
    dry_run: DryRunOption = False,
) -> Processed:
    """Profile the columns of CSV files.

    How many values, their type, extremes, mean, and how many are different. The result is a JSON file in the session,
    or at --output. The same inputs and options again are `unchanged`.
    """
    context: Context = ctx.obj
    names = [*(inputs or ()), *(more or ())]
    if not names:
        raise InvalidValues(Mistake("--input", "MISSING", "Missing option '--input'", suggestion="Name a CSV file."))
    if names.count(STDIN) > 1:
        raise InvalidValues(Mistake("--input", "INVALID_VALUE", "stdin can be read only once", STDIN))
    dialect = read_dialect(delimiter, encoding)
    at_once = jobs or context.jobs()
    return process(
        context, names, output, dialect, on_error=on_error, jobs=at_once, overwrite=overwrite, dry_run=dry_run
    )
