"""Draw recorded runs as an SVG picture: the timeline in text, with time from top to bottom.

The picture needs nothing else: no font, no script, no image. Each text is drawn as wide as its
number of characters, so labels stay in their columns with any font. Colours follow the reader's
light or dark mode. Colour is never the only mark: a bar marks the worker that holds the lock,
hatching marks a worker that waits, and a text marks the broken step.
"""

import re
from collections.abc import Iterator, Sequence
from html import escape

from ..kit.contract.table import Painted
from ..kit.contract.text import BOLD, RED, printable
from .draw import describe_step, legend, timeline
from .recording import Recording

# All sizes are in pixels.
_ROW_HEIGHT = 28
_MARGIN = 16
_CHARACTER_WIDTH = 7.9
_LINE_CHARACTERS = 110
"""The number of characters after which a line of the picture is wrapped."""
_BASELINE = 18
"""The distance of the text from the top of its row."""
_BAR_CLASSES = {"┌": "hold", "│": "hold", "└": "hold", "░": "wait"}
_BAR_OR_WORDS = re.compile(r"[┌│└░]|[^\s┌│└░]+(?: [^\s┌│└░]+)*")
"""A bar, or words with a single space between them."""
_TEXT_CLASSES = {RED: "bad", BOLD: "head"}
_STYLE = """
svg{font:13px ui-monospace,SFMono-Regular,Menlo,Consolas,monospace;color-scheme:light dark}
.page{fill:#fff}.text{fill:#1f2328}.hold{fill:#1a7f37}.wait{fill:url(#hatch)}.line{stroke:#59636e}
.bad{fill:#c4122f;font-weight:bold}.head{fill:#1f2328;font-weight:bold}
@media (prefers-color-scheme:dark){.page{fill:#0d1117}.text,.head{fill:#e6edf3}.hold{fill:#3fb950}\
.bad{fill:#ff7b82}
.line{stroke:#9198a1}}
""".strip()
_HATCH = (
    '<defs><pattern id="hatch" width="6" height="6" patternUnits="userSpaceOnUse" '
    'patternTransform="rotate(45)">'
    '<path class="line" d="M0 0V6" stroke-width="2"/></pattern></defs>'
)


def svg(recordings: Sequence[Recording]) -> str:
    """Return one picture, with the runs below each other."""
    lines = _picture_lines(recordings)
    longest_line = max(len(line) for line in lines)
    width = round(longest_line * _CHARACTER_WIDTH) + 2 * _MARGIN
    height = len(lines) * _ROW_HEIGHT + 2 * _MARGIN
    title = escape(recordings[0].scenario)
    description = escape(printable(_describe_all(recordings)))
    elements: list[str] = []
    for number, line in enumerate(lines):
        elements += _draw_line(line, top=_MARGIN + number * _ROW_HEIGHT)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" '
        f'width="{width}" height="{height}" '
        f'role="img" aria-labelledby="title description">\n'
        f'<title id="title">{title}</title>\n'
        f'<desc id="description">{description}</desc>\n'
        f"<style>{_STYLE}</style>\n"
        f"{_HATCH}\n"
        f'<rect class="page" width="{width}" height="{height}"/>\n'
        f"{''.join(elements)}</svg>\n"
    )


def _picture_lines(recordings: Sequence[Recording]) -> list[str]:
    """Return the picture as text: a headline and a timeline for each run, then the legend."""
    lines: list[str] = []
    for run in recordings:
        headline = f"{run.variant} {run.verdict}: schedule {run.schedule}"
        colour = RED if run.is_broken else BOLD
        lines += [Painted(headline, colour), *timeline(run, _LINE_CHARACTERS), ""]
    return [*lines, *legend(recordings, _LINE_CHARACTERS)]


def _draw_line(line: str, top: int) -> Iterator[str]:
    """Yield the SVG elements of one line: each group of words, and each bar of a lane.

    `top` is the distance of the line from the top of the picture.
    """
    text_class = _TEXT_CLASSES.get(getattr(line, "colour", ""), "text")
    for match in _BAR_OR_WORDS.finditer(line):
        left = _MARGIN + match.start() * _CHARACTER_WIDTH
        text = match[0]
        if text in _BAR_CLASSES:
            yield (
                f'<rect class="{_BAR_CLASSES[text]}" x="{left:g}" y="{top}" '
                f'width="{_CHARACTER_WIDTH:g}" height="{_ROW_HEIGHT}"/>\n'
            )
        else:
            text_width = len(text) * _CHARACTER_WIDTH
            yield (
                f'<text class="{text_class}" x="{left:g}" y="{top + _BASELINE}" '
                f'textLength="{text_width:g}" lengthAdjust="spacingAndGlyphs">'
                f"{escape(text)}</text>\n"
            )


def _describe_all(recordings: Sequence[Recording]) -> str:
    """Return a description of the picture for screen readers."""
    descriptions = []
    for run in recordings:
        descriptions.append(f"{run.variant} {run.verdict}: {_describe_events(run)}")
    return ". ".join(descriptions)


def _describe_events(recording: Recording) -> str:
    """Return a description of the events of one run."""
    descriptions = []
    for event in recording.events:
        step = f"{event.worker} {describe_step(event)}"
        state = f"then {recording.shared} holds {event.state}"
        if event.note:
            state = f"{state}, {event.note}"
        descriptions.append(f"{step}, {state}")
    return "; ".join(descriptions)
