"""Standard input, read to its end or not at all: an interrupted producer's half must never be taken for the whole."""

import os
from collections.abc import Iterator

from ..contract.errors import InvalidValues, Mistake
from .signals import Signals

_BLOCK_BYTES = 1024 * 1024
_TICK_SECONDS = 60.0


def stdin_blocks(signals: Signals) -> Iterator[bytes]:
    """A signal, or the end of --timeout, ends the wait and with it the call, also when the input has just ended."""
    while True:
        readable = signals.wait(_TICK_SECONDS, [0])
        signals.check()
        if readable:
            block = os.read(0, _BLOCK_BYTES)
            signals.check()
            if not block:
                return
            yield block


def read_stdin(signals: Signals, limit_bytes: int) -> str:
    """All of it as text."""
    content = bytearray()
    for block in stdin_blocks(signals):
        content += block
        if len(content) > limit_bytes:
            raise _refused(f"stdin is larger than {limit_bytes // (1024 * 1024)} MiB")
    try:
        return content.decode()
    except UnicodeDecodeError:
        raise _refused("stdin is not UTF-8 text") from None


def _refused(reason: str) -> InvalidValues:
    return InvalidValues(Mistake("VALUE", "INVALID_VALUE", reason, "-"))
