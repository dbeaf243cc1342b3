"""Show how far a long-running command has come, to people and to programs.

* People see a line on stderr when an item is started or finished (at a terminal, or with
  --verbose). At a terminal, they also see a *live line*, which is rewritten in place. It shows the
  share that is done, and what is running.
* Programs that read `--format jsonl` get an event for each item. If nothing has happened for a
  second, they get a *heartbeat*, so that a slow command can be told from one that hangs.

A command calls `beat` often while it waits. Everything that is due is shown then.
"""

import os
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from shutil import get_terminal_size
from typing import Any, Protocol, Self

from ..contract.text import printable
from ..safety.signals import Signals

_HEARTBEAT_SECONDS = 1.0
"""How long nothing happens before programs get a heartbeat."""

_REDRAW_SECONDS = 0.1
"""How long a live line stays before it is drawn again."""

_BAR_CHARACTERS = 30
_STDERR = 2
_CLEAR_LINE = "\r\x1b[K"
"""Go to the beginning of the line, and delete everything behind it."""


class Audience(Protocol):
    """Those who want to know how far a command has come. The context of a command is one."""

    @property
    def signals(self) -> Signals:
        """The signals of the command."""
        ...

    @property
    def command(self) -> str:
        """The name of the command."""
        ...

    @property
    def is_watched(self) -> bool:
        """Whether a person watches, at a terminal on which a line can be rewritten."""
        ...

    def emit(self, event: dict[str, Any]) -> None:
        """Print an event for programs."""
        ...

    def progress(self, line: str) -> None:
        """Print a line for people."""
        ...


class Progress:
    """How far a command has come with its items. Leaving the block clears the live line."""

    def __init__(
        self,
        audience: Audience,
        kind: str,
        total: int,
        done: int = 0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Begin with `done` of `total`.

        `kind` is what one item is, such as "file". The events are then called `file_started` and
        `file_done`.
        """
        self._audience = audience
        self.kind = kind
        self._total = total
        self._done = done
        self._clock = clock
        self._started_at: dict[str, float] = {}
        """When each item that is running was started, by its name."""
        self._shown_at = clock()
        """When programs were last told something."""
        self._drawn_at: float | None = None
        """When the live line was last drawn. It is None while there is no live line."""

    def __enter__(self) -> Self:
        """Return the progress itself."""
        return self

    def __exit__(self, *_error: object) -> None:
        """Clear the live line, so that the result begins on an empty one."""
        self._clear_live_line()

    @property
    def running(self) -> list[str]:
        """The names of the items that are running."""
        return list(self._started_at)

    def start(self, name: str, reason: str | None = None) -> None:
        """Show that an item was started, and why."""
        self._started_at[name] = self._clock()
        event = {"event": f"{self.kind}_started", "name": name}
        line = f"{name}: started"
        if reason is not None:
            event["reason"] = reason
            line += f" ({reason})"
        self._show(event, line)

    def finish(self, name: str, status: str, result: object = None) -> None:
        """Count an item as done, and show how it has ended.

        `status` is a word such as "imported". `result` is for programs: the event has it as a
        member that is called like the kind of item, such as "file".
        """
        self._done += 1
        event = {
            "event": f"{self.kind}_done",
            "name": name,
            "status": status,
            "done": self._done,
            "total": self._total,
        }
        if result is not None:
            event[self.kind] = result
        line = f"{name}: {status.replace('_', ' ')}"
        # An item can end without having been started, for example if it was up to date.
        started_at = self._started_at.pop(name, None)
        if started_at is not None:
            seconds = self._clock() - started_at
            event["seconds"] = round(seconds, 3)
            line += f" in {seconds:.1f} s"
        self._show(event, line)

    def advance(self, amount: int) -> None:
        """Count a part of the total as done, without a line or an event of its own."""
        self._done += amount

    def set_running(self, names: Iterable[str]) -> None:
        """Replace what the live line and the heartbeats show as running."""
        now = self._clock()
        self._started_at = {name: self._started_at.get(name, now) for name in names}

    def beat(self) -> None:
        """Send a heartbeat and redraw the live line, each if enough time has passed.

        Raise Interrupted or DeadlineExceeded if the command has to stop.
        """
        self._audience.signals.check()
        if self.seconds_to_heartbeat() <= 0:
            self._shown_at = self._clock()
            heartbeat = {
                "event": "heartbeat",
                "running": self.running,
                "done": self._done,
                "total": self._total,
            }
            self._audience.emit(heartbeat)
        if self._audience.is_watched and self._is_redraw_due():
            self._draw_live_line()

    def seconds_to_heartbeat(self) -> float:
        """Return how long a command may wait before it has to call `beat` again."""
        return max(0.0, self._shown_at + _HEARTBEAT_SECONDS - self._clock())

    def _show(self, event: dict[str, Any], line: str) -> None:
        """Send an event to programs, and print a line that says the same to people."""
        self._shown_at = self._clock()
        self._audience.emit(event)
        self._clear_live_line()
        self._audience.progress(line)

    def _is_redraw_due(self) -> bool:
        return self._drawn_at is None or self._clock() - self._drawn_at >= _REDRAW_SECONDS

    def _draw_live_line(self) -> None:
        """Draw, for example, `import [######      ]  50% a.csv 3 s, b.csv 1 s`."""
        now = self._clock()
        self._drawn_at = now
        # Without items, the share is 0, and nothing is divided by 0.
        share = min(1.0, self._done / max(1, self._total))
        bar = ("#" * round(share * _BAR_CHARACTERS)).ljust(_BAR_CHARACTERS)
        percentage = f"{share:.0%}".rjust(len("100%"))
        running_items = []
        for name, started_at in self._started_at.items():
            seconds = int(now - started_at)
            running_items.append(f"{os.path.basename(name)} {seconds} s")
        running = printable(", ".join(running_items))
        line = f"{self._audience.command} [{bar}] {percentage} {running}"
        # A line as wide as the terminal would continue in the next row, and could not be cleared.
        longest_line = get_terminal_size().columns - 1
        self._write(_CLEAR_LINE + line[:longest_line])

    def _clear_live_line(self) -> None:
        if self._drawn_at is not None:
            self._write(_CLEAR_LINE)
            self._drawn_at = None

    def _write(self, text: str) -> None:
        # A terminal that was closed is no reason to fail.
        with suppress(OSError):
            self._audience.signals.write(_STDERR, text.encode("utf-8", "backslashreplace"))
