"""CSV in, a profile of every column out: streaming, in parallel, and never over somebody else's result."""

import json
import os
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing
from dataclasses import dataclass, field
from math import inf
from pathlib import Path
from typing import Annotated, Any

import typer

from sampletool.kit.context import AT_ONCE, Context
from sampletool.kit.contract.answer import UNTRUSTED
from sampletool.kit.contract.command_spec import CommandSpec
from sampletool.kit.contract.errors import InvalidValues, Mistake
from sampletool.kit.contract.file_errors import FileNotFound, OutputExists, PermissionDenied, UnsafePath
from sampletool.kit.contract.mistyped import check_path
from sampletool.kit.contract.table import Line, heads
from sampletool.kit.contract.text import counted, printable_data
from sampletool.kit.global_options import DryRunOption, strictly
from sampletool.kit.safety.places import session_root
from sampletool.sample.commands._options import JobsOption
from sampletool.sample.csv_file import Dialect, OnError, Part, survey
from sampletool.sample.errors import InputChanged, InvalidCsv, ProcessPartial, WorkerLost
from sampletool.sample.inputs import STDIN, Input, open_inputs
from sampletool.sample.output import OutputEffect, Result, lock_path, look, publish
from sampletool.sample.profile import FORMAT, PartProfile, profile_part
from sampletool.sample.progress import Progress
from sampletool.sample.workers import Check, results_of

spec = CommandSpec(
    effect="outputs",
    errors=(InvalidCsv, InputChanged, OutputExists, ProcessPartial, WorkerLost),
    locks=("session", "output"),
    at_once=("output",),
    reads=("files", "stdin"),
    destroys="With --overwrite, what is at the output's path.",
    before=("init .",),
    examples=(
        "process --input data/sales.csv --session-id demo",
        "process --input data/*.csv --output profile.json",
        "cat data/sales.csv | process --input - --output - --on-error skip",
    ),
)
_SHOWN_BYTES = 48 * 1024
"""Of all columns in an answer, which is at most 64 KiB; the result has all of them."""
_SKIP_ADVICE = "Correct it, name its --delimiter, convert it to UTF-8, or leave bad rows out with --on-error skip."


@dataclass(frozen=True)
class Table:
    """What the answer says about one input."""

    input: str
    sha256: str
    columns: int
    rows: int
    skipped: int
    bad_rows: Annotated[list[dict[str, Any]], UNTRUSTED]
    profile: Annotated[list[dict[str, Any]], UNTRUSTED] = field(default_factory=list)


@dataclass(frozen=True)
class Processed:
    effect: OutputEffect
    output: str
    inputs: list[Table]

    def lines(self) -> list[Line]:
        lines: list[Line] = [] if self.output == STDIN else [f"{self.output}: {self.effect}"]
        for table in self.inputs:
            lines.append(f"  {table.input}: {counted(table.rows, 'row')}, {counted(table.columns, 'column')}")
            lines += [f"    left out: line {row['line']}, {row['reason']}" for row in table.bad_rows]
            lines += _as_table(table.profile) if table.profile else []
        return lines


def process(
    context: Context,
    names: list[str],
    output: str | None,
    dialect: Dialect,
    jobs: int,
    *,
    overwrite: bool,
    dry_run: bool,
) -> Processed:
    """A dry run does all the work, and publishes nothing."""
    effect: OutputEffect = "unchanged"
    result: Result | None = None
    with ExitStack() as stack:
        inputs = open_inputs(names, dialect, context.signals, stack)
        path = None if output == STDIN else _output_path(context, output, inputs, dry_run=dry_run)
        if path is not None and not dry_run:
            hold = stack.enter_context(context.hold(lock_path(path), f"output {path}", "exclusive", AT_ONCE))
        progress = stack.enter_context(Progress(context, "input", sum(file.found.st_size for file in inputs)))
        surveys = [survey(file.descriptor, file.found.st_size, progress.beat) for file in inputs]
        digests = [sha256 for sha256, _ in surveys]
        identity = {"format": FORMAT, "inputs": digests, "options": dialect._asdict()}
        if path is not None:
            effect, result = look(path, identity, overwrite=overwrite)
        if result is None:
            result = Result({"identity": identity, "inputs": []}, [])
            for number, (file, (_, parts)) in enumerate(zip(inputs, surveys, strict=True), 1):
                total = _profile(context, file, parts, dialect, jobs, progress)
                result.about["inputs"].append(total.describe())
                for position, (name, column) in enumerate(zip(file.header, total.columns, strict=True), 1):
                    facts = {"input": number, "position": position, "name": name, **column.describe()}
                    result.columns.append(facts)
            if path is not None and not dry_run:
                effect = publish(path, result, overwrite=overwrite)
                hold.did_work = True
    known_of = zip(inputs, digests, result.about["inputs"], strict=True)
    tables = [Table(file.path, sha256, len(file.header), **known) for file, sha256, known in known_of]
    _show(context, tables, result.columns, _SHOWN_BYTES if path else inf)
    done = Processed(effect, str(path or STDIN), tables)
    if skipped := sum(table.skipped for table in tables):
        raise ProcessPartial(skipped=skipped, data=done)
    return done


def _profile(
    context: Context, file: Input, parts: list[Part], dialect: Dialect, jobs: int, progress: Progress
) -> PartProfile:
    """Of one input, by workers that take a part of it each."""

    def work(part: Part, check: Check) -> PartProfile:
        return profile_part(file.descriptor, part, dialect, len(file.header), check)

    total = PartProfile(len(file.header))
    progress.running = {file.path: time.monotonic()}
    with closing(results_of(parts, work, jobs, context.signals, progress.beat)) as results:
        for part, profile in zip(parts, results, strict=True):
            total.merge(profile)
            progress.done += part.end - part.start
            if total.stopped_at is not None:
                break
    file.must_be_unchanged()
    if bad_row := total.stopped_at:
        advice = "" if bad_row.is_last else _SKIP_ADVICE
        raise InvalidCsv(suggestion=advice, path=file.path, line=bad_row.line, reason=bad_row.reason)
    return total


def _show(context: Context, tables: list[Table], columns: list[dict[str, Any]], most_bytes: float) -> None:
    """Put the columns into the answer, as far as there is room."""
    for column in columns:
        most_bytes -= len(json.dumps(column))
        if most_bytes < 0:
            context.meta["truncated"] = True
            context.warn("TRUNCATED", "Not all columns are shown; the output has them, --output - --full shows them.")
            return
        tables[column["input"] - 1].profile.append(printable_data(column))


def _as_table(columns: list[dict[str, Any]]) -> Iterator[Line]:
    """One line for each column."""
    yield heads("column", "type", "count", "empty", "distinct", "min", "max", "mean", "most frequent")
    for column in columns:
        distinct = column.get("distinct", f">{column.get('distinct_more_than')}")
        cells = [column["name"], column.get("type", "-"), column["count"], column["empty"], distinct]
        for cell in map(column.get, ("min", "max", "mean")):
            cells.append(f"{cell:.6g}" if isinstance(cell, float) else "" if cell is None else cell)
        frequent = "".join(f"{entry['value']} ({entry['count']})" for entry in column.get("frequent", [])[:1])
        yield (*map(str, cells), frequent)


def _output_path(context: Context, output: str | None, inputs: list[Input], *, dry_run: bool) -> Path:
    """Where the result goes; what can be said against it is said before the work."""
    if output is None:
        return (session_root() / context.session_id if dry_run else context.session_directory) / "result.json"
    named = Path(os.path.abspath(output))
    path = Path(os.path.realpath(named.parent)) / named.name
    if not output or path.name.startswith("-") or not path.name.isprintable():
        raise UnsafePath(output, "that is not a name for a file")
    if not path.parent.is_dir():
        raise FileNotFound(str(path.parent))
    if not os.access(path.parent, os.W_OK | os.X_OK):
        raise PermissionDenied(str(path.parent), "nothing can be written here")
    if any(file.is_at(path) for file in inputs):
        raise UnsafePath(str(path), "it is one of the inputs")
    return path


def command(
    ctx: typer.Context,
    inputs: Annotated[list[str] | None, typer.Option("--input", metavar="CSV...", help="A file; `-` is stdin.")] = None,
    more: Annotated[list[str] | None, typer.Argument(metavar="[CSV]...", help="Inputs, as with --input.")] = None,
    output: Annotated[
        str | None,
        typer.Option(
            metavar="FILE",
            callback=strictly(check_path),
            help="Where to write; `-` for the answer alone.  [default: result.json in the session]",
        ),
    ] = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace what is at the output's path.")] = False,
    delimiter: Annotated[str, typer.Option(metavar="CHAR", help="What separates cells; `tab` for a tab.")] = ",",
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
    mistakes: list[Mistake] = []
    if not names:
        mistakes.append(Mistake("--input", "MISSING", "Missing option '--input'", suggestion="Name a CSV file."))
    if names.count(STDIN) > 1:
        mistakes.append(Mistake("--input", "INVALID_VALUE", "stdin can be read only once", STDIN))
    delimiter = "\t" if delimiter == "tab" else delimiter
    if len(delimiter) != 1 or delimiter in '"\r\n\0':
        mistakes.append(Mistake("--delimiter", "INVALID_VALUE", f"{delimiter!r} is not one character", delimiter))
    if mistakes:
        raise InvalidValues(*mistakes)
    dialect = Dialect(delimiter, on_error)
    return process(context, names, output, dialect, jobs or context.jobs(), overwrite=overwrite, dry_run=dry_run)
