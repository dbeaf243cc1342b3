"""Check that the edit of a TOML text changes one key and nothing else.

An edit passes if both of these are true:

* The old and the new text differ in one *region* only, and the region is what the edit is about.
  For a new value, it is the text of the old one. For a removed key, it is the lines of that key.
  Every other byte stays. Only in a table in braces, blanks next to the region may change too.
  `find_region`, `is_where_value_was` and `removes_one_key` look at the texts.
* tomllib reads the expected document from the new text. `with_value` and `documents_without` return
  the expected document, and `reads_as` compares.

Neither check is enough. An edit can lose a comment without a change of the document. And a change
in one region, such as a new header, can give the keys below it another meaning.
"""

import os
from dataclasses import dataclass

from ..safety.toml_file import parse
from ..safety.toml_limits import comments_in, split_at_delimiters
from .toml_key import KeyPath, TomlTable, TomlValue, value_at


@dataclass(frozen=True)
class Gap:
    """A new text with a gap where the new value belongs."""

    before: str
    after: str

    def filled(self, value_text: str) -> str:
        """Return the text with the value in the gap."""
        return self.before + value_text + self.after


@dataclass(frozen=True)
class Region:
    """The one region in which two texts differ. Before and after it, they are the same."""

    start: int
    old: str
    new: str

    def applied_to(self, old_text: str) -> str:
        """Return the new text."""
        end = self.start + len(self.old)
        return old_text[: self.start] + self.new + old_text[end:]


def is_where_value_was(gap: Gap, text: str, old_value: TomlValue) -> bool:
    """Return whether the gap is in place of the old value, and of nothing else."""
    start = len(gap.before)
    end = len(text) - len(gap.after)
    if start > end or not text.startswith(gap.before) or not text.endswith(gap.after):
        return False
    replaced = text[start:end]
    # If a comment were behind the value, it would hide the bracket, and this would not be TOML.
    return reads_as(f"value = [{replaced}]", {"value": [old_value]})


def find_region(old_text: str, new_text: str) -> Region:
    """Return the region in which two texts differ. It starts at the start of a line if possible.

    The first character that differs can be later: if the line `a1 = 1` is added above `a2 = 2`,
    it is the `1`, because both lines start with `a`.
    """
    start = _common_length(old_text, new_text)
    length_after = _common_length(old_text[start:][::-1], new_text[start:][::-1])
    old_end = len(old_text) - length_after
    new_end = len(new_text) - length_after
    region = Region(start, old_text[start:old_end], new_text[start:new_end])

    start_of_line = old_text.rfind("\n", 0, start) + 1
    offset = start - start_of_line
    moved = Region(
        start=start_of_line,
        old=old_text[start_of_line : max(old_end - offset, start_of_line)],
        new=new_text[start_of_line : max(new_end - offset, start_of_line)],
    )
    if moved.applied_to(old_text) == new_text:
        return moved
    return region


def removes_one_key(old_text: str, region: Region) -> bool:
    """Return whether one key is removed, and no comment of another key."""
    if not is_blank(region.new):
        return False
    end = region.start + len(region.old)
    starts_line = region.start == 0 or old_text[region.start - 1] == "\n"
    ends_line = end == len(old_text) or old_text[end - 1] == "\n"
    if starts_line and ends_line:
        return _is_one_statement(region.old)
    # A part of a table in braces is removed. The comment behind the braces stays.
    new_text = region.applied_to(old_text)
    return "\n" not in region.old and comments_in(new_text) == comments_in(old_text)


def with_value(table: TomlTable, path: KeyPath, value: TomlValue) -> TomlTable:
    """Return a copy of the table with another value for the key."""
    name = path[0]
    changed = dict(table)
    if len(path) == 1:
        changed[name] = value
    else:
        changed[name] = with_value(table.get(name, {}), path[1:], value)
    return changed


def documents_without(document: TomlTable, path: KeyPath) -> list[TomlTable]:
    """Return the document without the key; then also without each table that this leaves empty."""
    documents = []
    for depth in range(len(path) - 1, -1, -1):
        remaining = dict(value_at(document, path[:depth]))
        del remaining[path[depth]]
        if depth == 0:
            documents.append(remaining)
        else:
            documents.append(with_value(document, path[:depth], remaining))
        if remaining:
            break
    return documents


def reads_as(text: str, expected: TomlTable) -> bool:
    """Return whether tomllib reads exactly this document."""
    document = _read(text)
    return document is not None and _is_same(document, expected)


def is_blank(text: str) -> bool:
    """Return whether there is nothing in the text, except for blanks on one line."""
    return text.strip(" \t") == ""


def _is_one_statement(text: str) -> bool:
    """Return whether the lines are one key and its value, and no other line.

    A header is another line, even if the document is the same without it: `[t]` may be followed by
    `[t.u]` later in the file. A comment behind the value belongs to the key.
    """
    if _read(text) is None:
        return False
    pieces = split_at_delimiters(text)
    # A header starts with a bracket. A comment or a blank line ends before there is a delimiter.
    if next(pieces).delimiter != "=":
        return False
    open_brackets = 0
    for piece in pieces:
        if piece.delimiter in {"[", "{"}:
            open_brackets += 1
        elif piece.delimiter in {"]", "}"}:
            open_brackets -= 1
        elif piece.delimiter == "\n" and open_brackets == 0:
            # The statement ends here, so this has to be the end of the text.
            behind = next(pieces)
            return behind.text == "" and behind.delimiter == ""
    return True


def _common_length(one: str, other: str) -> int:
    """Return how many characters are the same at the start of both texts."""
    return len(os.path.commonprefix([one, other]))  # noqa: RUF071 (characters, not directories)


def _read(text: str) -> TomlTable | None:
    """Return the document, or None if the text is not TOML."""
    try:
        return parse(text)
    except ValueError:
        return None


def _is_same(one: TomlValue, other: TomlValue) -> bool:
    """Return whether two values are equal and of the same types. In Python, True == 1 == 1.0."""
    if type(one) is not type(other):
        return False
    if isinstance(one, dict):
        if one.keys() != other.keys():
            return False
        return all(_is_same(value, other[key]) for key, value in one.items())
    if isinstance(one, list):
        if len(one) != len(other):
            return False
        return all(_is_same(value, other[index]) for index, value in enumerate(one))
    # With ==, `nan` would not equal itself, and a time would equal the same time in another zone.
    return repr(one) == repr(other)
