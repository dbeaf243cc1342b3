"""The inputs of a profile: opened, with their headers read, or everything that is wrong with any of them."""

import codecs
import io
import os
from contextlib import ExitStack
from typing import NamedTuple

from sampletool.kit.context import Context
from sampletool.kit.contract.errors import InvalidValues, Mistake, ToolError
from sampletool.sample.csv_file import Dialect, Row, read_header
from sampletool.sample.errors import BadInputs, InvalidCsv
from sampletool.sample.input_file import InputFile, opened_input
from sampletool.sample.profile import MOST_COLUMNS

_HEADER_ADVICE = "Its first row has to name its columns. Correct it, or name its --encoding or --delimiter."
_DELIMITER_NAMES = {"tab": "\t", "\\t": "\t"}


class Source(NamedTuple):
    file: InputFile
    header: Row


def open_sources(context: Context, names: list[str], dialect: Dialect, stack: ExitStack) -> list[Source]:
    """Every input with its header, or everything that is wrong with any of them."""
    sources: list[Source] = []
    errors: list[ToolError] = []
    for name in names:
        try:
            file = stack.enter_context(opened_input(name, context.signals))
            header = read_header(file.descriptor, file.size, dialect)
            if len(header) > MOST_COLUMNS:
                raise ValueError(1, f"it has {len(header)} columns, more than {MOST_COLUMNS}")
            _warn_about_names(context, file.path, header)
            sources.append(Source(file, header))
        except ValueError as error:
            line, reason = error.args
            errors.append(invalid_csv(file, line, reason, _HEADER_ADVICE))
        except ToolError as error:
            errors.append(error)
    if errors:
        raise errors[0] if len(errors) == 1 else BadInputs(errors)
    return sources


def invalid_csv(file: InputFile, line: int, reason: str, advice: str) -> InvalidCsv:
    if os.pread(file.descriptor, 2, 0) in (b"\xff\xfe", b"\xfe\xff"):
        advice = "It looks like UTF-16; pass --encoding utf-16."
    return InvalidCsv(suggestion=advice, path=file.path, line=line, reason=reason)


def _warn_about_names(context: Context, path: str, names: Row) -> None:
    empty = [str(position) for position, name in enumerate(names, 1) if not name]
    twice = sorted({repr(name) for name in names if name and names.count(name) > 1})
    if empty:
        context.warn("COLUMN_NAMES", f"{path} has columns without a name: {', '.join(empty)}.")
    if twice:
        context.warn("COLUMN_NAMES", f"{path} has several columns of one name: {', '.join(twice)}.")
    if len(names) == 1 and (other := next((char for char in ";\t|," if char in names[0]), None)):
        context.warn("ONE_COLUMN", f"{path} has one column; if {other!r} separates its cells, pass it as --delimiter.")


def read_dialect(delimiter: str, encoding: str) -> Dialect:
    mistakes = []
    delimiter = _DELIMITER_NAMES.get(delimiter, delimiter)
    if len(delimiter) != 1 or delimiter in '"\r\n\0':
        mistakes.append(Mistake("--delimiter", "INVALID_VALUE", f"{delimiter!r} is not one character", delimiter))
    try:
        io.TextIOWrapper(io.BytesIO(), encoding)
        encoding = codecs.lookup(encoding).name
    except (LookupError, ValueError):
        mistakes.append(Mistake("--encoding", "INVALID_VALUE", f"{encoding!r} is not a text encoding", encoding))
    if mistakes:
        raise InvalidValues(*mistakes)
    return Dialect(delimiter, encoding)
