"""Change one key of a TOML text, and leave every other byte of the text as it is.

tomlkit finds the key, or the place for a new one: it parses the text and puts a placeholder there.
Then the text of the value replaces the placeholder. tomlkit is not trusted with the rest of the
file: in rare cases it moves tables, drops a comment, or writes invalid TOML. So each edit is
checked (see toml_check.py), and one that fails a check is refused with CannotEdit. A new key can be
in an unusual place, but no edit stores a wrong value, changes another key, or loses the comment of
another key.

We edited 3,000 random texts and all TOML files of a Python environment. No edit of a file that a
person had written was refused. Most refused edits were in tables in braces that contain dotted keys
or dates: `{a.b = 1, c = 1979-05-27}`.
"""

import os
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from ..safety.toml_file import parse
from ..safety.toml_limits import MAX_TOML_BYTES, TOO_LARGE
from .toml_check import (
    Gap,
    Region,
    documents_without,
    find_region,
    is_blank,
    is_where_value_was,
    reads_as,
    removes_one_key,
    with_value,
)
from .toml_cost import is_expensive
from .toml_key import KeyPath, TomlTable, TomlValue, show_key, show_value, value_at

_MAX_EDITED_PARTS = 50
"""The number of parts of the longest key that is set. tomlkit cannot remove one of 80 parts."""

_UNSAFE = "the edit would change other parts of the file"

_EditedTable = Any
"""A table of tomlkit. Its classes have no useful base class: some of them only look like tables."""

_AddKey = Callable[[_EditedTable, KeyPath, str], None]
"""A function that adds a key to a table of tomlkit. The path starts in this table."""


class CannotEdit(Exception):
    """A change of one key that is refused, because it could damage other parts of the file."""

    def __init__(self, path: KeyPath, reason: str, hint: str = "") -> None:
        super().__init__(f"{show_key(path)} cannot be changed: {reason}")
        self.path = path
        self.reason = reason
        self.hint = hint
        """What the user can do about it. It is empty if only a text editor helps."""


class NotAValue(CannotEdit):
    """A change that is refused because a table is where a value is needed, or the reverse."""

    def __init__(self, path: KeyPath, at: KeyPath, found: TomlValue) -> None:
        if at == path:
            reason = f"{show_key(at)} is a table, not a value"
        else:
            reason = f"{show_key(at)} is not a table"
        super().__init__(path, reason)
        self.at = at
        """The key that is in the way: `path`, or a beginning of it."""
        self.found = found
        """The table or the value of that key."""


def set_value(text: str, path: KeyPath, value: TomlValue) -> str:
    """Return the text with this value for the key. Missing tables are added.

    Raise NotAValue if the value would replace a table, or if a part of the path is not a table.
    Raise CannotEdit if there is no safe edit, and ValueError if the text is not TOML.
    """
    document = parse(text)
    _refuse_wrong_kind(document, path, value)
    if len(path) > _MAX_EDITED_PARTS:
        raise CannotEdit(path, f"it has more than {_MAX_EDITED_PARTS} parts")
    _refuse_expensive(text, path)
    if value_at(document, path) is None:
        new_text = _add_key(text, document, path, value)
    else:
        new_text = _replace_value(text, document, path, value)
    _refuse_expensive(new_text, path)
    # tomlkit cannot parse a list in 100 lists. Without this check, the edit that adds one would be
    # the last edit of the file.
    if _edit(new_text, lambda tables: None) is None:
        raise CannotEdit(path, "the value is nested too deep")
    return new_text


def unset_value(text: str, path: KeyPath) -> str:
    """Return the text without the key. A comment behind its value is removed too.

    The header of a table stays when its last key is removed, and so do empty braces. A table
    without a header, such as `a` in `a.b = 1`, disappears with its last key.

    Raise NotAValue if the key is a table with a header. Raise CannotEdit if there is no such key or
    no safe edit, and ValueError if the text is not TOML.
    """
    document = parse(text)
    found = value_at(document, path)
    if found is None:
        raise CannotEdit(path, "it is not set, or it is in a list of tables")
    _refuse_expensive(text, path)

    def remove_key(tables: _EditedTable) -> None:
        parent = _table_at(tables, path[:-1])
        if not _is_written_as_value(parent[path[-1]]):
            raise NotAValue(path, path, found)
        del parent[path[-1]]

    new_text = _edit(text, remove_key)
    if new_text is None or not removes_one_key(text, find_region(text, new_text)):
        raise CannotEdit(path, _UNSAFE)
    for expected in documents_without(document, path):
        if reads_as(new_text, expected):
            return new_text
    raise CannotEdit(path, _UNSAFE)


def _refuse_wrong_kind(document: TomlTable, path: KeyPath, value: TomlValue) -> None:
    """Raise NotAValue if the value would replace a table, or if a part of the path is no table."""
    for depth in range(1, len(path)):
        found = value_at(document, path[:depth])
        if found is not None and not isinstance(found, dict):
            raise NotAValue(path, path[:depth], found)
    found = value_at(document, path)
    if isinstance(found, dict) and found and not isinstance(value, dict):
        raise NotAValue(path, path, found)


def _refuse_expensive(text: str, path: KeyPath) -> None:
    """Raise CannotEdit if tomlkit could need more than a few seconds to parse the text."""
    if is_expensive(text):
        raise CannotEdit(path, "the file has too many keys with dots in them")


def _replace_value(text: str, document: TomlTable, path: KeyPath, value: TomlValue) -> str:
    """Return the text with another value for a key that has one."""
    old_value = value_at(document, path)
    placeholder = _new_placeholder()

    def put_placeholder(tables: _EditedTable) -> None:
        parent = _table_at(tables, path[:-1])
        if not _is_written_as_value(parent[path[-1]]):
            raise NotAValue(path, path, old_value)
        parent[path[-1]] = placeholder

    gap = _find_gap(_edit(text, put_placeholder), placeholder)
    if gap is None or not is_where_value_was(gap, text, old_value):
        raise CannotEdit(path, _UNSAFE)
    new_text = gap.filled(show_value(value))
    _refuse_large(new_text, path)
    if not reads_as(new_text, with_value(document, path, value)):
        raise CannotEdit(path, _UNSAFE)
    return new_text


def _add_key(text: str, document: TomlTable, path: KeyPath, value: TomlValue) -> str:
    """Return the text with a new key, in the first form that changes nothing else.

    In a table that exists, this is a key, dotted if need be, below the last one. If no part of the
    path exists, it is a new table at the end.
    """
    new_text = _first_safe_form(text, document, path, value)
    if new_text is None and not text.endswith("\n"):
        # tomlkit 0.15 adds the key to the last line if that is a dotted key of three or more parts.
        ended_text = text + _newline_of(text)
        new_text = _first_safe_form(ended_text, document, path, value)
        if new_text is not None and not new_text.startswith(ended_text):
            new_text = None
    if new_text is None:
        raise CannotEdit(path, _UNSAFE)
    return new_text


def _first_safe_form(
    text: str,
    document: TomlTable,
    path: KeyPath,
    value: TomlValue,
) -> str | None:
    """Return the text with a new key, or None if each form changes something else too."""
    depth = _depth_of_nearest_table(document, path)
    forms = [_add_new_table, _add_braces]
    if depth > 0 or len(path) == 1:
        forms.insert(0, _add_dotted_key)
    expected = with_value(document, path, value)
    for add_key in forms:
        region = _region_of_new_key(text, path, depth, add_key, show_value(value))
        if region is None:
            continue
        _refuse_large(region.applied_to(text), path)
        for candidate in (_above_next_header(text, region), region):
            new_text = candidate.applied_to(text)
            if reads_as(new_text, expected):
                return new_text
    return None


def _newline_of(text: str) -> str:
    """Return what the lines of the text end with."""
    if "\r\n" in text:
        return "\r\n"
    return "\n"


def _region_of_new_key(
    text: str,
    path: KeyPath,
    depth: int,
    add_key: _AddKey,
    value_text: str,
) -> Region | None:
    """Return what tomlkit adds for a new key, or None if it changes something else too.

    `depth` is the number of parts of the path that are tables that exist.
    """
    placeholder = _new_placeholder()

    def add(tables: _EditedTable) -> None:
        add_key(_table_at(tables, path[:depth]), path[depth:], placeholder)

    gap = _find_gap(_edit(text, add), placeholder)
    if gap is None:
        return None
    region = find_region(text, gap.filled(value_text))
    if not is_blank(region.old):
        return None
    # tomlkit ends each new line with a line feed, whatever the other lines end with.
    lines = region.new.replace("\r\n", "\n").replace("\n", _newline_of(text))
    return replace(region, new=lines)


def _add_dotted_key(table: _EditedTable, path: KeyPath, value: str) -> None:
    """Add `b.c = value`."""
    import tomlkit  # 10 ms, and most commands do not edit

    if len(path) == 1:
        table[path[0]] = value
    else:
        table.append(tomlkit.key(list(path)), value)


def _add_new_table(table: _EditedTable, path: KeyPath, value: str) -> None:
    """Add `[b]`, and `c = value` below it."""
    import tomlkit

    inner = tomlkit.table()
    inner[path[-1]] = value
    for part in reversed(path[1:-1]):
        outer = tomlkit.table(is_super_table=True)
        outer[part] = inner
        inner = outer
    table[path[0]] = inner


def _add_braces(table: _EditedTable, path: KeyPath, value: str) -> None:
    """Add `b = {c = value}`. Below a table in braces, tomlkit can add no other form."""
    import tomlkit

    inner: Any = value
    for part in reversed(path[1:]):
        outer = tomlkit.inline_table()
        outer[part] = inner
        inner = outer
    table[path[0]] = inner


def _above_next_header(text: str, region: Region) -> Region:
    """Return the region of a new key, moved above the comment that belongs to the next header.

    tomlkit adds a key below all comments and blank lines of its table. But to a reader, a comment
    directly above a header is about this header.
    """
    next_line = text[region.start :].lstrip(" \t")
    # A region that replaces blanks cannot be moved, because the blanks are only in this place.
    if region.old or not next_line.startswith("["):
        return region
    start = _skip_lines_above(text, region.start, lambda line: line.startswith("#"))
    start_of_blank_lines = _skip_lines_above(text, start, lambda line: line == "")
    if start_of_blank_lines == start:
        return replace(region, start=start)
    # The blank lines separate the key from the header, so the key needs none of its own.
    lines = region.new.rstrip("\r\n") + _newline_of(region.new)
    return replace(region, start=start_of_blank_lines, new=lines)


def _skip_lines_above(text: str, position: int, is_skipped: Callable[[str], bool]) -> int:
    """Return the start of the lines directly above the position for which `is_skipped` is true."""
    while position > 0:
        start = text.rfind("\n", 0, position - 1) + 1
        line = text[start:position].strip()
        if not is_skipped(line):
            break
        position = start
    return position


def _edit(text: str, change: Callable[[_EditedTable], None]) -> str | None:
    """Return the text after a change of its tables, or None if tomlkit fails to change it."""
    import tomlkit

    try:
        tables = tomlkit.parse(text)
        change(tables)
        return tables.as_string()
    except CannotEdit:
        raise
    # There is no list of what tomlkit can raise. We saw ValueError, AttributeError and
    # RecursionError for texts that are valid.
    except Exception:
        return None


def _table_at(tables: _EditedTable, path: KeyPath) -> _EditedTable:
    for part in path:
        tables = tables[part]
    return tables


def _is_written_as_value(item: _EditedTable) -> bool:
    """Return whether the item is behind `key =`. A table with a header or dotted keys is not."""
    from tomlkit.items import AoT, InlineTable

    return isinstance(item, InlineTable) or not isinstance(item, (dict, AoT))


def _new_placeholder() -> str:
    """Return a text that is in no file."""
    return f"placeholder-{os.urandom(16).hex()}"


def _find_gap(text: str | None, placeholder: str) -> Gap | None:
    """Return the gap where the placeholder is, or None if there is no text or no placeholder."""
    if text is None:
        return None
    before, found, after = text.partition(f'"{placeholder}"')
    if not found:
        return None
    return Gap(before, after)


def _depth_of_nearest_table(document: TomlTable, path: KeyPath) -> int:
    """Return how many parts of the path are tables that exist. The key itself does not count."""
    for depth in range(len(path) - 1, 0, -1):
        if value_at(document, path[:depth]) is not None:
            return depth
    return 0


def _refuse_large(new_text: str, path: KeyPath) -> None:
    """Raise CannotEdit if the new text would be too large to be read again."""
    if len(new_text.encode()) > MAX_TOML_BYTES:
        # The file could be changed in a text editor, but then no command could read it.
        hint = "Use a shorter value, or remove other keys first."
        raise CannotEdit(path, f"the file would become {TOO_LARGE}", hint)
