"""How far a call has come: one line on a terminal's stderr, rewritten in place. Nothing at all anywhere else."""

import os
import time
from shutil import get_terminal_size

from sampletool.kit.context import Context, in_ci, write_stderr
from sampletool.kit.contract.text import printable

_WIDTH = 30
_INTERVAL_SECONDS = 0.1
_CLEAR_LINE = "\r\x1b[K"


class LiveLine:
    """Shown only to a person: not with --quiet, in CI, or where the terminal cannot rewrite a line."""

    def __init__(self, context: Context, label: str, total: int) -> None:
        self._label = label
        self._total = max(1, total)
        self._is_shown = (
            not context.options.get("quiet") and not in_ci() and os.environ.get("TERM") != "dumb" and os.isatty(2)
        )
        self._next = 0.0

    def __enter__(self) -> "LiveLine":
        return self

    def __exit__(self, *_error: object) -> None:
        self.clear()

    def show(self, done: int, now: str = "") -> None:
        """`now`: what is being worked on."""
        if not self._is_shown or time.monotonic() < self._next:
            return
        self._next = time.monotonic() + _INTERVAL_SECONDS
        share = min(1.0, done / self._total)
        bar = "#" * round(share * _WIDTH)
        line = f"{self._label} [{bar:<{_WIDTH}}] {share:4.0%} {printable(now)}"
        write_stderr(f"{_CLEAR_LINE}{line[: get_terminal_size().columns - 1]}")

    def clear(self) -> None:
        """Before another line is printed."""
        if self._is_shown and self._next:
            write_stderr(_CLEAR_LINE)
            self._next = 0.0
