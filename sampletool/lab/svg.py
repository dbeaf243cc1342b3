"""A recorded run as an SVG picture: the picture in text, drawn, with time from top to bottom.

It needs nothing from anywhere: no font, no script, no image. Each text has the width that was counted for it, so no
label leaves its place, whatever font there is. Colours follow the reader's light or dark mode, and
nothing is said by colour alone: a bar is who is alone, hatched is who waits, what broke it is marked in words.
"""

import re
from collections.abc import Sequence
from html import escape

from ..kit.contract.table import Painted
from ..kit.contract.text import BOLD, RED, printable
from .draw import label, legend, timeline
from .recording import Recording

_ROW, _MARGIN, _LETTER, _WIDTH = 28, 16, 7.9, 110
_BARS = {"┌": "hold", "│": "hold", "└": "hold", "░": "wait"}
_STYLE = """
svg{font:13px ui-monospace,SFMono-Regular,Menlo,Consolas,monospace;color-scheme:light dark}
.page{fill:#fff}.text{fill:#1f2328}.hold{fill:#1a7f37}.wait{fill:url(#hatch)}.line{stroke:#59636e}
.bad{fill:#c4122f;font-weight:bold}.head{fill:#1f2328;font-weight:bold}
@media (prefers-color-scheme:dark){.page{fill:#0d1117}.text,.head{fill:#e6edf3}.hold{fill:#3fb950}.bad{fill:#ff7b82}
.line{stroke:#9198a1}}
""".strip()


def svg(recordings: Sequence[Recording]) -> str:
    """One picture; several runs lie one below the other."""
    lines: list[str] = []
    for run in recordings:
        headline = f"{run.variant} {run.verdict}: schedule {run.schedule}"
        lines += [Painted(headline, RED if run.is_broken else BOLD), *timeline(run, _WIDTH), ""]
    lines += legend(recordings, _WIDTH)
    width, height = (
        round(max(map(len, lines)) * _LETTER) + 2 * _MARGIN,
        len(lines) * _ROW + 2 * _MARGIN,
    )
    description = ". ".join(f"{run.variant} {run.verdict}: {_in_words(run)}" for run in recordings)
    drawn = (_drawn(line, _MARGIN + number * _ROW) for number, line in enumerate(lines))
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" '
        f'role="img" aria-labelledby="title description">\n<title id="title">{escape(recordings[0].scenario)}</title>\n'
        f'<desc id="description">{escape(printable(description))}</desc>\n<style>{_STYLE}</style>\n'
        '<defs><pattern id="hatch" width="6" height="6" patternUnits="userSpaceOnUse" patternTransform="rotate(45)">'
        '<path class="line" d="M0 0V6" stroke-width="2"/></pattern></defs>\n'
        f'<rect class="page" width="{width}" height="{height}"/>\n{"".join(drawn)}</svg>\n'
    )


def _drawn(line: str, top: int) -> str:
    """Each word where it is in the text, and as wide as it was counted; a sign of a lane as a bar."""
    style = {RED: "bad", BOLD: "head"}.get(getattr(line, "colour", ""), "text")
    out = ""
    for found in re.finditer(r"[┌│└░]|[^\s┌│└░]+(?: [^\s┌│└░]+)*", line):
        left, text = _MARGIN + found.start() * _LETTER, found[0]
        if text in _BARS:
            out += f'<rect class="{_BARS[text]}" x="{left:g}" y="{top}" width="{_LETTER:g}" height="{_ROW}"/>\n'
        else:
            wide = f'textLength="{len(text) * _LETTER:g}" lengthAdjust="spacingAndGlyphs"'
            out += (
                f'<text class="{style}" x="{left:g}" y="{top + 18}" {wide}>{escape(text)}</text>\n'
            )
    return out


def _in_words(recording: Recording) -> str:
    """The picture in words, for screen readers."""
    return "; ".join(
        f"{event.worker} {label(event)}, then {recording.shared} holds {event.state}"
        + (f", {event.note}" if event.note else "")
        for event in recording.events
    )
