"""A file that a caller names to be read: a regular one, or standard input, and the same from beginning to end.

A FIFO, a device or a directory is an error, not a wait. Standard input is first copied to a nameless temporary file,
so that it too can be read twice, by several at once; whatever ends the call, that file is gone.
"""

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from sampletool.kit.contract.errors import did_you_mean
from sampletool.kit.contract.file_errors import FileNotFound, UnsafePath, from_os_error
from sampletool.kit.safety.atomic_file import write_all
from sampletool.kit.safety.signals import Signals
from sampletool.kit.safety.stdin import stdin_blocks
from sampletool.sample.errors import InputChanged

STDIN = "-"


@dataclass(frozen=True)
class InputFile:
    path: str
    descriptor: int
    found: os.stat_result

    @property
    def size(self) -> int:
        return self.found.st_size

    def is_at(self, path: Path) -> bool:
        return path.exists() and os.path.samestat(self.found, path.stat())

    def must_be_unchanged(self) -> None:
        now = os.fstat(self.descriptor)
        if _stamp(now) != _stamp(self.found):
            raise InputChanged(self.path)


@contextmanager
def opened_input(name: str, signals: Signals) -> Iterator[InputFile]:
    if name == STDIN:
        import tempfile

        with tempfile.TemporaryFile(buffering=0) as copy:
            for block in stdin_blocks(signals):
                write_all(copy.fileno(), block)
            yield InputFile(STDIN, copy.fileno(), os.fstat(copy.fileno()))
        return
    path = Path(os.path.abspath(name))
    descriptor = _open(path)
    try:
        found = os.fstat(descriptor)
        if stat.S_ISDIR(found.st_mode):
            raise UnsafePath(str(path), "it is a directory")
        if not stat.S_ISREG(found.st_mode):
            raise UnsafePath(str(path), f"it is not a regular file; pipe it in and name {STDIN!r}")
        yield InputFile(str(path), descriptor, found)
    finally:
        os.close(descriptor)


def _open(path: Path) -> int:
    try:
        return os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except FileNotFoundError:
        missing = FileNotFound(str(path))
        with suppress(OSError):
            missing.suggestion = did_you_mean(path.name, os.listdir(path.parent)) or missing.suggestion
        raise missing from None
    except OSError as error:
        if error.errno == errno.EMFILE:
            raise  # Not about this file, so it is not to be said of every file.
        raise from_os_error(error, str(path)) from None
    except ValueError:
        raise UnsafePath(str(path), "its name holds a NUL byte") from None


def _stamp(found: os.stat_result) -> tuple[int, int, int]:
    return found.st_size, found.st_mtime_ns, found.st_ctime_ns
