"""Check that the edit of a TOML text changes one key and nothing else.

An edit passes if both of these are true:

* The old and the new text differ in one place only, and that place is what the edit is about.
  For a new value, it is the text of the old one. For a removed key, it is the lines of that key.
  Every other byte stays. Only in a table in braces, blanks next to the place may change too.
  `find_difference`, `replaces_only_value` and `removes_one_key` look at the texts.
* tomllib reads the expected document from the new text. `with_value` and `documents_without` return
  the expected document, and `reads_as` compares.

Neither check is enough. An edit can lose a comment without a change of the document. And a change
in one place, such as a new header, can give the keys below it another meaning.
"""

import os
from dataclasses import dataclass

from ..safety.toml_file import parse
from ..safety.toml_limits import comments_in, split_at_delimiters
from .toml_key import KeyPath, TomlTable, TomlValue, value_at


@dataclass(frozen=True)
class Template:
    """A TOML text with a gap for one value: what is before the gap, and what is after it."""

    before: str
    after: str

    def filled(self, value_text: str) -> str:
        """Return the text with the value in the template."""
        return self.before + value_text + self.after


@dataclass(frozen=True)
class Difference:
    """The one place in which two texts differ. Before and after it, they are the same."""

    start: int
    """The number of characters before the place. It is the same number in both texts."""
    old: str
    """What is there in the old text. It is empty if something was inserted."""
    new: str
    """What is there in the new text. It is empty if something was removed."""

    def applied_to(self, old_text: str) -> str:
        """Return the new text."""
        end = self.start + len(self.old)
        return old_text[: self.start] + self.new + old_text[end:]


def replaces_only_value(template: Template, old_text: str, old_value: TomlValue) -> bool:
    """Return whether the template, with the old value in its gap, is the old text.

    For example, the old text `a = 1 # one` has the value 1 between `a = ` and ` # one`.
    """
    before, after = template.before, template.after
    if not old_text.startswith(before) or not old_text.endswith(after):
        return False
    # The two parts could overlap, if the old text is shorter than both.
    start = len(before)
    end = len(old_text) - len(after)
    if start > end:
        return False
    replaced = old_text[start:end]
    # The brackets detect a comment behind the value. In `[1 # one]`, the closing bracket would be a
    # part of the comment, so this would not be TOML.
    return reads_as(f"value = [{replaced}]", {"value": [old_value]})


def find_difference(old_text: str, new_text: str) -> Difference:
    """Return the place in which two texts differ. It starts at the start of a line if possible.

    Often several places are possible. If the line `a1 = 1` is added above `a2 = 2`, the first
    character that differs is the `1`, because both lines start with `a`. From there, the new
    characters are `1 = 1`, a line feed, and `a`. But adding `a1 = 1` and a line feed, one character
    earlier, gives the same text. This function returns the latter, because it is a whole line.
    """
    start = _length_of_same_start(old_text, new_text)
    # Only the texts behind `start` are compared, so no character counts as before and after it.
    length_after = _length_of_same_end(old_text[start:], new_text[start:])
    old_end = len(old_text) - length_after
    new_end = len(new_text) - length_after
    difference = Difference(start, old_text[start:old_end], new_text[start:new_end])

    # Move the start and both ends to the left by the same distance, to the start of the line. This
    # is possible if the new text is still the same one then.
    line_start = old_text.rfind("\n", 0, start) + 1
    distance = start - line_start
    moved = Difference(
        start=line_start,
        old=old_text[line_start : old_end - distance],
        new=new_text[line_start : new_end - distance],
    )
    if moved.applied_to(old_text) == new_text:
        return moved
    return difference


def removes_one_key(old_text: str, difference: Difference) -> bool:
    """Return whether the difference is that one key was removed, and no comment of another key.

    A comment behind the value of the key belongs to the key, and may be removed with it.
    """
    if not is_blank(difference.new):
        return False
    end = difference.start + len(difference.old)
    starts_line = difference.start == 0 or old_text[difference.start - 1] == "\n"
    ends_line = end == len(old_text) or old_text[end - 1] == "\n"
    if starts_line and ends_line:
        # Whole lines are removed. One statement contains no comment of another key.
        return _is_one_statement(difference.old)
    # A part of a line is removed: a key in a table in braces. A comment behind the braces is not
    # about this key alone, so all comments have to stay.
    new_text = difference.applied_to(old_text)
    return "\n" not in difference.old and comments_in(new_text) == comments_in(old_text)


def with_value(table: TomlTable, path: KeyPath, value: TomlValue) -> TomlTable:
    """Return a copy of the table in which the key at this path has the value.

    Tables of the path that are missing are added. Those that exist must be tables.
    """
    name = path[0]
    changed = dict(table)
    if len(path) == 1:
        changed[name] = value
    else:
        changed[name] = with_value(table.get(name, {}), path[1:], value)
    return changed


def documents_without(document: TomlTable, path: KeyPath) -> list[TomlTable]:
    """Return the documents that may be left when the key is removed: with and without empty tables.

    A table that has lost its last key disappears if it has no header. If `c` is the only key in
    `a.b.c = 1`, the results are {"a": {"b": {}}}, {"a": {}} and {}.
    """
    documents = []
    # Remove c from a.b. If a.b is empty then, remove b from a, and so on.
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
    document = _parse_or_none(text)
    return document is not None and _is_same(document, expected)


def is_blank(text: str) -> bool:
    """Return whether there is nothing in the text, except for blanks on one line."""
    return text.strip(" \t") == ""


def _is_one_statement(text: str) -> bool:
    """Return whether the lines are one statement `key = value`, and nothing else.

    The value may have several lines, and a comment behind it.
    """
    # A header such as `[t]` has a bracket first, and a comment or a blank line has a line feed
    # first. Only a key has `=` first.
    first_piece = next(split_at_delimiters(text))
    if first_piece.delimiter != "=":
        return False
    # Nothing may follow the first statement. Comparing documents would not notice a header that
    # follows: the document can be the same without it.
    return _parse_or_none(text) is not None and _length_of_first_statement(text) == len(text)


def _length_of_first_statement(text: str) -> int:
    """Return the number of characters up to the line feed that ends the first statement.

    A line feed in brackets or braces does not end it.
    """
    length = 0
    open_brackets = 0
    for piece in split_at_delimiters(text):
        length += len(piece.text) + len(piece.delimiter)
        if piece.delimiter in {"[", "{"}:
            open_brackets += 1
        elif piece.delimiter in {"]", "}"}:
            open_brackets -= 1
        elif piece.delimiter == "\n" and open_brackets == 0:
            break
    return length


def _length_of_same_start(one: str, other: str) -> int:
    """Return how many characters are the same at the start of both texts."""
    return len(os.path.commonprefix([one, other]))  # noqa: RUF071 (characters, not directories)


def _length_of_same_end(one: str, other: str) -> int:
    """Return how many characters are the same at the end of both texts."""
    return _length_of_same_start(one[::-1], other[::-1])


def _parse_or_none(text: str) -> TomlTable | None:
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
