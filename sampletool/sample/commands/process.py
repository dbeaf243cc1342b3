"""Profile a CSV file: in parallel, and never over the result of another command."""

import os
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from ...kit.context import NO_WAIT_SECONDS, Context
from ...kit.contract.command_spec import CommandSpec
from ...kit.contract.errors import InvalidValues, Mistake, WorkerLost
from ...kit.contract.file_errors import OutputExists
from ...kit.contract.mistyped import check_path
from ...kit.contract.response import UNTRUSTED, count_fitting
from ...kit.contract.table import Line, header_row
from ...kit.contract.text import counted, printable_data
from ...kit.global_options import DryRunOption, checked_by
from ...kit.places import session_root
from ...kit.safety.errors import UnsafePath
from ...kit.work.progress import Progress
from ...kit.work.workers import running_workers
from ..csv_file import BadRow, CsvFile, Part, opened_csv, read_header, survey
from ..errors import InputChanged, InvalidCsv
from ..output import Columns, OutputEffect, check_output, lock_path, publish
from ..profile import FORMAT, ColumnProfile, merge_columns, profile_part
from ._options import JobsOption

spec = CommandSpec(
    effect="outputs",
    errors=(InvalidCsv, InputChanged, OutputExists, WorkerLost),
    locks=("session", "output"),
    at_once=("output",),
    reads=("files",),
    destroys="With --overwrite, the file at the output path.",
    before=("init .",),
    examples=(
        "process --input data/sales.csv --session-id demo",
        "process --input data/sales.csv --output profile.json",
    ),
)
_FACTS = ("type", "count", "missing", "distinct", "min", "max", "mean")


@dataclass(frozen=True)
class Processed:
    """The profile, and the file that has it."""

    effect: OutputEffect
    output: str
    sha256: str
    """The digest of the input."""
    rows: int
    columns: int
    profile: Annotated[Columns, UNTRUSTED]
    """The first columns, as many as fit into the response."""

    def lines(self) -> Iterator[Line]:
        """Return the text that a person reads: a line for each column."""
        rows = counted(self.rows, "row")
        columns = counted(self.columns, "column")
        yield f"{self.output}: {self.effect} ({rows}, {columns})"
        yield header_row("column", *_FACTS, "most frequent")
        for column in self.profile:
            facts = [_shown(column.get(fact)) for fact in _FACTS]
            most_frequent = "-"
            if "frequent" in column:
                first = column["frequent"][0]
                most_frequent = f"{first['value']} ({first['count']})"
            yield (column["name"], *facts, most_frequent)


def _shown(fact: object) -> str:
    """Return one cell of the table. A fact that a column does not have is None, shown as "-"."""
    if fact is None:
        return "-"
    if isinstance(fact, float):
        return f"{fact:.6g}"
    return str(fact)


def process(
    context: Context,
    file: CsvFile,
    output: Path,
    jobs: int,
    *,
    overwrite: bool,
    dry_run: bool,
) -> Processed:
    """Profile the file, unless the output has its profile already.

    A dry run does all the work, so that it fails where the command fails. It publishes nothing.
    """
    with ExitStack() as stack:
        hold = None
        if not dry_run:
            name = f"output {output}"
            locked = context.hold(lock_path(output), name, "exclusive", NO_WAIT_SECONDS)
            hold = stack.enter_context(locked)
        progress = stack.enter_context(Progress(context, "input", file.found.st_size))
        progress.set_running([file.path])
        sha256, parts = survey(file, progress.beat)
        # Everything that decides about the result. FORMAT stands for the code.
        identity = {"format": FORMAT, "input": sha256, "delimiter": file.delimiter}
        effect, columns = check_output(output, identity, overwrite=overwrite)
        if columns is None:
            columns = profile(context, file, parts, jobs, progress)
            if not dry_run:
                effect = publish(output, identity, columns, overwrite=overwrite)
        elif hold is not None:
            # Otherwise, the next command that has to wait would be told to try again too soon.
            hold.ignore_duration()
    shown = columns[: count_fitting(columns)]
    if len(shown) < len(columns):
        message = f"The response has the first {len(shown)} columns. The output has all of them."
        context.warn("COLUMNS_LEFT_OUT", message)
    return Processed(
        effect=effect,
        output=str(output),
        sha256=sha256,
        rows=columns[0]["count"] + columns[0]["missing"],
        columns=len(columns),
        profile=printable_data(shown),
    )


def profile(
    context: Context,
    file: CsvFile,
    parts: list[Part],
    jobs: int,
    progress: Progress,
) -> Columns:
    """Return the columns of the result.

    Raise InvalidCsv at the first row that cannot be used, and InputChanged if the file was changed
    since it was opened.
    """
    lines_before = 0
    try:
        header = read_header(file)
        columns = [ColumnProfile() for _name in header]
        work = partial(profile_part, file, width=len(header))
        with running_workers(work, parts, jobs, context.signals, progress.beat) as results:
            # The results come in the order of the parts. So if a part raises BadRow,
            # `lines_before` is the number of lines in all parts before it.
            for part, (columns_of_part, line_count) in zip(parts, results, strict=True):
                columns = merge_columns(columns, columns_of_part)
                lines_before += line_count
                progress.advance(part.end - part.start)
    except BadRow as error:
        # Another process may be writing to the file, so that we have read only half of a row. Then
        # raise InputChanged: the row itself is not wrong.
        file.check_unchanged()
        # BadRow counts the lines from the start of its part.
        line = lines_before + error.line
        raise InvalidCsv(path=file.path, line=line, reason=error.reason) from error
    file.check_unchanged()
    descriptions = []
    for name, column in zip(header, columns, strict=True):
        descriptions.append({"name": name, **column.describe()})
    return descriptions


def output_path(context: Context, output: str | None, *, dry_run: bool) -> Path:
    """Return the path of the result: the option --output, or a file of the session."""
    if output is not None:
        path = Path(output).absolute()
        return path.parent.resolve() / path.name
    if dry_run:
        # Asking for context.session_directory would create the directory.
        return session_root() / context.session_id / "result.json"
    return context.session_directory / "result.json"


def command(
    ctx: typer.Context,
    input_path: Annotated[
        str,
        typer.Option("--input", metavar="CSV", help="Read this CSV file. It must be UTF-8."),
    ],
    output: Annotated[
        str | None,
        typer.Option(
            metavar="FILE",
            callback=checked_by(check_path),
            help="Write the profile to this file.",
            show_default="result.json in the session directory",
        ),
    ] = None,
    overwrite: Annotated[
        bool,
        typer.Option("--overwrite", help="Replace the output file if it exists."),
    ] = False,
    delimiter: Annotated[
        str,
        typer.Option(
            metavar="CHAR",
            help="Set the character that separates the cells of a row. Use `tab` for a tab.",
        ),
    ] = ",",
    jobs: JobsOption = None,
    dry_run: DryRunOption = False,
) -> Processed:
    """Summarize the columns of a CSV file.

    For each column, the profile shows the type, the minimum, the maximum and the mean. It also
    counts the values, the empty cells and the distinct values, and lists the most frequent values.

    If the output file already contains the profile of the same input, the command leaves it as it
    is. A different existing file is replaced only if you pass --overwrite.
    """
    context: Context = ctx.obj
    if delimiter == "tab":
        delimiter = "\t"
    if len(delimiter) != 1 or delimiter in '"\r\n\0':
        message = "The delimiter must be a single character"
        raise InvalidValues(Mistake("--delimiter", "INVALID_VALUE", message, delimiter))
    with opened_csv(os.path.abspath(input_path), delimiter) as file:
        path = output_path(context, output, dry_run=dry_run)
        if path.exists() and os.path.samestat(path.stat(), file.found):
            raise UnsafePath(str(path), "it is the input")
        if jobs is None:
            jobs = context.jobs()
        return process(context, file, path, jobs, overwrite=overwrite, dry_run=dry_run)
