"""The layout of a help page: a usage line, paragraphs, and sections, as wide as the terminal.

Lines are only broken between words. The name of an option is not broken at its hyphens.
"""

from dataclasses import dataclass
from typing import Any, Protocol

from .text import BOLD, PLAIN, between_words

_MAX_WIDTH = 110
_MAX_NAME_WIDTH = 34
"""The meaning of a longer name begins on the next line."""


@dataclass(frozen=True)
class Item:
    """A name, such as an option, and what it means."""

    name: str
    meaning: str
    note: str = ""
    """A remark in brackets, such as `[default: 100]`. It is not broken if it fits in one line."""


class Section(Protocol):
    """A part of a page below a heading."""

    @property
    def title(self) -> str:
        """The heading."""
        ...

    def lines(self, width: int) -> list[str]:
        """Return the lines below the heading. A section without lines is not shown."""
        ...


@dataclass(frozen=True)
class ItemSection:
    """Names in one column, and what they mean in another."""

    title: str
    items: list[Item]

    def lines(self, width: int) -> list[str]:
        """Return the rows."""
        if not self.items:
            return []
        longest_name = max(len(item.name) for item in self.items)
        name_width = min(longest_name, _MAX_NAME_WIDTH, width // 2)
        lines = []
        for item in self.items:
            lines += _rows(item, name_width, width)
        return lines


@dataclass(frozen=True)
class TextSection:
    """A text that is broken into lines."""

    title: str
    text: str

    def lines(self, width: int) -> list[str]:
        """Return the indented lines of the text."""
        return between_words(self.text, width, "  ", "  ")


@dataclass(frozen=True)
class CommandSection:
    """Command lines to copy. They are not broken into lines."""

    title: str
    command_lines: list[str]

    def lines(self, width: int) -> list[str]:
        """Return the indented command lines."""
        return [f"  {command_line}" for command_line in self.command_lines]


@dataclass(frozen=True)
class Page:
    """A help page."""

    usage: str
    """A command line such as `tool config get [OPTIONS] KEY`, or "" on a page about no command."""
    about: str
    """Paragraphs, the first of which is one line."""
    sections: list[Section]
    footer: tuple[str, ...] = ()
    """Paragraphs below the sections."""

    def text(self, width: int, bold: bool) -> str:
        """Return the page. `bold` says whether headings are bold."""
        width = min(width, _MAX_WIDTH)
        blocks: list[list[str]] = []
        if self.usage:
            usage = between_words(f"Usage: {self.usage}", width, "", "    ")
            # Lines are broken first: the codes for bold text take up no room on the terminal.
            usage[0] = _heading("Usage", bold) + usage[0].removeprefix("Usage:")
            blocks.append(usage)
        indent = "  " if self.usage else ""
        for paragraph in self.about.split("\n\n"):
            blocks.append(between_words(paragraph, width, indent, indent))
        for section in self.sections:
            lines = section.lines(width)
            if lines:
                blocks.append([_heading(section.title, bold), *lines])
        for paragraph in self.footer:
            blocks.append(between_words(paragraph, width))
        return "\n\n".join("\n".join(block) for block in blocks if block)


def option_item(described: dict[str, Any]) -> Item:
    """Return the row for an option or an argument. `described` is what the manifest says of it."""
    deprecated: dict[str, str] = described.get("deprecated_flags", {})
    flags: list[str] = described.get("flags", [])
    current_flags = [flag for flag in flags if flag not in deprecated]
    shown_flags = current_flags if current_flags else flags
    names = ", ".join(sorted(shown_flags, key=len))
    name = f"{names} {described.get('metavar', '')}".strip()
    if flags and not current_flags:
        return Item(name, f"Deprecated. {' '.join(deprecated.values())}")
    return Item(name, described.get("help", ""), _note(described, list(deprecated)))


def _note(described: dict[str, Any], deprecated_flags: list[str]) -> str:
    """Return the default, the limits and the former names of an option, in brackets."""
    notes = []
    default = described.get("shown_default", described.get("default"))
    if default is not None:
        notes.append(f"default: {default}")
    minimum = described.get("minimum")
    maximum = described.get("maximum")
    if minimum is not None and maximum is not None:
        notes.append(f"{minimum} to {maximum}")
    elif minimum is not None:
        notes.append(f"at least {minimum}")
    # An argument shows by its brackets in the usage line whether it is required.
    if described["required"] and "flags" in described:
        notes.append("required")
    if deprecated_flags:
        notes.append(f"deprecated: {', '.join(deprecated_flags)}")
    return f"[{'; '.join(notes)}]" if notes else ""


def _heading(title: str, bold: bool) -> str:
    return f"{BOLD}{title}:{PLAIN}" if bold else f"{title}:"


def _rows(item: Item, name_width: int, width: int) -> list[str]:
    """Return the lines of one item. A long name has a line of its own."""
    meaning_width = width - name_width - len("    ")
    meaning = _meaning_lines(item, meaning_width)
    rows = []
    name = item.name
    if len(name) > name_width or not meaning:
        rows.append(f"  {name}")
        name = ""
    for line in meaning:
        rows.append(f"  {name:<{name_width}}  {line}")
        # Only the first line of the meaning is next to the name.
        name = ""
    return rows


def _meaning_lines(item: Item, width: int) -> list[str]:
    """Return the meaning and the note in lines of this width."""
    lines = between_words(item.meaning, width)
    if not item.note:
        return lines
    if lines:
        last_line_with_note = f"{lines[-1]} {item.note}"
        if len(last_line_with_note) <= width:
            return [*lines[:-1], last_line_with_note]
    return lines + between_words(item.note, width)
