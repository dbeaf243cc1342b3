"""The inputs of a profile: regular files, or standard input, the same from beginning to end, with their headers.

A FIFO, a device or a directory is an error, not a wait. Standard input is first copied to a nameless temporary file,
so that it too can be read twice, by several at once; whatever ends the call, that file is gone.
"""

import os
import stat
from contextlib import ExitStack
from pathlib import Path
from typing import NamedTuple

from sampletool.kit.contract.errors import ToolError
from sampletool.kit.contract.file_errors import UnsafePath, from_os_error
from sampletool.kit.safety.atomic_file import write_all
from sampletool.kit.safety.signals import Signals
from sampletool.kit.safety.stdin import stdin_blocks
from sampletool.sample.csv_file import BadRow, Row, read_header
from sampletool.sample.errors import InputChanged, InvalidCsv
from sampletool.sample.profile import MOST_COLUMNS

STDIN = "-"


class Input(NamedTuple):
    path: str
    descriptor: int
    found: os.stat_result
    header: Row

    def is_at(self, path: Path) -> bool:
        return path.exists() and os.path.samestat(self.found, path.stat())

    def must_be_unchanged(self) -> None:
        now, then = os.fstat(self.descriptor), self.found
        if (now.st_size, now.st_mtime_ns, now.st_ctime_ns) != (then.st_size, then.st_mtime_ns, then.st_ctime_ns):
            raise InputChanged(self.path)


def open_inputs(names: list[str], delimiter: str, signals: Signals, stack: ExitStack) -> list[Input]:
    """Every input, open until the stack is left. Code and advice are those of the first that cannot be used."""
    inputs: list[Input] = []
    errors: list[ToolError] = []
    for name in names:
        path = name if name == STDIN else os.path.abspath(name)
        try:
            descriptor = _copy_of_stdin(signals, stack) if name == STDIN else _open(path, stack)
            found = os.fstat(descriptor)
            header = read_header(descriptor, found.st_size, delimiter)
            if len(header) > MOST_COLUMNS:
                raise BadRow(1, f"it has {len(header)} columns, more than {MOST_COLUMNS}")
            inputs.append(Input(path, descriptor, found, header))
        except BadRow as error:
            line, reason = error.args
            errors.append(InvalidCsv(path=path, line=line, reason=reason))
        except (FileNotFoundError, NotADirectoryError, PermissionError, UnsafePath) as error:
            errors.append(from_os_error(error, path) if isinstance(error, OSError) else error)
    if len(errors) > 1:
        errors[0].context["problems"] = [error.message for error in errors]
        errors[0].message = f"{len(errors)} of {len(names)} inputs cannot be used; nothing was done."
    if errors:
        raise errors[0]
    return inputs


def _open(path: str, stack: ExitStack) -> int:
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    stack.callback(os.close, descriptor)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        raise UnsafePath(path, f"it is not a regular file; pipe it in and name {STDIN!r}")
    return descriptor


def _copy_of_stdin(signals: Signals, stack: ExitStack) -> int:
    import tempfile

    copy = stack.enter_context(tempfile.TemporaryFile(buffering=0))  # noqa: SIM115 - the stack closes it
    for block in stdin_blocks(signals):
        write_all(copy.fileno(), block)
    return copy.fileno()
