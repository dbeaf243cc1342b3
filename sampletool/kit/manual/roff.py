"""Write roff, the language of man pages, with the macros of man(7).

A line that begins with a dot calls a macro, for example `.SH NAME` for a heading. A backslash
begins an escape sequence. Everything else is text, so all text must pass through `escape`.

Only macros and escape sequences that both groff and mandoc know are used.
"""

import re
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass, field

_ESCAPES = {
    "\\": r"\e",
    # A plain `-` becomes a hyphen, which cannot be copied into a shell. The same is true of the
    # characters below: they become typographic quotation marks and accents.
    "-": r"\-",
    "'": r"\(aq",
    '"': r"\(dq",
    "`": r"\(ga",
    "^": r"\(ha",
    "~": r"\(ti",
}

_LINE_CHARACTERS = 80
"""The longest line of text in the source of a page. `mandoc -Tlint` warns of longer ones."""

_PLACEHOLDER = re.compile(r"([A-Z][A-Z_]+|\b[A-Z]\b)")
"""A word in capital letters, such as `KEY`."""


def escape(text: str) -> str:
    """Return the text with escapes, so that roff prints it as it is: no character is a command."""
    pieces = []
    for character in text:
        if character in _ESCAPES:
            pieces.append(_ESCAPES[character])
        elif character.isascii():
            pieces.append(character)
        else:
            pieces.append(f"\\[u{ord(character):04X}]")
    return "".join(pieces)


def bold(text: str) -> str:
    """Return the escaped text in bold."""
    return rf"\fB{escape(text)}\fR"


def italic(text: str) -> str:
    """Return the escaped text in italics, which a terminal underlines."""
    return rf"\fI{escape(text)}\fR"


def with_italic_placeholders(text: str) -> str:
    """Return the escaped text, with words in capital letters in italics."""
    result = ""
    # With a group in the pattern, every second part is a placeholder.
    for index, part in enumerate(_PLACEHOLDER.split(text)):
        if index % 2 == 1:
            result += italic(part)
        else:
            result += escape(part)
    return result


def with_bold_code(text: str) -> str:
    """Return the escaped text, with code, which is between backticks, in bold."""
    parts = text.split("`")
    has_unpaired_backtick = len(parts) % 2 == 0
    if has_unpaired_backtick:
        return escape(text)
    result = ""
    for index, part in enumerate(parts):
        if index % 2 == 1:
            result += bold(part)
        else:
            result += escape(part)
    return result


@dataclass
class RoffPage:
    """A man page that grows by one element at a time. The text of an element is already escaped."""

    name: str
    """The name of the page, such as `tool-config-set`."""
    date: str
    """The day of the build, such as `2026-11-20`."""
    source: str
    """The program and its version. `man` shows it below the page."""
    _lines: list[str] = field(default_factory=list)

    def heading(self, title: str) -> None:
        """Begin a section."""
        self._lines.append(f".SH {title}")

    def paragraph(self, text: str) -> None:
        """Add a paragraph of text."""
        # A heading begins a paragraph itself.
        if not self._lines[-1].startswith(".SH"):
            self._lines.append(".PP")
        self._add_text(text)

    def item(self, term: str, lines: Sequence[str]) -> None:
        """Add a term, and indented below it what it means, in one line or several."""
        self._lines.append(".TP")
        self._add_line(term)
        for number, text in enumerate(lines):
            if number > 0:
                self._lines.append(".br")
            self._add_text(text)

    def add_examples(self, commands: Sequence[str]) -> None:
        """Add command lines, each on a line of its own, in a monospaced font."""
        self._lines.append(".EX")
        for command in commands:
            self._add_line(command)
        self._lines.append(".EE")

    def render(self) -> str:
        """Return the source of the page."""
        title = escape(self.name.upper())
        source = escape(self.source)
        # The date is not escaped: mandoc does not understand it otherwise.
        heading = f'.TH {title} 1 {self.date} "{source}"'
        # No hyphenation, because it would break names. So do not stretch the lines to equal widths.
        layout = [".nh", ".ad l"]
        return "\n".join([heading, *layout, *self._lines]) + "\n"

    def _add_text(self, text: str) -> None:
        """Add text in lines of any length. `man` breaks the lines to fit the terminal."""
        # A line that begins with a space would be indented.
        lines = textwrap.wrap(
            " ".join(text.split()),
            width=_LINE_CHARACTERS,
            break_long_words=False,
        )
        for line in lines:
            self._add_line(line)

    def _add_line(self, line: str) -> None:
        """Add a line of text. A dot at its beginning calls no macro."""
        if line.startswith("."):
            line = rf"\&{line}"
        self._lines.append(line)
