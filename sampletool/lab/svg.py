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
from .draw import label, legend, timeline
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
    lines: list[str] = []
    for run in recordings:
        headline = f"{run.variant} {run.verdict}: schedule {run.schedule}"
        colour = RED if run.is_broken else BOLD
        lines += [Painted(headline, colour), *timeline(run, _LINE_CHARACTERS), ""]
    lines += legend(recordings, _LINE_CHARACTERS)

    longest = max(len(line) for line in lines)
    width = round(longest * _CHARACTER_WIDTH) + 2 * _MARGIN
    height = len(lines) * _ROW_HEIGHT + 2 * _MARGIN
    title = escape(recordings[0].scenario)
    description = escape(printable(_describe_all(recordings)))
    elements: list[str] = []
    for number, line in enumerate(lines):
        elements += _draw(line, _MARGIN + number * _ROW_HEIGHT)
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


def _draw(line: str, top: int) -> Iterator[str]:
    """Yield the SVG elements of one line: each group of words, and each bar of a lane."""
    text_class = _TEXT_CLASSES.get(getattr(line, "colour", ""), "text")
    for found in re.finditer(r"[┌│└░]|[^\s┌│└░]+(?: [^\s┌│└░]+)*", line):
        left = _MARGIN + found.start() * _CHARACTER_WIDTH
        text = found[0]
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
        descriptions.append(f"{run.variant} {run.verdict}: {_describe(run)}")
    return ". ".join(descriptions)


def _describe(recording: Recording) -> str:
    """Return a description of one run."""
    descriptions = []
    for event in recording.events:
        description = f"{event.worker} {label(event)}, then {recording.shared} holds {event.state}"
        if event.note:
            description = f"{description}, {event.note}"
        descriptions.append(description)
    return "; ".join(descriptions)
