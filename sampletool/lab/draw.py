"""A recorded run as a picture in text: a lane for each worker, and what the shared thing holds.

A bar marks the worker that holds the lock, shading one that waits, an arrow the step that broke the invariant.
"""

from collections.abc import Sequence
from shutil import get_terminal_size
from textwrap import wrap

from ..kit.contract.table import Painted
from ..kit.contract.text import BOLD, RED, printable
from .recording import Event, Recording
from .scenario import STRIKES

WIDTH = 80
"""Where there is no terminal."""

_WAITS, _IDLE = "░", "·"
_LEAST_WIDTH, _NARROWEST, _GAP = 40, 10, 5
_MARGIN = " " * 5
_NO_BREAK = "\N{NO-BREAK SPACE}"


def terminal_width() -> int:
    return max(get_terminal_size((WIDTH, 24)).columns, _LEAST_WIDTH)


def timeline(recording: Recording, width: int = WIDTH) -> list[str]:
    """One row for each thing that happened, from top to bottom. What does not fit goes on below, between words."""
    *lanes, last = _widths(recording, width)
    heads = [
        f"  {letter}".ljust(lane + _GAP)
        for letter, lane in zip(recording.workers, lanes, strict=True)
    ]
    lines: list[str] = [Painted("".join([_MARGIN, *heads, recording.shared]), BOLD)]
    over: set[str] = set()
    held: tuple[str, ...] = ()
    for event in recording.events:
        cells = [_cell(event, letter, held, over) for letter in recording.workers]
        said = [_wrapped(text, lane) for (_, _, text), lane in zip(cells, lanes, strict=True)]
        shown = _seen(event)
        parts = [shown] if len(shown) <= last else shown.replace("   <==", "\n<==").split("\n")
        seen = [line for part in parts for line in _wrapped(part, last)]
        for row in range(max(len(seen), *map(len, said))):
            line = f"{event.seq:>3}  " if row == 0 else _MARGIN
            for (bar, bar_below, _), text, lane in zip(cells, said, lanes, strict=True):
                line += f"{bar_below if row else bar}{''.join(text[row : row + 1])}".ljust(
                    lane + _GAP
                )
            line = f"{line}{''.join(seen[row : row + 1])}".rstrip()
            lines.append(Painted(line, RED) if event.note and recording.is_broken else line)
        held = event.holds
        over |= {event.worker} if event.over else set()
    return lines


def legend(recordings: Sequence[Recording], width: int = WIDTH) -> list[str]:
    """What the signs mean that these pictures have."""
    events = [event for recording in recordings for event in recording.events]
    schedules = " ".join(recording.schedule for recording in recordings)
    signs = {
        "A1": ("is A's first step", True),
        "┌ │ └": ("holds the lock", any(event.holds for event in events)),
        _WAITS: ("has to wait", any(event.waiting for event in events)),
        _IDLE: ("stands still", any(len(recording.workers) > 1 for recording in recordings)),
        **{f"A{sign}": (f"is {meaning}", sign in schedules) for sign, meaning in STRIKES.items()},
        "<==": ("marks what is wrong", any(event.note for event in events)),
    }
    used = [
        f"{sign} {meaning}".replace(" ", _NO_BREAK)
        for sign, (meaning, is_used) in signs.items()
        if is_used
    ]
    return [line.replace(_NO_BREAK, " ") for line in _wrapped(f"Signs: {', '.join(used)}", width)]


def _wrapped(text: str, width: int) -> list[str]:
    return wrap(text, width, break_long_words=False, break_on_hyphens=False)


def _widths(recording: Recording, width: int) -> list[int]:
    """Of the text in each lane, and of the last column; the widest gives way."""
    said = [
        [label(event) for event in recording.events if event.worker == letter]
        for letter in recording.workers
    ]
    said.append([recording.shared, *map(_seen, recording.events)])
    widths = [max([4, *map(len, column)]) for column in said]
    while (
        sum(widths) > width - len(_MARGIN) - _GAP * len(recording.workers)
        and max(widths) > _NARROWEST
    ):
        widths[widths.index(max(widths))] -= 1
    return widths


def _seen(event: Event) -> str:
    return printable(f"{event.state}   <== {event.note.rstrip('.')}" if event.note else event.state)


def label(event: Event) -> str:
    """The step, as people say it."""
    waits = {"blocked": ": has to wait", "resumed": ": has it now"}.get(event.outcome, "")
    return printable(event.step.upper() if event.outcome == "struck" else f"{event.step}{waits}")


def _cell(event: Event, letter: str, held: tuple[str, ...], over: set[str]) -> tuple[str, str, str]:
    """What marks the lane in the first row, and in those below it; and the text."""
    acts, holds = event.worker == letter, letter in event.holds
    text = label(event) if acts else ""
    if letter in event.waiting:
        return f"{_WAITS} ", f"{_WAITS} ", text
    if not acts and not holds:
        return "" if letter in over else f"  {_IDLE}", "", ""
    below = "│ " if holds else "  "
    return (
        "┌ " if holds and letter not in held else "└ " if letter in held and not holds else below,
        below,
        text,
    )
