"""Change one key of a TOML text, and leave every other byte of the text as it is.

tomlkit finds the key, or the place for a new one: it parses the text and puts a placeholder there.
Then the text of the value replaces the placeholder. tomlkit is not trusted with the rest of the
file: in rare cases it moves tables, drops a comment, or writes invalid TOML. So each edit is
checked twice:

* The old and the new text are compared. They may differ in one *region* only: the text of the old
  value, the lines of the new key, or the lines of the removed key. Every other byte stays. In a
  table in braces, blanks next to the region may change too.
* tomllib reads the old and the new text. Only the requested key may differ, in value or type.

An edit that fails a check is refused with CannotEdit. So a new key can be in an unusual place, but
no edit stores a wrong value, changes another key, or loses the comment of another key.

In our tests with 5,500 random texts and all TOML files of a Python environment, tomlkit did what
was requested in each file that a person had written. Most refused edits were in tables in braces
that contain dotted keys or dates: `{a.b = 1, c = 1979-05-27}`.
"""

import os
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from ..safety.toml_file import parse
from ..safety.toml_limits import MAX_TOML_BYTES, comments_in, split_at_delimiters
from .toml_key import Path, TomlTable, TomlValue, get, show_key, show_plain

_MAX_PARSE_COST = 1_000_000
"""The highest cost of a text that is edited: see `_parse_cost`."""

_MAX_EDITED_PARTS = 50
"""The number of parts of the longest key that is set. tomlkit cannot remove one of 80 parts."""

_UNSAFE = "the edit would change other parts of the file"

_KitTable = Any
"""A table of tomlkit. Its classes have no useful base class: some of them only look like tables."""

_AddKey = Callable[[_KitTable, Path, str], None]
"""A function that adds a key to a table of tomlkit. The path starts in this table."""


class CannotEdit(Exception):
    """A change of one key that is refused, because it could damage other parts of the file."""

    def __init__(self, path: Path, reason: str) -> None:
        super().__init__(f"{show_key(path)} cannot be changed: {reason}")
        self.path = path
        self.reason = reason


class NotAValue(CannotEdit):
    """A change that is refused because a table is where a value is needed, or the reverse."""

    def __init__(self, path: Path, at: Path, found: TomlValue) -> None:
        if at == path:
            reason = f"{show_key(at)} is a table, not a value"
        else:
            reason = f"{show_key(at)} is not a table"
        super().__init__(path, reason)
        self.at = at
        """The key that is in the way: `path`, or a beginning of it."""
        self.found = found
        """The table or the value of that key."""


@dataclass(frozen=True)
class _Gap:
    """A text with a gap where a value belongs."""

    before: str
    after: str

    def filled(self, value_text: str) -> str:
        """Return the text with the value in the gap."""
        return self.before + value_text + self.after


@dataclass(frozen=True)
class _Region:
    """The one region in which two texts differ. Before and after it, they are the same."""

    start: int
    old: str
    new: str

    def applied_to(self, old_text: str) -> str:
        """Return the new text."""
        end = self.start + len(self.old)
        return old_text[: self.start] + self.new + old_text[end:]


def set_value(text: str, path: Path, value: TomlValue) -> str:
    """Return the text with this value for the key. Missing tables are added.

    Raise NotAValue if the value would replace a table, or if a part of the path is not a table.
    Raise CannotEdit if there is no safe edit, and ValueError if the text is not TOML.
    """
    document = parse(text)
    _refuse_wrong_kind(document, path, value)
    if len(path) > _MAX_EDITED_PARTS:
        raise CannotEdit(path, f"it has more than {_MAX_EDITED_PARTS} parts")
    _refuse_expensive(text, path)
    if get(document, path) is None:
        new_text = _add_key(text, document, path, value)
    else:
        new_text = _replace_value(text, document, path, value)
    _refuse_expensive(new_text, path)
    # tomlkit cannot parse a list in 100 lists. Without this check, the edit that adds one would be
    # the last edit of the file.
    if _edit(new_text, lambda tables: None) is None:
        raise CannotEdit(path, "the value is nested too deep")
    return new_text


def unset_value(text: str, path: Path) -> str:
    """Return the text without the key. A comment behind its value is removed too.

    The header of a table stays when its last key is removed, and so do empty braces. A table
    without a header, such as `a` in `a.b = 1`, disappears with its last key.

    Raise NotAValue if the key is a table with a header. Raise CannotEdit if there is no such key or
    no safe edit, and ValueError if the text is not TOML.
    """
    document = parse(text)
    found = get(document, path)
    if found is None:
        raise CannotEdit(path, "it is not set, or it is in a list of tables")
    _refuse_expensive(text, path)

    def remove_key(tables: _KitTable) -> None:
        parent = _table_at(tables, path[:-1])
        if not _is_written_as_value(parent[path[-1]]):
            raise NotAValue(path, path, found)
        del parent[path[-1]]

    new_text = _edit(text, remove_key)
    if new_text is None or not _removes_one_key(text, _find_region(text, new_text)):
        raise CannotEdit(path, _UNSAFE)
    for expected in _documents_without(document, path):
        if _reads_as(new_text, expected):
            return new_text
    raise CannotEdit(path, _UNSAFE)


def _refuse_wrong_kind(document: TomlTable, path: Path, value: TomlValue) -> None:
    """Raise NotAValue if the value would replace a table, or if a part of the path is no table."""
    for depth in range(1, len(path)):
        found = get(document, path[:depth])
        if found is not None and not isinstance(found, dict):
            raise NotAValue(path, path[:depth], found)
    found = get(document, path)
    if isinstance(found, dict) and found and not isinstance(value, dict):
        raise NotAValue(path, path, found)


def _refuse_expensive(text: str, path: Path) -> None:
    """Raise CannotEdit if tomlkit could need more than a few seconds to parse the text."""
    if _parse_cost(text) > _MAX_PARSE_COST:
        raise CannotEdit(path, "the file has too many keys with dots in them")


def _parse_cost(text: str) -> float:
    """Return an estimate of the time that tomlkit takes to parse the text.

    tomlkit copies the tables that dotted keys share again and again. With 400 lines such as
    `a.b.c.k1 = 1` below a header it took 6 s, and with 100 lines of 12 dots more than 10 s. So the
    time grows with the square of the number of dots, and with the dots of the longest key. Dots in
    headers cost less.

    Of the texts that we tried, the slowest one with a cost of at most 1,000,000 took it 8 s. It had
    210 KB, and 2,000 lists of tables in turn. Files that people write take milliseconds.
    """
    all_dots = 0.0
    most_dots = 0
    last_delimiter = ""
    for piece in split_at_delimiters(text):
        is_header = last_delimiter == "[" and piece.delimiter == "]"
        if piece.delimiter == "=":
            all_dots += piece.dots
            most_dots = max(most_dots, piece.dots)
        elif is_header:
            all_dots += piece.dots / 2
            most_dots = max(most_dots, piece.dots)
        last_delimiter = piece.delimiter
    return all_dots**2 * most_dots


def _replace_value(text: str, document: TomlTable, path: Path, value: TomlValue) -> str:
    """Return the text with another value for a key that has one."""
    old_value = get(document, path)
    placeholder = _new_placeholder()

    def put_placeholder(tables: _KitTable) -> None:
        parent = _table_at(tables, path[:-1])
        if not _is_written_as_value(parent[path[-1]]):
            raise NotAValue(path, path, old_value)
        parent[path[-1]] = placeholder

    gap = _find_gap(_edit(text, put_placeholder), placeholder)
    if gap is None or not _is_where_value_was(gap, text, old_value):
        raise CannotEdit(path, _UNSAFE)
    new_text = gap.filled(_as_toml(value))
    _refuse_large(new_text, path)
    if not _reads_as(new_text, _with_value(document, path, value)):
        raise CannotEdit(path, _UNSAFE)
    return new_text


def _add_key(text: str, document: TomlTable, path: Path, value: TomlValue) -> str:
    """Return the text with a new key, in the first form that changes nothing else.

    In a table that exists, this is a key, dotted if need be, below the last one. If no part of the
    path exists, it is a new table at the end.
    """
    depth = _depth_of_nearest_table(document, path)
    forms = [_add_new_table, _add_braces]
    if depth > 0 or len(path) == 1:
        forms.insert(0, _add_dotted_key)
    expected = _with_value(document, path, value)
    for add_key in forms:
        region = _region_of_new_key(text, path, depth, add_key, _as_toml(value))
        if region is None:
            continue
        _refuse_large(region.applied_to(text), path)
        for candidate in (_above_next_header(text, region), region):
            new_text = candidate.applied_to(text)
            if _reads_as(new_text, expected):
                return new_text
    raise CannotEdit(path, _UNSAFE)


def _region_of_new_key(
    text: str,
    path: Path,
    depth: int,
    add_key: _AddKey,
    value_text: str,
) -> _Region | None:
    """Return what tomlkit adds for a new key, or None if it changes something else too.

    `depth` is the number of parts of the path that are tables that exist.
    """
    placeholder = _new_placeholder()

    def add(tables: _KitTable) -> None:
        add_key(_table_at(tables, path[:depth]), path[depth:], placeholder)

    gap = _find_gap(_edit(text, add), placeholder)
    if gap is None:
        return None
    region = _find_region(text, gap.filled(value_text))
    if not _is_blank(region.old):
        return None
    # tomlkit ends each new line with a line feed, whatever the other lines end with.
    newline = "\r\n" if "\r\n" in text else "\n"
    lines = region.new.replace("\r\n", "\n").replace("\n", newline)
    return replace(region, new=lines)


def _add_dotted_key(table: _KitTable, path: Path, value: str) -> None:
    """Add `b.c = value`."""
    import tomlkit  # 5 ms, and most commands do not edit

    if len(path) == 1:
        table[path[0]] = value
    else:
        table.append(tomlkit.key(list(path)), value)


def _add_new_table(table: _KitTable, path: Path, value: str) -> None:
    """Add `[b]`, and `c = value` below it."""
    import tomlkit

    inner = tomlkit.table()
    inner[path[-1]] = value
    for part in reversed(path[1:-1]):
        outer = tomlkit.table(is_super_table=True)
        outer[part] = inner
        inner = outer
    table[path[0]] = inner


def _add_braces(table: _KitTable, path: Path, value: str) -> None:
    """Add `b = {c = value}`. Below a table in braces, tomlkit can add no other form."""
    import tomlkit

    inner: Any = value
    for part in reversed(path[1:]):
        outer = tomlkit.inline_table()
        outer[part] = inner
        inner = outer
    table[path[0]] = inner


def _above_next_header(text: str, region: _Region) -> _Region:
    """Return the region of a new key, moved above the comment that belongs to the next header.

    tomlkit adds a key below all comments and blank lines of its table. But to a reader, a comment
    directly above a header is about this header.
    """
    next_line = text[region.start :].lstrip(" \t")
    if region.old or not next_line.startswith("["):
        return region
    start = _skip_lines_above(text, region.start, lambda line: line.startswith("#"))
    start_of_blank_lines = _skip_lines_above(text, start, lambda line: line == "")
    if start_of_blank_lines == start:
        return replace(region, start=start)
    # The blank lines separate the key from the header, so the key needs none of its own.
    newline = "\r\n" if region.new.endswith("\r\n") else "\n"
    lines = region.new.rstrip("\r\n") + newline
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


def _edit(text: str, change: Callable[[_KitTable], None]) -> str | None:
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


def _table_at(tables: _KitTable, path: Path) -> _KitTable:
    for part in path:
        tables = tables[part]
    return tables


def _is_written_as_value(item: _KitTable) -> bool:
    """Return whether the item is behind `key =`. A table with a header or dotted keys is not."""
    from tomlkit.items import AoT, InlineTable

    return isinstance(item, InlineTable) or not isinstance(item, (dict, AoT))


def _new_placeholder() -> str:
    """Return a text that is in no file."""
    return f"placeholder-{os.urandom(16).hex()}"


def _find_gap(text: str | None, placeholder: str) -> _Gap | None:
    """Return the gap where the placeholder is, or None if there is no text or no placeholder."""
    if text is None:
        return None
    before, found, after = text.partition(f'"{placeholder}"')
    if not found:
        return None
    return _Gap(before, after)


def _is_where_value_was(gap: _Gap, text: str, old_value: TomlValue) -> bool:
    """Return whether the gap is in place of the old value, and of nothing else."""
    end = len(text) - len(gap.after)
    if not text.startswith(gap.before) or not text.endswith(gap.after) or end < len(gap.before):
        return False
    replaced = text[len(gap.before) : end]
    # If a comment were behind the value, it would hide the bracket, and this would not be TOML.
    return _reads_as(f"value = [{replaced}]", {"value": [old_value]})


def _find_region(old_text: str, new_text: str) -> _Region:
    """Return the region in which two texts differ. It starts at the start of a line if possible.

    The first character that differs can be later: if the line `a1 = 1` is added above `a2 = 2`,
    it is the `1`, because both lines start with `a`.
    """
    start = _common_length(old_text, new_text)
    length_after = _common_length(old_text[start:][::-1], new_text[start:][::-1])
    old_end = len(old_text) - length_after
    new_end = len(new_text) - length_after
    region = _Region(start, old_text[start:old_end], new_text[start:new_end])

    start_of_line = old_text.rfind("\n", 0, start) + 1
    offset = start - start_of_line
    moved = _Region(
        start=start_of_line,
        old=old_text[start_of_line : max(old_end - offset, start_of_line)],
        new=new_text[start_of_line : max(new_end - offset, start_of_line)],
    )
    if moved.applied_to(old_text) == new_text:
        return moved
    return region


def _common_length(one: str, other: str) -> int:
    """Return how many characters are the same at the start of both texts."""
    return len(os.path.commonprefix([one, other]))  # noqa: RUF071 (characters, not directories)


def _is_blank(text: str) -> bool:
    return text.strip(" \t") == ""


def _removes_one_key(old_text: str, region: _Region) -> bool:
    """Return whether one key is removed, and no comment of another key."""
    if not _is_blank(region.new):
        return False
    end = region.start + len(region.old)
    starts_line = region.start == 0 or old_text[region.start - 1] == "\n"
    ends_line = end == len(old_text) or old_text[end - 1] == "\n"
    if starts_line and ends_line:
        return _is_one_statement(region.old)
    # A part of a table in braces is removed. The comment behind the braces stays.
    new_text = region.applied_to(old_text)
    return "\n" not in region.old and comments_in(new_text) == comments_in(old_text)


def _is_one_statement(text: str) -> bool:
    """Return whether the lines are one key and its value, without a line that is a comment.

    If the first or the last line is a comment, the other lines mean the same without it.
    """
    document = _read(text)
    if document is None or len(document) != 1:
        return False
    lines = text.removesuffix("\n").split("\n")
    without_first = "\n".join(lines[1:]) + "\n"
    without_last = "\n".join(lines[:-1]) + "\n"
    return not _reads_as(without_first, document) and not _reads_as(without_last, document)


def _depth_of_nearest_table(document: TomlTable, path: Path) -> int:
    """Return how many parts of the path are tables that exist. The key itself does not count."""
    for depth in range(len(path) - 1, 0, -1):
        if get(document, path[:depth]) is not None:
            return depth
    return 0


def _with_value(table: TomlTable, path: Path, value: TomlValue) -> TomlTable:
    """Return a copy of the table with another value for the key."""
    name = path[0]
    changed = dict(table)
    if len(path) == 1:
        changed[name] = value
    else:
        changed[name] = _with_value(table.get(name, {}), path[1:], value)
    return changed


def _documents_without(document: TomlTable, path: Path) -> list[TomlTable]:
    """Return the document without the key; then also without each table that this leaves empty."""
    documents = []
    for depth in range(len(path) - 1, -1, -1):
        remaining = dict(get(document, path[:depth]))
        del remaining[path[depth]]
        if depth == 0:
            documents.append(remaining)
        else:
            documents.append(_with_value(document, path[:depth], remaining))
        if remaining:
            break
    return documents


def _refuse_large(new_text: str, path: Path) -> None:
    """Raise CannotEdit if the new text would be too large to be read again."""
    if len(new_text.encode()) > MAX_TOML_BYTES:
        limit = f"{MAX_TOML_BYTES // 1024} KiB"
        raise CannotEdit(path, f"the file would become larger than {limit}")


def _reads_as(text: str, expected: TomlTable) -> bool:
    """Return whether tomllib reads exactly this document."""
    document = _read(text)
    return document is not None and _is_same(document, expected)


def _read(text: str) -> TomlTable | None:
    """Return the document, or None if the text is not TOML."""
    try:
        return parse(text)
    except (RecursionError, ValueError):
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
    if isinstance(one, float):
        # `nan` does not equal itself.
        return repr(one) == repr(other)
    return bool(one == other)


def _as_toml(value: TomlValue) -> str:
    """Return the value as TOML on one line."""
    if isinstance(value, dict):
        pairs = [f"{show_key((key,))} = {_as_toml(member)}" for key, member in value.items()]
        return "{" + ", ".join(pairs) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(_as_toml(member) for member in value) + "]"
    if isinstance(value, (str, int)):
        return show_plain(value)
    import tomlkit

    return tomlkit.item(value).as_string()
