"""Draw a recorded run as text: a lane for each worker, and a column for the shared state.

A bar marks the worker that holds the lock, shading marks one that waits, and an arrow marks the
step that broke the invariant.
"""

import os
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from textwrap import wrap

from ..kit.contract.table import Painted
from ..kit.contract.text import BOLD, RED, printable
from .recording import Event, Recording
from .scenario import FAULTS

WIDTH = 80
"""The width if there is no terminal."""

_STDIN, _STDERR = 0, 2
_WAITING_MARK = "░"
_IDLE_MARK = "·"
_PROBLEM_MARK = "<=="
_MIN_TERMINAL_WIDTH = 40
"""The width of the picture if the terminal is narrower. The terminal then wraps its lines."""
_MIN_COLUMN_WIDTH = 10
"""The width to which a column shrinks at most."""
_EMPTY_COLUMN_WIDTH = 4
"""The width of a column without text."""
_GAP_WIDTH = 5
"""The width of the bar of a lane, and of the space after its text."""
_MARGIN = " " * 5
"""The place for the number of the event."""
_NO_BREAK_SPACE = "\N{NO-BREAK SPACE}"


def terminal_width() -> int:
    """Return the number of characters in a line of the terminal, or a minimum if it is narrow."""
    columns = os.environ.get("COLUMNS", "")
    if columns.isdecimal() and int(columns) > 0:
        width = int(columns)
    else:
        width = _measure_terminal()
    return max(width, _MIN_TERMINAL_WIDTH)


def _measure_terminal() -> int:
    """Return the width of the terminal that stderr or stdin is, or a usual width."""
    # While a command runs, no descriptor with a known number leads to the real stdout, see
    # kit/stdout.py. If the caller has sent stderr to a file, stdin is still the same terminal.
    for descriptor in (_STDERR, _STDIN):
        with suppress(OSError):
            columns = os.get_terminal_size(descriptor).columns
            if columns > 0:
                return columns
    return WIDTH


def timeline(recording: Recording, width: int = WIDTH) -> list[str]:
    """Return the lines of the picture, with a row for each event. Wrap text that does not fit."""
    *lane_widths, state_width = _column_widths(recording, width)
    lines: list[str] = [Painted(_header(recording, lane_widths), BOLD)]
    finished_workers: set[str] = set()
    previous_holders: tuple[str, ...] = ()
    for event in recording.events:
        lanes = []
        for worker, lane_width in zip(recording.workers, lane_widths, strict=True):
            is_finished = worker in finished_workers
            lane = _draw_lane(event, worker, lane_width, previous_holders, is_finished)
            lanes.append(lane)
        for line in _row_lines(event, lanes, _wrap_state(event, state_width)):
            if event.note and recording.is_broken:
                lines.append(Painted(line, RED))
            else:
                lines.append(line)
        previous_holders = event.holds
        if event.over:
            finished_workers.add(event.worker)
    return lines


def _header(recording: Recording, lane_widths: Sequence[int]) -> str:
    """Return the line above the lanes, with the workers and the name of the shared data."""
    header = _MARGIN
    for worker, lane_width in zip(recording.workers, lane_widths, strict=True):
        # The bar of a lane is one character wide, with a space after it.
        header += f"  {worker}".ljust(lane_width + _GAP_WIDTH)
    return header + recording.shared


@dataclass(frozen=True, kw_only=True)
class _Lane:
    """The lane of one worker in one row of the picture."""

    first_bar: str
    """The mark before the first line of text."""
    other_bar: str
    """The mark before the other lines."""
    text: list[str]
    width: int

    def line(self, number: int) -> str:
        """Return one line of the lane, filled with spaces to its width. Count from 0."""
        bar = self.first_bar if number == 0 else self.other_bar
        text = self.text[number] if number < len(self.text) else ""
        return f"{bar}{text}".ljust(self.width + _GAP_WIDTH)


def _row_lines(event: Event, lanes: Sequence[_Lane], state: Sequence[str]) -> Iterator[str]:
    """Yield the lines of one row. There are several if a text is wrapped."""
    height = max(len(state), *(len(lane.text) for lane in lanes))
    for number in range(height):
        line = _MARGIN
        if number == 0:
            line = f"{event.seq:>3}  "
        for lane in lanes:
            line += lane.line(number)
        if number < len(state):
            line += state[number]
        yield line.rstrip()


def _draw_lane(
    event: Event,
    worker: str,
    width: int,
    previous_holders: Sequence[str],
    is_finished: bool,
) -> _Lane:
    """Return the lane of a worker in the row of an event.

    `previous_holders` are the workers that held the lock before the event.
    """
    text = []
    if event.worker == worker:
        text = _wrap(describe_step(event), width)
    first_bar, other_bar = _bars(event, worker, previous_holders, is_finished)
    return _Lane(first_bar=first_bar, other_bar=other_bar, text=text, width=width)


def _bars(
    event: Event,
    worker: str,
    previous_holders: Sequence[str],
    is_finished: bool,
) -> tuple[str, str]:
    """Return the marks of a worker's lane: in the first line of a row, and in the lines below."""
    if worker in event.waiting:
        return f"{_WAITING_MARK} ", f"{_WAITING_MARK} "
    held_lock_before = worker in previous_holders
    holds_lock_now = worker in event.holds
    if holds_lock_now:
        first_bar = "│ " if held_lock_before else "┌ "
        return first_bar, "│ "
    if event.worker == worker:
        first_bar = "└ " if held_lock_before else "  "
        return first_bar, "  "
    if is_finished:
        return "", ""
    return f"  {_IDLE_MARK}", ""


def legend(recordings: Sequence[Recording], width: int = WIDTH) -> list[str]:
    """Return the lines of a legend for the signs in these pictures."""
    entries = []
    for entry in _legend_entries(recordings):
        # A line may be wrapped between entries, but not within one.
        entries.append(entry.replace(" ", _NO_BREAK_SPACE))
    lines = _wrap(f"Signs: {', '.join(entries)}", width)
    return [line.replace(_NO_BREAK_SPACE, " ") for line in lines]


def _legend_entries(recordings: Sequence[Recording]) -> Iterator[str]:
    """Yield a legend entry for each kind of sign that occurs."""
    events = _all_events(recordings)
    yield "A1 is A's first step"
    if any(event.holds for event in events):
        yield "┌ │ └ holds the lock"
    if any(event.waiting for event in events):
        yield f"{_WAITING_MARK} has to wait"
    if any(len(recording.workers) > 1 for recording in recordings):
        yield f"{_IDLE_MARK} stands still"
    for sign in _used_faults(recordings):
        yield f"A{sign} is {FAULTS[sign]}"
    if any(event.note for event in events):
        yield f"{_PROBLEM_MARK} marks what is wrong"


def _all_events(recordings: Sequence[Recording]) -> list[Event]:
    """Return the events of all recordings."""
    events: list[Event] = []
    for recording in recordings:
        events += recording.events
    return events


def _used_faults(recordings: Sequence[Recording]) -> list[str]:
    """Return the signs of the faults that occur in the schedules."""
    schedules = " ".join(recording.schedule for recording in recordings)
    return [sign for sign in FAULTS if sign in schedules]


def describe_step(event: Event) -> str:
    """Return the text for an event in its lane: the step, and whether the worker waits."""
    text = event.step
    if event.is_fault:
        text = event.step.upper()
    elif event.outcome == "blocked":
        text = f"{event.step}: has to wait"
    elif event.outcome == "resumed":
        text = f"{event.step}: has it now"
    return printable(text)


def _wrap(text: str, width: int) -> list[str]:
    """Return the lines of a text. Words are not broken."""
    return wrap(text, width, break_long_words=False, break_on_hyphens=False)


def _column_widths(recording: Recording, width: int) -> list[int]:
    """Return the width of each lane and of the last column. Shrink the widest ones to fit."""
    columns = []
    for worker in recording.workers:
        steps = [describe_step(event) for event in recording.events if event.worker == worker]
        columns.append(steps)
    columns.append([recording.shared, *(_describe_state(event) for event in recording.events)])

    widths = []
    for texts in columns:
        widths.append(max([_EMPTY_COLUMN_WIDTH, *(len(text) for text in texts)]))
    available = width - len(_MARGIN) - _GAP_WIDTH * len(recording.workers)
    while sum(widths) > available and max(widths) > _MIN_COLUMN_WIDTH:
        widest = widths.index(max(widths))
        widths[widest] -= 1
    return widths


def _describe_state(event: Event) -> str:
    """Return the text of the last column: the shared state, and the note of the event."""
    if event.note is None:
        return printable(event.state)
    return printable(f"{event.state}   {_PROBLEM_MARK} {event.note.rstrip('.')}")


def _wrap_state(event: Event, width: int) -> list[str]:
    """Return the lines of the last column. If the note does not fit, it begins a new line."""
    text = _describe_state(event)
    if len(text) <= width:
        return _wrap(text, width)
    state, mark, note = text.partition(f"   {_PROBLEM_MARK}")
    lines = _wrap(state, width)
    if mark:
        lines += _wrap(f"{_PROBLEM_MARK}{note}", width)
    return lines
