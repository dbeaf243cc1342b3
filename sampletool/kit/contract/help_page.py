"""Help for a person: sections of names and what they mean, as wide as the terminal.

A line breaks between words only: never inside a word, and never inside the name of an option.
"""

from typing import Any, NamedTuple

from .text import BOLD, PLAIN, between_words

_WIDEST = 110
_WIDEST_NAMES = 34
"""What a longer name means begins on the next line."""

Item = tuple[str, str]


class Page(NamedTuple):
    usage: str
    about: str
    """Paragraphs, the first of one line."""
    sections: list[tuple[str, list[Item]]]
    footer: str

    def text(self, width: int, bold: bool) -> str:
        width = min(width, _WIDEST)

        def heading(text: str) -> str:
            return f"{BOLD}{text}{PLAIN}" if bold else text

        blocks = [between_words(self.usage, width, f"{heading('Usage:')} ", "    ")]
        blocks += [between_words(paragraph, width, "  ", "  ") for paragraph in self.about.split("\n\n") if paragraph]
        for title, items in self.sections:
            blocks += [[heading(f"{title}:"), *_listed(items, width)]] if items else []
        blocks.append(between_words(self.footer, width))
        return "\n\n".join("\n".join(block) for block in blocks)


def option_item(described: dict[str, Any]) -> Item:
    """An option or argument, as it is described for programs, in two columns."""
    metavar = described.get("metavar", "")
    names = ", ".join(sorted(described.get("flags", ()), key=len))
    notes = [f"default: {described['default']}"] if "default" in described else []
    if (low := described.get("minimum")) is not None:
        notes.append(f"{low} to {described['maximum']}" if "maximum" in described else f"at least {low}")
    if described["required"] and names:
        notes.append("required")
    said = [described.get("help", ""), f"[{'; '.join(notes)}]" if notes else ""]
    return f"{names} {metavar}".strip(), "  ".join(text for text in said if text)


def _listed(items: list[Item], width: int) -> list[str]:
    column = 2 + min(_WIDEST_NAMES, width // 2, max(len(name) for name, _ in items))
    lines: list[str] = []
    for name, meaning in items:
        if len(name) > column - 2 or not meaning:
            lines, name = [*lines, f"  {name}"], ""
        for line in between_words(meaning, width - column - 2):
            lines, name = [*lines, f"  {name:<{column}}{line}"], ""
    return lines
