"""Write the output of a child to a file that never grows beyond a limit.

A child that prints without end must not fill the disk. So when the file reaches the limit, its
middle is dropped. The first part shows how the child began, and the last part shows how it ended.
A line between them says how much is missing.

The file is complete at every moment: if this process is killed, nothing is left in its memory.
"""

import os
from collections.abc import Callable
from pathlib import Path

from .atomic_file import write_all

MAX_LOG_BYTES = 64 * 1024 * 1024
"""The size that a log never exceeds, except by the line that says how much is missing."""

_FIRST_PART_BYTES = MAX_LOG_BYTES // 2

_LAST_PART_BYTES = MAX_LOG_BYTES // 4
"""How much of the end stays when the middle is dropped.

If it were nearly half of the file, the middle would have to be dropped again soon. Each time costs
as much as writing the last part.
"""

_COPIED_BYTES = 1024 * 1024

# O_NOFOLLOW: in a shared directory, another user may have planted a link to another file.
_LOG_FLAGS = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
_LOG_MODE = 0o600


class ChildLog:
    """A file with the output of a child. Only one process may write to the file."""

    def __init__(self, make_path: Callable[[], Path] | None) -> None:
        """Prepare a log. If `make_path` is None, `append` does nothing."""
        self.path: Path | None = None
        """The path of the file. It is None until there is something to write."""

        self.dropped_bytes = 0
        """How much of the output is missing in the file."""

        self.failure: Exception | None = None
        """The error that has ended the writing."""

        self._make_path = make_path
        self._descriptor: int | None = None
        self._size_bytes = 0
        self._notice = b""
        """The line in the file that says how much is missing. It is empty if nothing is."""

    def append(self, content: bytes) -> None:
        """Append to the file, and create it first if necessary. After an error, do nothing.

        Do not raise an error, but keep it in `failure`. This is also called while children are
        being ended, and an error would leave the other children running.
        """
        if self._make_path is None or self.failure is not None:
            return
        try:
            if self._descriptor is None:
                self.path = self._make_path()
                self._descriptor = os.open(self.path, _LOG_FLAGS, _LOG_MODE)
                self._size_bytes = os.lseek(self._descriptor, 0, os.SEEK_END)
            if self._size_bytes + len(content) > MAX_LOG_BYTES:
                self._drop_middle(self._descriptor)
            write_all(self._descriptor, content)
            self._size_bytes += len(content)
        except Exception as error:
            # Not only OSError: make_path is a function of the caller, and may raise anything.
            self.failure = error

    def _drop_middle(self, descriptor: int) -> None:
        """Shorten the file to its first and its last part, with a notice between them.

        The last part is moved towards the beginning of the file, where the notice of the last time
        is overwritten.
        """
        last_part_start = self._size_bytes - _LAST_PART_BYTES
        dropped_now = last_part_start - _FIRST_PART_BYTES - len(self._notice)
        self.dropped_bytes += dropped_now
        self._notice = f"\n[{self.dropped_bytes} bytes of output are missing here]\n".encode()
        os.lseek(descriptor, _FIRST_PART_BYTES, os.SEEK_SET)
        write_all(descriptor, self._notice)
        for offset in range(last_part_start, self._size_bytes, _COPIED_BYTES):
            write_all(descriptor, os.pread(descriptor, _COPIED_BYTES, offset))
        self._size_bytes = os.lseek(descriptor, 0, os.SEEK_CUR)
        os.ftruncate(descriptor, self._size_bytes)

    def close(self) -> None:
        """Close the file, if it was created."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None
