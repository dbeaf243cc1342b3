"""A recorded run as an SVG picture: a lane for each worker, one for what they share, time from top to bottom.

It needs nothing from anywhere: no font, no script, no image. Each text has the width that was counted for it, so no
label leaves its box, whatever font there is. Colours follow the reader's light or dark mode, and
nothing is told by colour alone: who is alone is a bar, who waits is hatched, what broke it is marked in words.
"""

from collections.abc import Sequence
from html import escape
from pathlib import Path

from sampletool.kit.contract.text import printable
from sampletool.kit.safety.atomic_file import replace
from sampletool.lab.draw import label
from sampletool.lab.recording import Event, Recording

_ROW, _HEAD, _MARGIN, _LETTER, _LEGEND = 30, 74, 16, 7.9, 36
_STYLE = """
svg{font:13px ui-monospace,SFMono-Regular,Menlo,Consolas,monospace;color-scheme:light dark}
.page{fill:#fff}.text{fill:#1f2328}.faint{fill:#59636e}.lane{stroke:#d1d9e0}.box{fill:#eef4fb;stroke:#4a7ab5}
.hold{fill:#1a7f37}.wait{fill:url(#hatch)}.bad{fill:#c4122f;font-weight:bold}.struck{fill:#fbeef0;stroke:#c4122f}
.line{stroke:#59636e}.head{font-weight:bold}
@media (prefers-color-scheme:dark){.page{fill:#0d1117}.text{fill:#e6edf3}.faint{fill:#9198a1}.lane{stroke:#3d444d}
.box{fill:#13233a;stroke:#6ea8e6}.hold{fill:#3fb950}.bad{fill:#ff7b82}.struck{fill:#3a1319;stroke:#ff7b82}.line{stroke:#9198a1}}
""".strip()


def write_svg(path: Path, recordings: Sequence[Recording]) -> None:
    replace(path.resolve(), svg(recordings).encode())


def svg(recordings: Sequence[Recording]) -> str:
    """One picture; several runs lie one below the other."""
    parts, top, width = [], 0, 0
    for recording in recordings:
        part, part_width, part_height = _picture(recording, top)
        parts.append(part)
        top, width = top + part_height, max(width, part_width)
    part, part_width = _legend(recordings, top)
    parts.append(part)
    top, width = top + _LEGEND, max(width, part_width)
    told = ". ".join(f"{run.variant} {run.verdict}: {_in_words(run)}" for run in recordings)
    name = recordings[0].scenario
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {top}" width="{width}" height="{top}" '
        f'role="img" aria-labelledby="title told">\n<title id="title">{_safe(name)}</title>\n'
        f'<desc id="told">{_safe(told)}</desc>\n<style>{_STYLE}</style>\n'
        '<defs><pattern id="hatch" width="6" height="6" patternUnits="userSpaceOnUse" patternTransform="rotate(45)">'
        '<path class="line" d="M0 0V6" stroke-width="2"/></pattern></defs>\n'
        f'<rect class="page" width="{width}" height="{top}"/>\n' + "".join(parts) + "</svg>\n"
    )


def _picture(recording: Recording, top: int) -> tuple[str, int, int]:
    lanes, shared = {}, _MARGIN + 30.0
    for letter in recording.workers:
        said = [len(label(event)) for event in recording.events if event.worker == letter]
        lanes[letter] = shared
        shared += max([*said, 8]) * _LETTER + 46
    longest = max([len(f"{event.state}   {event.note or ''}") for event in recording.events] + [len(recording.shared)])
    headline = f"{recording.variant} {recording.verdict}: schedule {recording.schedule}"
    width = round(max(shared + longest * _LETTER + 60, len(headline) * _LETTER + 2 * _MARGIN))
    height = _HEAD + _ROW * len(recording.events) + _MARGIN
    bottom = top + height - _MARGIN
    style = "bad" if recording.is_broken else "text head"
    out = [_text(_MARGIN, top + 28, headline, style)]
    for left, lane, head in [*((x, x, letter) for letter, x in lanes.items()), (shared, shared - 12, recording.shared)]:
        out.append(_text(left, top + 56, head, "text head"))
        out.append(f'<path class="lane" d="M{lane:g} {top + 64}V{bottom}"/>\n')
    held: tuple[str, ...] = ()
    for row, event in enumerate(recording.events):
        y = top + _HEAD + row * _ROW
        out.append(_text(_MARGIN, y + 18, str(event.seq), "faint"))
        out += [_row(event, letter, left, y, held) for letter, left in lanes.items()]
        held = event.holds
        out.append(_text(shared, y + 18, event.state, "text"))
        if event.note:
            left, note = shared + (len(event.state) + 2) * _LETTER, f"\N{LEFTWARDS ARROW} {event.note}"
            out.append(_text(left, y + 18, note, "bad" if recording.is_broken else "faint"))
    return "".join(out), width, height


def _legend(recordings: Sequence[Recording], top: int) -> tuple[str, int]:
    """What the signs mean that are used."""
    events = [event for recording in recordings for event in recording.events]
    used = {"holds the lock": "hold"} if any(event.holds for event in events) else {}
    used |= {"has to wait": "wait"} if any(event.waiting for event in events) else {}
    used |= {"is struck": "struck"} if any(event.outcome == "struck" for event in events) else {}
    out, left = "", float(_MARGIN)
    for meaning, style in used.items():
        out += f'<rect class="{style}" x="{left:g}" y="{top + 6}" width="10" height="16"/>\n'
        out += _text(left + 18, top + 19, meaning, "faint")
        left += 18 + (len(meaning) + 3) * _LETTER
    return out, round(left)


def _row(event: Event, letter: str, left: float, y: float, held: tuple[str, ...]) -> str:
    """`held` names the worker that held the lock before: the release is part of the step that ends it."""
    out = ""
    if letter in event.holds or (letter in held and event.worker == letter):
        out += f'<rect class="hold" x="{left - 3:g}" y="{y}" width="6" height="{_ROW}"/>\n'
    if letter in event.waiting:
        out += f'<rect class="wait" x="{left - 5:g}" y="{y}" width="10" height="{_ROW}"/>\n'
    if event.worker == letter:
        text = label(event)
        style = "struck" if event.outcome == "struck" else "box"
        width = len(text) * _LETTER + 16
        out += f'<rect class="{style}" x="{left + 8:g}" y="{y + 2}" width="{width:g}" height="{_ROW - 6}" rx="4"/>\n'
        out += _text(left + 16, y + 18, text, "text")
    return out


def _in_words(recording: Recording) -> str:
    """The picture in words, for screen readers."""
    return "; ".join(
        f"{event.worker} {label(event)}, then {recording.shared} holds {event.state}"
        + (f", {event.note}" if event.note else "")
        for event in recording.events
    )


def _text(x: float, y: float, text: str, style: str) -> str:
    """As wide as it was counted, whatever font there is."""
    width = f'textLength="{len(printable(text)) * _LETTER:g}" lengthAdjust="spacingAndGlyphs"' if text else ""
    return f'<text class="{style}" x="{x:g}" y="{y:g}" {width}>{_safe(text)}</text>\n'


def _safe(text: str) -> str:
    return escape(printable(text))
