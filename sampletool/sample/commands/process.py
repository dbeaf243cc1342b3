"""Profile a CSV file: in parallel, and never over the result of another command."""

import os
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from ...kit.context import NO_WAIT_SECONDS, Context
from ...kit.contract.command_spec import CommandSpec
from ...kit.contract.errors import WorkerLost
from ...kit.contract.file_errors import OutputExists
from ...kit.contract.mistyped import check_path
from ...kit.contract.response import UNTRUSTED, count_fitting
from ...kit.contract.table import Line, header_row
from ...kit.contract.text import counted, printable_data
from ...kit.global_options import DryRunOption, checked_by
from ...kit.places import session_root
from ...kit.safety.atomic_file import opened_regular
from ...kit.work.progress import Progress
from ...kit.work.workers import running_workers
from ..csv_file import CsvFile, Part, divide, read_header
from ..errors import InputChanged, InvalidCsv
from ..output import Columns, OutputEffect, check_output, lock_path, publish
from ..profile import FORMAT, MAX_VALUE_CHARACTERS, merge_columns, profile_cells, profile_part
from ._options import JobsOption

spec = CommandSpec(
    effect="outputs",
    errors=(InvalidCsv, InputChanged, OutputExists, WorkerLost),
    locks=("session", "output"),
    at_once=("output",),
    reads=("files",),
    before=("init .",),
    examples=(
        "process --input data/sales.csv --session-id demo",
        "process --input data/sales.csv --output profile.json",
    ),
)
_FACTS = ("name", "type", "count", "missing", "distinct", "min", "max", "mean", "frequent")


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
    """The first columns, as many as fit into the response. The output has all of them."""
    truncated: bool
    """Whether columns are missing in the response, or a value is cut off."""

    def lines(self) -> Iterator[Line]:
        """Return the text that a person reads: a line for each column."""
        rows = counted(self.rows, "row")
        columns = counted(self.columns, "column")
        yield f"{self.output}: {self.effect} ({rows}, {columns})"
        yield header_row(*_FACTS)
        for column in self.profile:
            yield tuple(_format_fact(column.get(fact)) for fact in _FACTS)


def _format_fact(fact: Any) -> str:
    """Return one cell of the table. A fact that a column does not have is None, shown as "-"."""
    if fact is None:
        return "-"
    if isinstance(fact, float):
        return f"{fact:.6g}"
    if isinstance(fact, list):
        most_frequent = fact[0]
        return f"{most_frequent['value']} ({most_frequent['count']})"
    return str(fact)


def process(
    context: Context,
    file: CsvFile,
    output: Path,
    jobs: int,
    *,
    dry_run: bool,
) -> Processed:
    """Profile the file, unless the output has its profile already.

    A dry run does all the work, so that it fails where the command fails. It publishes nothing.
    """
    with Progress(context, "input", total=file.opened_as.st_size) as progress:
        parts, sha256 = divide(file, progress.beat)
        # Everything that decides about the result. FORMAT stands for the code.
        identity = {"format": FORMAT, "input": sha256, "delimiter": file.delimiter}
        effect, columns = check_output(output, identity)
        if columns is None and dry_run:
            columns = profile(context, file, parts, jobs, progress)
        elif columns is None:
            # A result that is reused needs no lock. So it does not change how long the lock is
            # usually held, which tells other commands when to try again.
            with context.hold(lock_path(output), f"output {output}", "exclusive", NO_WAIT_SECONDS):
                columns = profile(context, file, parts, jobs, progress)
                effect = publish(output, identity, columns)
    shown_columns = columns[: count_fitting(columns)]
    has_all_columns = len(shown_columns) == len(columns)
    return Processed(
        effect=effect,
        output=str(output),
        sha256=sha256,
        rows=columns[0]["count"] + columns[0]["missing"],
        columns=len(columns),
        profile=printable_data(shown_columns),
        truncated=not has_all_columns or any(map(_has_cut_value, shown_columns)),
    )


def _has_cut_value(description: dict[str, Any]) -> bool:
    """Return whether the result shows only the start of a value of this column."""
    shown = [description.get("min"), description.get("max")]
    shown += [entry["value"] for entry in description.get("frequent", ())]
    return any(isinstance(value, str) and len(value) > MAX_VALUE_CHARACTERS for value in shown)


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
    header = read_header(file, parts[0])
    columns = [profile_cells([], max_distinct=0) for _name in header]
    work = partial(profile_part, file=file, width=len(header))
    with running_workers(work, parts, jobs, context.signals, progress.beat) as results:
        # The results come in the order of the parts, whichever worker is done first.
        for part, columns_of_part in zip(parts, results, strict=True):
            columns = merge_columns(columns, columns_of_part)
            progress.advance(part.size)
    file.check_unchanged()
    descriptions = []
    for name, column in zip(header, columns, strict=True):
        descriptions.append({"name": name, **column.describe()})
    return descriptions


def check_output_path(text: str) -> None:
    """Raise ValueError unless the text can be the path of the result."""
    if text == "":
        # It would mean the current directory, and the error about that one says how to replace it:
        # "first delete it".
        raise ValueError("the path is empty, as if it came from an unset variable")
    check_path(text)


def output_path(context: Context, output: str | None, *, dry_run: bool) -> Path:
    """Return the path of the result: the option --output, or a file of the session."""
    if output is not None:
        return Path(output).absolute()
    if dry_run:
        # Asking for context.session_directory would create the directory.
        return session_root() / context.session_id / "result.json"
    return context.session_directory / "result.json"


def command(
    ctx: typer.Context,
    input_path: Annotated[
        Path,
        typer.Option("--input", metavar="CSV", help="Read this CSV file. It must be UTF-8."),
    ],
    output: Annotated[
        str | None,
        typer.Option(
            metavar="FILE",
            callback=checked_by(check_output_path),
            help="Write the profile to this file.",
            show_default="result.json in the session directory",
        ),
    ] = None,
    delimiter: Annotated[
        Literal[",", ";", "|", "tab"],
        typer.Option(
            metavar="CHAR",
            help="Set what separates the cells of a row: `,`, `;`, `|` or `tab`.",
        ),
    ] = ",",
    jobs: JobsOption = None,
    dry_run: DryRunOption = False,
) -> Processed:
    """Summarize the columns of a CSV file.

    For each column, the profile shows the type, the minimum, the maximum and the mean. It also
    counts the values, the empty cells and the distinct values, and lists the most frequent values.

    If the output file already contains the profile of the same input, the command leaves it as it
    is. A different existing file is never replaced.
    """
    context: Context = ctx.obj
    if jobs is None:
        jobs = context.jobs()
    separator = "\t" if delimiter == "tab" else delimiter
    input_path = input_path.absolute()
    with opened_regular(input_path) as descriptor:
        file = CsvFile(str(input_path), descriptor, separator, os.fstat(descriptor))
        path = output_path(context, output, dry_run=dry_run)
        return process(context, file, path, jobs, dry_run=dry_run)
