"""CSV in, a profile of every column out: streaming, in parallel, and never over somebody else's result."""

import os
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import IO, Annotated, Any, Literal

import typer

from sampletool.kit.context import AT_ONCE, Context
from sampletool.kit.contract.command_spec import CommandSpec
from sampletool.kit.contract.errors import InvalidValues, Mistake
from sampletool.kit.contract.file_errors import InputChanged, OutputExists, UnsafePath
from sampletool.kit.contract.text import counted
from sampletool.kit.global_options import DryRunOption, JobsOption
from sampletool.kit.safety.atomic_file import must_be_writable
from sampletool.kit.safety.output import Result, forecast, lock_path, publish
from sampletool.kit.safety.places import session_root
from sampletool.sample.commands._csv_inputs import Source, open_sources, read_dialect
from sampletool.sample.commands._csv_profile import BadRow, OnError, Total, new_spool, profile
from sampletool.sample.csv_ranges import Dialect, Range, survey
from sampletool.sample.errors import InvalidCsv, ProcessPartial, WorkerLost
from sampletool.sample.input_file import STDIN, InputFile
from sampletool.sample.profile import FORMAT_VERSION

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


def process(
    context: Context,
    names: list[str],
    output: str | None,
    dialect: Dialect,
    *,
    on_error: OnError,
    overwrite: bool = False,
    dry_run: bool = False,
) -> Processed:
    with ExitStack() as stack:
        sources = open_sources(context, names, dialect, stack)
        spool = stack.enter_context(new_spool(sum(len(source.header[0]) for source in sources)))
        path = output_path(context, output, [source.file for source in sources], dry_run=dry_run)
        surveys: list[tuple[str, list[Range]]] = []

        def identify() -> dict[str, Any]:
            files = [source.file for source in sources]
            surveys[:] = [survey(file.descriptor, file.size, dialect, context.signals.check) for file in files]
            return {
                "format": f"column-profile/{FORMAT_VERSION}",
                "inputs": [sha256 for sha256, _ in surveys],
                "options": {**asdict(dialect), "on_error": on_error},
            }

        def compute() -> Result:
            try:
                totals = profile(context, sources, [parts for _, parts in surveys], dialect, on_error, spool)
            except InvalidCsv:
                _must_be_unchanged(sources)
                raise
            _must_be_unchanged(sources)
            return Result({"inputs": [total.summary() for total in totals]}, "columns", _items(sources, totals, spool))

        if dry_run:
            published = forecast(path, identify, overwrite=overwrite)
        else:
            with context.hold(lock_path(path), f"output {path}", "exclusive", AT_ONCE) as hold:
                published = publish(path, identify, compute, overwrite=overwrite)
                hold.did_work = published.effect != "unchanged"
    known = published.about.get("inputs", [{}] * len(sources))
    tables = [
        Table(source.file.path, sha256, len(source.header[0]), **{**about, "bad_rows": _bad_rows(about)})
        for source, (sha256, _), about in zip(sources, surveys, known, strict=True)
    ]
    done = Processed(published.effect, str(path), tables)
    if skipped := sum(table.skipped or 0 for table in tables):
        raise ProcessPartial(skipped=skipped, data=done)
    return done


def _must_be_unchanged(sources: list[Source]) -> None:
    for source in sources:
        source.file.must_be_unchanged()


def output_path(context: Context, output: str | None, files: list[InputFile], *, dry_run: bool) -> Path:
    """Where the result goes; whatever can be said against it is said before the work."""
    if output is None:
        directory = session_root() / context.session_id if dry_run else context.session_directory
        return directory / "result.json"
    named = Path(os.path.abspath(output))
    path = Path(os.path.realpath(named.parent)) / named.name
    if not output or not path.name or path.name.startswith("-") or not path.name.isprintable():
        raise UnsafePath(output, "that is not a name for a file")
    must_be_writable(path)
    if any(file.is_at(path) for file in files):
        raise UnsafePath(str(path), "it is one of the inputs")
    return path


def _items(sources: list[Source], totals: list[Total], spool: IO[bytes]) -> Iterator[dict[str, Any]]:
    for number, (source, total) in enumerate(zip(sources, totals, strict=True), 1):
        names = source.header[0]
        for position, (name, facts) in enumerate(zip(names, total.described(spool, len(names)), strict=True), 1):
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
    dry_run: DryRunOption = False,
) -> Processed:
    """Profile the columns of CSV files.

    How many values, their type, extremes, mean, and how many are different. The result is a JSON file in the session,
    or at --output. The same inputs and options again are `unchanged`.
    """
    context: Context = ctx.obj
    if jobs is not None:
        context.options["jobs"] = jobs
    names = [*(inputs or ()), *(more or ())]
    if not names:
        raise InvalidValues(Mistake("--input", "MISSING", "Missing option '--input'", suggestion="Name a CSV file."))
    if names.count(STDIN) > 1:
        raise InvalidValues(Mistake("--input", "INVALID_VALUE", "stdin can be read only once", STDIN))
    dialect = read_dialect(delimiter, encoding)
    return process(context, names, output, dialect, on_error=on_error, overwrite=overwrite, dry_run=dry_run)
