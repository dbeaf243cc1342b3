"""Draw a recorded terminal session as an animated SVG, without scripts."""

from html import escape

from docs.show.recording import Line

_COLUMN_WIDTH = 7.3
_LINE_HEIGHT = 17
_MARGIN = 14

_STYLE = """
text { font: 12px ui-monospace, Menlo, Consolas, monospace; fill: #1f2328 }
text { opacity: 0; animation: show 0s forwards }
.command { font-weight: bold }
.user1 { fill: #0b6e7f }
.user2 { fill: #8a2c9c }
@keyframes show { to { opacity: 1 } }
@media (prefers-reduced-motion: reduce) { text { animation-delay: 0s !important } }
"""


def animation(lines: list[Line], title: str) -> str:
    """Return the picture. Each line appears when it appeared in the recording, and stays."""
    users = sorted({line.user for line in lines if line.user})
    columns = max(len(line.text) for line in lines)
    width = round(columns * _COLUMN_WIDTH) + 2 * _MARGIN
    height = len(lines) * _LINE_HEIGHT + 2 * _MARGIN
    elements = [
        '<svg xmlns="http://www.w3.org/2000/svg" '
        f'width="{width}" height="{height}" viewBox="0 0 {width} {height}">',
        f"<title>{escape(title)}</title>",
        f"<style>{_STYLE}</style>",
        f'<rect width="{width}" height="{height}" rx="8" fill="#f6f8fa"/>',
    ]
    for number, line in enumerate(lines):
        classes = []
        if line.is_command:
            classes.append("command")
        if line.user:
            classes.append(f"user{users.index(line.user) + 1}")
        y = _MARGIN + (number + 1) * _LINE_HEIGHT - 4
        elements.append(
            f'<text xml:space="preserve" x="{_MARGIN}" y="{y}" class="{" ".join(classes)}" '
            f'style="animation-delay: {line.seconds:.1f}s">{escape(line.text)}</text>'
        )
    elements.append("</svg>")
    return "\n".join(elements) + "\n"
