"""A recorded run as a picture in text: a lane for each worker, and what the shared thing holds.

A bar marks the worker that holds the lock, shading one that waits, an arrow the step that broke the invariant. Every
line is a list of pieces with a style, so that the plain picture and the coloured one are the same picture.
"""

from collections.abc import Sequence
from shutil import get_terminal_size
from textwrap import TextWrapper

from sampletool.kit.contract.text import printable
from sampletool.lab.recording import Event, Recording
from sampletool.lab.scenario import STRIKES

WIDTH = 80
"""Where there is no terminal."""

Piece = tuple[str, str]
"""Text and the name of its style."""
Line = list[Piece]

_STYLES = {
    "": "",
    "bold": "1",
    "faint": "2",
    "bad": "1;31",
    "good": "1;32",
    "A": "36",
    "B": "35",
    "C": "33",
    "D": "34",
}
_WAITS, _IDLE = "░", "·"
_LEAST_WIDTH, _NARROWEST, _GAP = 40, 10, 5
_NO_BREAK = "\N{NO-BREAK SPACE}"


def plain(lines: Sequence[Line]) -> list[str]:
    return ["".join(text for text, _ in line).rstrip() for line in lines]


def painted(lines: Sequence[Line]) -> list[str]:
    """With colour. What comes from a file is escaped first, as render.py does for plain lines."""

    def paint(text: str, style: str) -> str:
        code = _STYLES.get(style, "")
        return f"\x1b[{code}m{printable(text)}\x1b[0m" if code and text.strip() else printable(text)

    return ["".join(paint(text, style) for text, style in line) for line in lines]


def terminal_width() -> int:
    return max(get_terminal_size((WIDTH, 24)).columns, _LEAST_WIDTH)


def timeline(recording: Recording, width: int = WIDTH) -> list[Line]:
    """One row for each thing that happened, from top to bottom. What does not fit goes on below, between words."""
    *lanes, last = _widths(recording, width)
    header: Line = [("     ", "")]
    header += [
        (f"  {letter}".ljust(lane + _GAP), letter) for letter, lane in zip(recording.workers, lanes, strict=True)
    ]
    lines: list[Line] = [[*header, (recording.shared, "bold")]]
    over: set[str] = set()
    held: tuple[str, ...] = ()
    state = None
    for event in recording.events:
        cells = [_cell(event, letter, held, over) for letter in recording.workers]
        said = [_wrapped(text, lane) for (_, _, text, _), lane in zip(cells, lanes, strict=True)]
        seen = _shared(event, last, "faint" if event.state == state else "", is_broken=recording.is_broken)
        for row in range(max(len(seen), *map(len, said))):
            line: Line = [(f"{event.seq:>3}  " if row == 0 else "     ", "faint")]
            for (bar, bar_below, _, style), text, lane in zip(cells, said, lanes, strict=True):
                cell = f"{bar_below if row else bar}{text[row] if row < len(text) else ''}"
                line.append((cell.ljust(lane + _GAP), style))
            lines.append([*line, *(seen[row] if row < len(seen) else [])])
        held, state = event.holds, event.state
        if event.over:
            over.add(event.worker)
    return lines


def legend(recordings: Sequence[Recording], width: int = WIDTH) -> list[Line]:
    """What the signs mean that these pictures have."""
    events = [event for recording in recordings for event in recording.events]
    schedules = " ".join(recording.schedule for recording in recordings)
    signs = {
        "A1": ("A's first step", True),
        "┌ │ └": ("holds the lock", any(event.holds for event in events)),
        _WAITS: ("has to wait", any(event.waiting for event in events)),
        _IDLE: ("stands still", any(len(recording.workers) > 1 for recording in recordings)),
        **{f"A{sign}": (meaning, sign in schedules) for sign, meaning in STRIKES.items()},
        "<==": ("what is wrong", any(event.note for event in events)),
    }
    told = [f"{sign} {meaning}".replace(" ", _NO_BREAK) for sign, (meaning, is_used) in signs.items() if is_used]
    return [[(line.replace(_NO_BREAK, " "), "faint")] for line in _wrapped(f"Signs: {', '.join(told)}", width)]


def paragraph(text: str, width: int, first: Piece = ("", ""), indent: str = "") -> list[Line]:
    """Between words, also if a word is longer than a line. `first` is what it begins with."""
    lines: list[Line] = []
    for part in text.strip().split("\n\n"):
        begins = first if not lines else ("", "")
        found = _wrapped(" ".join(part.split()), width, f"{indent}{begins[0]}", indent)
        lines += [[(line, "")] for line in found]
    if lines and first[0]:
        lines[0] = [(indent, ""), first, (lines[0][0][0][len(indent) + len(first[0]) :], "")]
    return lines


def _wrapped(text: str, width: int, first: str = "", others: str = "") -> list[str]:
    return TextWrapper(width, first, others, break_long_words=False, break_on_hyphens=False).wrap(text)


def _widths(recording: Recording, width: int) -> list[int]:
    """Of the text in each lane, and of the last column; the widest gives way."""
    said = [[label(event) for event in recording.events if event.worker == letter] for letter in recording.workers]
    said.append([recording.shared, *(f"{event.state}{_noted(event)}" for event in recording.events)])
    widths = [max([4, *map(len, column)]) for column in said]
    while sum(widths) > width - 5 - _GAP * len(recording.workers) and max(widths) > _NARROWEST:
        widths[widths.index(max(widths))] -= 1
    return widths


def _noted(event: Event) -> str:
    return f"   <== {event.note.rstrip('.')}" if event.note else ""


def _shared(event: Event, width: int, style: str, *, is_broken: bool) -> list[Line]:
    noted, style_of_note = _noted(event), "bad" if is_broken else "bold"
    if len(event.state + noted) <= width:
        return [[(event.state, style), (noted, style_of_note)]]
    below = [[(line, style_of_note)] for line in _wrapped(noted.strip(), width)]
    return [*([(line, style)] for line in _wrapped(event.state, width)), *below]


def label(event: Event) -> str:
    """The step, as people say it."""
    return {
        "done": event.step,
        "blocked": f"{event.step}: has to wait",
        "resumed": f"{event.step}: has it now",
        "struck": event.step.upper(),
    }[event.outcome]


def _cell(event: Event, letter: str, held: tuple[str, ...], over: set[str]) -> tuple[str, str, str, str]:
    """What marks the lane in the first row, and in those below it; the text; its style."""
    acts = event.worker == letter
    holds, held_before = letter in event.holds, letter in held
    text = label(event) if acts else ""
    if letter in event.waiting:
        return f"{_WAITS} ", f"{_WAITS} ", text, letter
    bar = "┌ " if holds and not held_before else "│ " if holds else "└ " if held_before and acts else "  "
    if acts:
        return bar, "│ " if holds else "  ", text, "bad" if event.outcome == "struck" else letter
    if letter in over:
        return "", "", "", "faint"
    return (bar, bar, "", letter) if holds else (f"  {_IDLE}", "", "", "faint")
