"""How far a call has come, for those who wait: events for --format jsonl, lines and a live one at a terminal.

The live line is rewritten in place. It is shown only to a person: not with --quiet, in CI, or where the terminal
cannot rewrite a line.
"""

import os
import time
from shutil import get_terminal_size

from ..kit.context import Context, in_ci
from ..kit.contract.text import printable
from ..kit.stdout import write_stderr

_SILENCE_SECONDS = 1.0
_LIVE_SECONDS = 0.1
_WIDTH = 30
_CLEAR_LINE = "\r\x1b[K"


class Progress:
    """Of what runs now and what is done. Leaving the block clears the live line."""

    def __init__(self, context: Context, kind: str, total: int, done: int = 0) -> None:
        self.kind = kind
        self.done = done
        self.running: dict[str, float] = {}
        """When each began."""
        self._context, self._total = context, total
        self._spoke_at, self._shown_at = time.monotonic(), 0.0
        is_wanted = not context.options.quiet and not in_ci()
        self._is_live = is_wanted and os.isatty(2) and os.environ.get("TERM") != "dumb"

    def __enter__(self) -> "Progress":
        return self

    def __exit__(self, *_error: object) -> None:
        self._clear()

    def started(self, name: str) -> None:
        self.running[name] = time.monotonic()
        self._say({"event": f"{self.kind}_started", "name": name}, f"{name}: started")

    def ended(self, result: object, name: str, status: str) -> None:
        self.done += 1
        event = {"event": f"{self.kind}_done", self.kind: result, "done": self.done, "total": self._total}
        line = f"{name}: {status.replace('_', ' ')}"
        if name in self.running:
            seconds = time.monotonic() - self.running.pop(name)
            event["seconds"] = round(seconds, 3)
            line += f" in {seconds:.1f} s"
        self._say(event, line)

    def beat(self) -> None:
        """Called often while there is nothing to say. Ends the call where a signal or the deadline asks for it."""
        self._context.signals.check()
        now = time.monotonic()
        if self.seconds_to_beat() <= 0:
            self._spoke_at = now
            running = list(self.running)
            self._context.emit({"event": "heartbeat", "running": running, "done": self.done, "total": self._total})
        if self._is_live and now - self._shown_at >= _LIVE_SECONDS:
            self._shown_at = now
            work = ", ".join(f"{os.path.basename(name)} {int(now - began)} s" for name, began in self.running.items())
            share = min(1.0, self.done / max(1, self._total))
            bar = f"{self._context.command} [{'#' * round(share * _WIDTH):<{_WIDTH}}] {share:4.0%}"
            line = f"{bar} {printable(work)}"[: get_terminal_size().columns - 1]
            write_stderr(f"{_CLEAR_LINE}{line}", self._context.signals)

    def seconds_to_beat(self) -> float:
        return max(0.0, self._spoke_at + _SILENCE_SECONDS - time.monotonic())

    def _say(self, event: dict[str, object], line: str) -> None:
        self._spoke_at = time.monotonic()
        self._context.emit(event)
        self._clear()
        self._context.progress(line)

    def _clear(self) -> None:
        if self._shown_at:
            write_stderr(_CLEAR_LINE, self._context.signals)
            self._shown_at = 0.0
