"""CSV in, a profile of every column out: streaming, in parallel, and never over the result of another call."""

import json
import os
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import typer

from ...kit.context import NO_WAIT_SECONDS, Context
from ...kit.contract.command_spec import CommandSpec
from ...kit.contract.errors import InvalidValues, Mistake, WorkerLost
from ...kit.contract.file_errors import FileNotFound, OutputExists, PermissionDenied
from ...kit.contract.mistyped import check_path
from ...kit.contract.response import UNTRUSTED
from ...kit.contract.table import Line, header_row
from ...kit.contract.text import counted, printable_data
from ...kit.global_options import DryRunOption, checked_by
from ...kit.places import session_root
from ...kit.safety.errors import UnsafePath
from ...kit.safety.lock import Hold
from ...kit.work.progress import Progress
from ...kit.work.workers import running_workers
from ..csv_file import STDIN, BadRow, Input, Part, open_inputs, survey
from ..errors import InputChanged, InvalidCsv
from ..output import Columns, OutputEffect, lock_path, look, publish
from ..profile import FORMAT, PartProfile, profile_part
from ._options import JobsOption

spec = CommandSpec(
    effect="outputs",
    errors=(InvalidCsv, InputChanged, OutputExists, WorkerLost),
    locks=("session", "output"),
    at_once=("output",),
    reads=("files", "stdin"),
    destroys="With --overwrite, what is at the output's path.",
    before=("init .",),
    examples=(
        "process --input data/sales.csv --session-id demo",
        "process --input data/*.csv --output profile.json",
        "cat data/sales.csv | process --input - --output -",
    ),
)
_FACTS = ("type", "count", "empty", "distinct", "min", "max", "mean")
_SHOWN_BYTES = 48 * 1024
"""Of all columns in an answer, which is at most 64 KiB, so that it has every input; the result has all of them."""


class Table(NamedTuple):
    """What the answer says about one input."""

    input: str
    sha256: str
    columns: int
    rows: int
    profile: Annotated[list[dict[str, Any]], UNTRUSTED]


class Processed(NamedTuple):
    effect: OutputEffect
    output: str
    inputs: list[Table]

    def lines(self) -> list[Line]:
        lines: list[Line] = [] if self.output == STDIN else [f"{self.output}: {self.effect}"]
        for table in self.inputs:
            lines.append(f"  {table.input}: {counted(table.rows, 'row')}, {counted(table.columns, 'column')}")
            lines += _as_table(table.profile)
        return lines


def process(
    context: Context, names: list[str], output: str | None, delimiter: str, jobs: int, *, overwrite: bool, dry_run: bool
) -> Processed:
    """A dry run does all the work, and publishes nothing."""
    effect: OutputEffect = "unchanged"
    columns: Columns | None = None
    hold: Hold | None = None
    with ExitStack() as stack:
        inputs = open_inputs(names, delimiter, context.signals, stack)
        path = None if output == STDIN else _output_path(context, output, inputs, dry_run=dry_run)
        if path is not None and not dry_run:
            hold = stack.enter_context(context.hold(lock_path(path), f"output {path}", "exclusive", NO_WAIT_SECONDS))
        progress = stack.enter_context(Progress(context, "input", sum(file.found.st_size for file in inputs)))
        surveys = [survey(file.descriptor, file.found.st_size, progress.beat) for file in inputs]
        digests = [sha256 for sha256, _ in surveys]
        identity = {"format": FORMAT, "inputs": digests, "options": {"delimiter": delimiter}}
        if path is not None:
            effect, columns = look(path, identity, overwrite=overwrite)
        if columns is None:
            columns = []
            for number, (file, (_, parts)) in enumerate(zip(inputs, surveys, strict=True), 1):
                profile = _profile(context, file, parts, delimiter, jobs, progress)
                for position, (name, column) in enumerate(zip(file.header, profile.columns, strict=True), 1):
                    columns.append({"input": number, "position": position, "name": name, **column.describe()})
            if path is not None and not dry_run:
                effect = publish(path, identity, columns, overwrite=overwrite)
        elif hold is not None:
            hold.ignore_duration()
    return Processed(
        effect, str(path or STDIN), _tables(context, inputs, digests, columns, is_in_file=path is not None)
    )


def _tables(
    context: Context, inputs: list[Input], digests: list[str], columns: Columns, *, is_in_file: bool
) -> list[Table]:
    """Return what the response says about each input. Without an output file, it is the whole result."""
    size = sum(len(json.dumps(column)) for column in columns)
    most = len(columns)
    if is_in_file and size > _SHOWN_BYTES:
        most = most * _SHOWN_BYTES // size // len(inputs)
    tables = []
    for file, sha256 in zip(inputs, digests, strict=True):
        own, columns = columns[: len(file.header)], columns[len(file.header) :]
        tables.append(Table(file.path, sha256, len(own), own[0]["count"] + own[0]["empty"], printable_data(own[:most])))
    if any(table.columns > most for table in tables):
        message = f"The response shows at most {most} columns of an input. The output has all of them."
        context.warn("COLUMNS_LEFT_OUT", message)
    return tables


def _profile(
    context: Context, file: Input, parts: list[Part], delimiter: str, jobs: int, progress: Progress
) -> PartProfile:
    """Of one input, by workers that take a part of it each."""

    def work(part: Part) -> PartProfile:
        return profile_part(file.descriptor, part, delimiter, len(file.header), lambda: None)

    total = PartProfile(len(file.header))
    progress.set_running([file.path])
    try:
        with running_workers(work, parts, jobs, context.signals, progress.beat) as results:
            for part, profile in zip(parts, results, strict=True):
                total.merge(profile)
                progress.advance(part.end - part.start)
    except BadRow as error:
        line, reason = error.args
        file.must_be_unchanged()
        raise InvalidCsv(path=file.path, line=total.lines + line, reason=reason) from error
    file.must_be_unchanged()
    return total


def _as_table(columns: list[dict[str, Any]]) -> Iterator[Line]:
    """One line for each column."""
    yield header_row("column", *_FACTS, "most frequent")
    for column in columns:
        known = {"type": "-", "distinct": f">{column.get('distinct_more_than')}", **column}
        facts = (known.get(fact, "") for fact in _FACTS)
        frequent = "".join(f"{entry['value']} ({entry['count']})" for entry in column.get("frequent", [])[:1])
        yield (column["name"], *(f"{fact:.6g}" if isinstance(fact, float) else str(fact) for fact in facts), frequent)


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
    if path.exists() and any(os.path.samestat(file.found, path.stat()) for file in inputs):
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
            callback=checked_by(check_path),
            help="Where to write; `-` for the answer alone.  [default: result.json in the session]",
        ),
    ] = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace what is at the output's path.")] = False,
    delimiter: Annotated[str, typer.Option(metavar="CHAR", help="What separates cells; `tab` for a tab.")] = ",",
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
    return process(context, names, output, delimiter, jobs or context.jobs(), overwrite=overwrite, dry_run=dry_run)
