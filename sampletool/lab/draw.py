"""A recorded run as a picture in text: a lane for each worker, and what the shared thing holds.

A bar marks the worker that holds the lock, shading one that waits, an arrow the step that broke the invariant. Every
line is a list of pieces with a style, so that the plain picture and the coloured one are the same picture.
"""

from collections.abc import Sequence

from sampletool.kit.contract.text import printable
from sampletool.lab.recording import Event, Recording

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


def plain(lines: Sequence[Line]) -> list[str]:
    return ["".join(text for text, _ in line).rstrip() for line in lines]


def painted(lines: Sequence[Line]) -> list[str]:
    """With colour. What comes from a file is escaped first, as render.py does for plain lines."""

    def paint(text: str, style: str) -> str:
        code = _STYLES.get(style, "")
        return f"\x1b[{code}m{printable(text)}\x1b[0m" if code and text.strip() else printable(text)

    return ["".join(paint(text, style) for text, style in line) for line in lines]


def timeline(recording: Recording) -> list[Line]:
    """One row for each thing that happened, from top to bottom."""
    widths = {letter: _lane_width(recording, letter) for letter in recording.workers}
    header: Line = [("     ", "")]
    for letter in recording.workers:
        header.append((f"  {letter}".ljust(widths[letter]), letter))
    lines: list[Line] = [[*header, (recording.shared, "bold")]]
    over: set[str] = set()
    held: tuple[str, ...] = ()
    state = None
    for event in recording.events:
        line: Line = [(f"{event.seq:>3}  ", "faint")]
        for letter in recording.workers:
            text, style = _cell(event, letter, held, over)
            line.append((text.ljust(widths[letter]), style))
        line.append((event.state, "faint" if event.state == state else ""))
        if event.note:
            line.append((f"   <== {event.note.rstrip('.')}", "bad" if recording.is_broken else "bold"))
        lines.append(line)
        held, state = event.holds, event.state
        if event.over:
            over.add(event.worker)
    return lines


def label(event: Event) -> str:
    """The step, as people say it."""
    return {
        "done": event.step,
        "blocked": f"{event.step}: has to wait",
        "resumed": f"{event.step}: has it now",
        "struck": event.step.upper(),
    }[event.outcome]


def _cell(event: Event, letter: str, held: tuple[str, ...], over: set[str]) -> Piece:
    acts = event.worker == letter
    holds, held_before = letter in event.holds, letter in held
    bar = "┌ " if holds and not held_before else "│ " if holds else "└ " if held_before and acts else "  "
    if letter in event.waiting:
        return f"{_WAITS} {label(event) if acts else ''}", letter
    if acts:
        return f"{bar}{label(event)}", "bad" if event.outcome == "struck" else letter
    if letter in over:
        return "", "faint"
    return (bar, letter) if holds else (f"  {_IDLE}", "faint")


def _lane_width(recording: Recording, letter: str) -> int:
    return max([len(label(event)) for event in recording.events if event.worker == letter] + [4]) + 5
