"""Read stdin to its end, or not at all.

If the program that writes to stdin is interrupted, its half of the text must never be taken for the
whole. A signal that ends this program usually ends the other one too, so that stdin ends as well.
"""

import fcntl
import os
from collections.abc import Iterator

from .contract.errors import InvalidValues, Mistake
from .safety.signals import Signals

_BLOCK_BYTES = 1024 * 1024
_MEBIBYTE = 1024 * 1024

_LONGEST_WAIT_SECONDS = 60.0
"""How long to wait before looking again. A signal and the deadline end the wait earlier."""


def stdin_blocks(signals: Signals) -> Iterator[bytes]:
    """Yield the content of stdin, block by block.

    Raise Interrupted after a signal, DeadlineExceeded after the deadline, and InvalidValues if
    stdin is open only for writing.
    """
    if _is_write_only(0):
        raise _invalid(
            "Cannot read stdin: it is open only for writing",
            "Check the redirection. To read from a file, use `<`.",
        )
    while True:
        is_readable = signals.wait(_LONGEST_WAIT_SECONDS, [0])
        if not is_readable:
            signals.check()
            continue
        block = os.read(0, _BLOCK_BYTES)
        # Check the signals after reading. If stdin has ended, the reason may be a signal that has
        # ended the program that wrote to it, and this program has received the signal too.
        signals.check()
        if not block:
            return
        yield block


def read_stdin(signals: Signals, limit_bytes: int, *, allow_empty: bool = False) -> str:
    """Return the content of stdin as text.

    Raise InvalidValues if it is larger than the limit or is not UTF-8. Raise it also if stdin is
    empty or an empty line, which usually means that the program that writes to it has failed. With
    `allow_empty`, this is accepted.
    """
    content = bytearray()
    for block in stdin_blocks(signals):
        content += block
        if len(content) > limit_bytes:
            raise _invalid(f"stdin is larger than {limit_bytes // _MEBIBYTE} MiB")
    is_empty = not content.strip(b"\r\n")
    if is_empty and not allow_empty:
        raise _invalid("stdin is empty", "If you want an empty value, pass --allow-empty.")
    try:
        return content.decode()
    except UnicodeDecodeError:
        raise _invalid("stdin is not UTF-8 text") from None


def _is_write_only(descriptor: int) -> bool:
    """Return whether reading must fail. A shell opens a descriptor so for `0>file` and `<&1`.

    Without this check, a file gives "Bad file descriptor", and the wait for a pipe never ends.
    """
    access_mode = fcntl.fcntl(descriptor, fcntl.F_GETFL) & os.O_ACCMODE
    return access_mode == os.O_WRONLY


def _invalid(problem: str, hint: str | None = None) -> InvalidValues:
    """Return the error for stdin. The argument `-` means stdin."""
    mistake = Mistake(
        param="VALUE",
        code="INVALID_VALUE",
        message=problem,
        value="-",
        suggestion=hint,
    )
    return InvalidValues(mistake)
