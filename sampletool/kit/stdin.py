"""Standard input, read to its end or not at all: an interrupted producer's half must never be taken for the whole."""

import fcntl
import os
from collections.abc import Iterator

from .contract.errors import InvalidValues, Mistake
from .safety.signals import Signals

_BLOCK_BYTES = 1024 * 1024
_TICK_SECONDS = 60.0


def stdin_blocks(signals: Signals) -> Iterator[bytes]:
    """A signal, or the end of --timeout, ends the wait and with it the call, also when the input has just ended."""
    if _is_write_only(0):
        raise _refused("stdin cannot be read: it is open only for writing", "Check the redirection: < reads a file.")
    while True:
        block = os.read(0, _BLOCK_BYTES) if signals.wait(_TICK_SECONDS, [0]) else None
        signals.check()
        if block:
            yield block
        elif block is not None:
            return


def read_stdin(signals: Signals, limit_bytes: int, *, allow_empty: bool = False) -> str:
    """All of it as text. Nothing, or nothing but the end of a line, is a producer that failed, unless it is allowed."""
    content = bytearray()
    for block in stdin_blocks(signals):
        content += block
        if len(content) > limit_bytes:
            raise _refused(f"stdin is larger than {limit_bytes // (1024 * 1024)} MiB")
    if not allow_empty and not content.strip(b"\r\n"):
        raise _refused("stdin is empty", "Pass --allow-empty if an empty value is meant.")
    try:
        return content.decode()
    except UnicodeDecodeError:
        raise _refused("stdin is not UTF-8 text") from None


def _is_write_only(descriptor: int) -> bool:
    """Return whether reading must fail. A shell opens a descriptor so for `0>file` and `<&1`.

    Without this check, a file gives "Bad file descriptor", and the wait for a pipe never ends.
    """
    access_mode = fcntl.fcntl(descriptor, fcntl.F_GETFL) & os.O_ACCMODE
    return access_mode == os.O_WRONLY


def _refused(reason: str, hint: str | None = None) -> InvalidValues:
    return InvalidValues(Mistake("VALUE", "INVALID_VALUE", reason, "-", hint))
