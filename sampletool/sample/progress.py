"""How far a call has come, for whoever waits: events for --format jsonl, lines and a live one at a terminal."""

import time

from sampletool.kit.context import Context
from sampletool.kit.contract.text import counted
from sampletool.sample.live_line import LiveLine

_SILENCE_SECONDS = 1.0


class Progress:
    """Of what runs now and what is done. Leaving the block clears the live line."""

    def __init__(self, context: Context, kind: str, total: int, done: int = 0) -> None:
        self._context, self._kind, self._total = context, kind, total
        self._live = LiveLine(context, context.command, total)
        self._spoke_at = time.monotonic()
        self.done = done
        self.running: dict[str, float] = {}
        """When each began."""

    def __enter__(self) -> "Progress":
        return self

    def __exit__(self, *_error: object) -> None:
        self._live.clear()

    def started(self, name: str) -> None:
        self.running[name] = time.monotonic()
        self._say({"event": f"{self._kind}_started", "name": name}, f"{name}: started")

    def ended(self, result: object, name: str, status: str) -> None:
        self.done += 1
        began = self.running.pop(name, None)
        seconds = None if began is None else round(time.monotonic() - began, 3)
        event = {"event": f"{self._kind}_done", self._kind: result, "done": self.done, "total": self._total}
        took = "" if seconds is None else f" in {seconds:.1f} s"
        if seconds is not None:
            event["seconds"] = seconds
        self._say(event, f"{name}: {status.replace('_', ' ')}{took}")

    def beat(self) -> None:
        """Called often while there is nothing to say. Ends the call where a signal or the deadline asks for it."""
        self._context.signals.check()
        now = time.monotonic()
        if self.seconds_to_beat() <= 0:
            self._spoke_at = now
            names = list(self.running)
            self._context.emit({"event": "heartbeat", "running": names, "done": self.done, "total": self._total})
        work = [f"{name} {now - began:.0f} s" for name, began in self.running.items()]
        self._live.show(
            self.done, ", ".join(work[:4]) + (f" and {counted(len(work) - 4, 'other')}" if work[4:] else "")
        )

    def seconds_to_beat(self) -> float:
        return max(0.0, self._spoke_at + _SILENCE_SECONDS - time.monotonic())

    def _say(self, event: dict[str, object], line: str) -> None:
        self._spoke_at = time.monotonic()
        self._context.emit(event)
        self._live.clear()
        self._context.tell(line)
