"""Standard input, read to its end or not at all: an interrupted producer's half must never be taken for the whole."""

import os

from sampletool.contract.errors import InvalidValues, Mistake
from sampletool.safety.signals import Signals

_CHUNK_BYTES = 65536
_TICK_SECONDS = 60.0


def read_stdin(signals: Signals, limit_bytes: int) -> str:
    """All of it as text. A signal, or the end of --timeout, ends the wait and with it the call."""
    content = bytearray()
    while True:
        readable = signals.wait(_TICK_SECONDS, [0])
        signals.check()
        if not readable:
            continue
        chunk = os.read(0, _CHUNK_BYTES)
        if not chunk:
            break
        content += chunk
        if len(content) > limit_bytes:
            raise _refused(f"stdin is larger than {limit_bytes // (1024 * 1024)} MiB")
    signals.check()
    try:
        return content.decode()
    except UnicodeDecodeError:
        raise _refused("stdin is not UTF-8 text") from None


def _refused(reason: str) -> InvalidValues:
    return InvalidValues(Mistake("VALUE", "INVALID_VALUE", reason, "-"))
