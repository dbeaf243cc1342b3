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
    Difference,
    Template,
    documents_without,
    find_difference,
    is_blank,
    reads_as,
    removes_one_key,
    replaces_only_value,
    with_value,
)
from .toml_cost import is_expensive
from .toml_key import KeyPath, TomlTable, TomlValue, show_key, show_value, value_at

_MAX_EDITED_PARTS = 50
"""The number of parts of the longest key that is set. tomlkit cannot remove one of 80 parts."""

_UNSAFE = "the edit would change other parts of the file"

EditedTable = Any
"""A table of tomlkit. Its classes have no useful base class: some of them only look like tables."""

_PutValue = Callable[[EditedTable, str], None]
"""A function that puts a value somewhere into a document of tomlkit."""

_AddKey = Callable[[EditedTable, KeyPath, str], None]
"""A function that adds a key and its value to a table of tomlkit. The path starts in this table."""


class CannotEdit(Exception):
    """A change of one key that is refused, because it could damage other parts of the file."""

    def __init__(self, path: KeyPath, reason: str, hint: str = "") -> None:
        super().__init__(f"{show_key(path)} cannot be changed: {reason}")
        self.path = path
        self.reason = reason
        self.hint = hint
        """What the user can do about it. It is empty if only a text editor helps."""


class WrongKind(CannotEdit):
    """A change that is refused because a table is where a value is needed, or the reverse."""

    def __init__(self, path: KeyPath, obstacle: KeyPath, found: TomlValue) -> None:
        if obstacle == path:
            reason = f"{show_key(obstacle)} is a table, not a value"
        else:
            reason = f"{show_key(obstacle)} is not a table"
        super().__init__(path, reason)
        self.obstacle = obstacle
        """The key that is in the way: `path` if it is a table, or else a table above it."""
        self.found = found
        """The table or the value of the obstacle."""


def set_value(text: str, path: KeyPath, value: TomlValue) -> str:
    """Return the text with this value for the key. Missing tables are added.

    Raise WrongKind if the value would replace a table, or if a key above it is not a table.
    Raise CannotEdit if there is no safe edit, and ValueError if the text is not TOML.
    """
    document = parse(text)
    refuse_wrong_kind(document, path, value)
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
    if not can_be_edited(new_text):
        raise CannotEdit(path, "the value is nested too deep")
    return new_text


def unset_value(text: str, path: KeyPath) -> str:
    """Return the text without the key. A comment behind its value is removed too.

    The header of a table stays when its last key is removed, and so do empty braces. A table
    without a header, such as `a` in `a.b = 1`, disappears with its last key.

    Raise WrongKind if the key is a table with a header. Raise CannotEdit if there is no such key or
    no safe edit, and ValueError if the text is not TOML.
    """
    document = parse(text)
    found = value_at(document, path)
    if found is None:
        raise CannotEdit(path, "it is not set, or it is in a list of tables")
    _refuse_expensive(text, path)

    def remove_key(edited_document: EditedTable) -> None:
        parent = table_at(edited_document, path[:-1])
        if not is_written_as_value(parent[path[-1]]):
            raise WrongKind(path, path, found)
        del parent[path[-1]]

    new_text = edit(text, remove_key)
    # The document shows no comments. So look at the texts too.
    if new_text is None or not removes_one_key(text, find_difference(text, new_text)):
        raise CannotEdit(path, _UNSAFE)
    # Whether tables that are empty now have disappeared depends on how they were written.
    for expected in documents_without(document, path):
        if reads_as(new_text, expected):
            return new_text
    raise CannotEdit(path, _UNSAFE)


def refuse_wrong_kind(document: TomlTable, path: KeyPath, value: TomlValue) -> None:
    """Raise WrongKind if the value would replace a table, or if a key above it is not a table."""
    # For the path a.b.c, look at a and at a.b.
    for depth in range(1, len(path)):
        path_above = path[:depth]
        value_above = value_at(document, path_above)
        if value_above is not None and not isinstance(value_above, dict):
            raise WrongKind(path, path_above, value_above)
    # A table may be replaced by a table, and `{}` by anything: no key is lost.
    old_value = value_at(document, path)
    if isinstance(old_value, dict) and old_value and not isinstance(value, dict):
        raise WrongKind(path, path, old_value)


def _refuse_expensive(text: str, path: KeyPath) -> None:
    """Raise CannotEdit if tomlkit could need more than a few seconds to parse the text."""
    if is_expensive(text):
        raise CannotEdit(path, "the file has too many keys with dots in them")


def _replace_value(text: str, document: TomlTable, path: KeyPath, value: TomlValue) -> str:
    """Return the text with another value for a key that has one.

    Raise WrongKind if the old value is a table with a header or with dotted keys. Raise CannotEdit
    if there is no safe edit.
    """
    old_value = value_at(document, path)

    def put_value(edited_document: EditedTable, new_value: str) -> None:
        table = table_at(edited_document, path[:-1])
        if not is_written_as_value(table[path[-1]]):
            raise WrongKind(path, path, old_value)
        table[path[-1]] = new_value

    template = _make_template(text, put_value)
    # In rare cases, tomlkit also changes a comment or another key.
    if template is None or not replaces_only_value(template, text, old_value):
        raise CannotEdit(path, _UNSAFE)
    new_text = template.filled(show_value(value))
    _refuse_large(new_text, path)
    if not reads_as(new_text, with_value(document, path, value)):
        raise CannotEdit(path, _UNSAFE)
    return new_text


def _make_template(text: str, put_value: _PutValue) -> Template | None:
    """Put a value into the text with tomlkit, and return the new text with a gap in its place.

    Return None if tomlkit fails.
    """
    # A string that is in no file. So its place in the new text is certain.
    placeholder = f"placeholder-{os.urandom(16).hex()}"
    new_text = edit(text, lambda edited_document: put_value(edited_document, placeholder))
    if new_text is None:
        return None
    # tomlkit writes strings in double quotes.
    before, found, after = new_text.partition(f'"{placeholder}"')
    if not found:
        return None
    return Template(before, after)


def _add_key(text: str, document: TomlTable, path: KeyPath, value: TomlValue) -> str:
    """Return the text with a new key. Raise CannotEdit if every form changes something else too."""
    for old_text in _texts_to_extend(text):
        new_text = _first_safe_form(old_text, document, path, value)
        if new_text is None:
            continue
        # A key in the middle of the file is no reason to end the last line.
        if old_text == text or new_text.startswith(old_text):
            return new_text
    raise CannotEdit(path, _UNSAFE)


def _texts_to_extend(text: str) -> list[str]:
    """Return the text, and if its last line has no line end, also with one. Begin with the best."""
    if text.endswith("\n"):
        return [text]
    ended_text = text + newline_of(text)
    _, _, last_line = text.rpartition("\n")
    if last_line and is_blank(last_line):
        # The blanks would be the indentation of a new header.
        return [ended_text, text]
    # tomlkit 0.15 adds the key to the last line if that is a dotted key of three or more parts.
    # Then it has to be ended first.
    return [text, ended_text]


def _first_safe_form(
    text: str,
    document: TomlTable,
    path: KeyPath,
    value: TomlValue,
) -> str | None:
    """Return the text with a new key, or None if each form changes something else too.

    If the table `a` exists, these are the forms of the key a.b.c, the usual one first:

        b.c = value        below the last key of the table `a`
        [a.b]              a new table, with `c = value` below the header
        b = {c = value}    the only form that is possible if `a` is in braces
    """
    table_path = _nearest_table(document, path)
    new_parts = path[len(table_path) :]
    forms = [_add_dotted_key, _add_new_table, _add_braces]
    if table_path == () and len(new_parts) > 1:
        # At the top of a file, people do not write `a.b.c = value`. They write a header, [a.b].
        forms.remove(_add_dotted_key)

    expected = with_value(document, path, value)
    for add_key in forms:
        difference = _insert_key(text, table_path, new_parts, add_key, show_value(value))
        if difference is None:
            continue
        _refuse_large(difference.applied_to(text), path)
        # Prefer the place that a person would choose. If it is not safe, keep the one of tomlkit.
        for candidate in (_above_next_header(text, difference), difference):
            new_text = candidate.applied_to(text)
            if reads_as(new_text, expected):
                return new_text
    return None


def newline_of(text: str) -> str:
    """Return what the lines of the text end with."""
    if "\r\n" in text:
        return "\r\n"
    return "\n"


def _insert_key(
    text: str,
    table_path: KeyPath,
    new_parts: KeyPath,
    add_key: _AddKey,
    value_text: str,
) -> Difference | None:
    """Return the lines that tomlkit adds for a new key. Return None if it changes anything else.

    `add_key` adds a key with these parts, relative to the existing table at `table_path`.
    """

    def put_value(edited_document: EditedTable, new_value: str) -> None:
        add_key(table_at(edited_document, table_path), new_parts, new_value)

    template = _make_template(text, put_value)
    if template is None:
        return None
    difference = find_difference(text, template.filled(value_text))
    # Adding a key may replace the blanks in `{ }`, and nothing else.
    if not is_blank(difference.old):
        return None
    # tomlkit ends each new line with a line feed, even if the other lines end with "\r\n".
    new_lines = difference.new.replace("\r\n", "\n").replace("\n", newline_of(text))
    return replace(difference, new=new_lines)


def _add_dotted_key(table: EditedTable, path: KeyPath, value: str) -> None:
    """Add the key (b, c) to the table as `b.c = value`, and the key (c,) as `c = value`."""
    import tomlkit  # 10 ms, and most commands do not edit

    if len(path) == 1:
        table[path[0]] = value
    else:
        table.append(tomlkit.key(list(path)), value)


def _add_new_table(table: EditedTable, path: KeyPath, value: str) -> None:
    """Add the key (b, c, d) to the table `a` as a header `[a.b.c]`, and `d = value` below it."""
    import tomlkit  # 10 ms, and most commands do not edit

    inner = tomlkit.table()
    inner[path[-1]] = value
    for part in reversed(path[1:-1]):
        # A super table contains only tables, and gets no header of its own.
        outer = tomlkit.table(is_super_table=True)
        outer[part] = inner
        inner = outer
    table[path[0]] = inner


def _add_braces(table: EditedTable, path: KeyPath, value: str) -> None:
    """Add the key (b, c) to the table as `b = {c = value}`.

    In a table that is itself in braces, tomlkit can add no other form.
    """
    import tomlkit  # 10 ms, and most commands do not edit

    inner: Any = value
    for part in reversed(path[1:]):
        outer = tomlkit.inline_table()
        outer[part] = inner
        inner = outer
    table[path[0]] = inner


def _above_next_header(text: str, new_key: Difference) -> Difference:
    """Return the new key in another place: above the comment that belongs to the next header.

    tomlkit adds a key at the end of its table. If a header follows, this is directly above it:

        [a]
        x = 1

        # about b
        [b]

    The new key of the table `a` would separate `# about b` from [b]. So it moves below `x = 1`.
    """
    next_line = text[new_key.start :].lstrip(" \t")
    # A key that replaces the blanks in `{ }` cannot be moved out of the braces.
    if new_key.old or not next_line.startswith("["):
        return new_key
    start_of_comment = _skip_lines_above(text, new_key.start, lambda line: line.startswith("#"))
    start_of_blank_lines = _skip_lines_above(text, start_of_comment, lambda line: line == "")
    if start_of_blank_lines == start_of_comment:
        return replace(new_key, start=start_of_comment)
    # The blank lines separate the key from the header, so the key needs none of its own.
    lines = new_key.new.rstrip("\r\n") + newline_of(new_key.new)
    return replace(new_key, start=start_of_blank_lines, new=lines)


def _skip_lines_above(text: str, position: int, is_skipped: Callable[[str], bool]) -> int:
    """Return the start of the lines directly above the position for which `is_skipped` is true.

    `is_skipped` gets each line without blanks around it. The position must be the start of a line.
    """
    while position > 0:
        start = text.rfind("\n", 0, position - 1) + 1
        line = text[start:position].strip()
        if not is_skipped(line):
            break
        position = start
    return position


def edit(text: str, change: Callable[[EditedTable], None]) -> str | None:
    """Let `change` edit the document of tomlkit, and return its text, or None if tomlkit fails.

    A CannotEdit that `change` raises is not a failure of tomlkit, and is raised again.
    """
    import tomlkit  # 10 ms, and most commands do not edit

    try:
        edited_document = tomlkit.parse(text)
        change(edited_document)
        return edited_document.as_string()
    except CannotEdit:
        raise
    # There is no list of what tomlkit can raise. We saw ValueError, AttributeError and
    # RecursionError for texts that are valid.
    except Exception:
        return None


def can_be_edited(text: str) -> bool:
    """Return whether tomlkit can parse the text."""
    return edit(text, lambda _edited_document: None) is not None


def table_at(edited_document: EditedTable, path: KeyPath) -> EditedTable:
    """Return the table at this path in a document of tomlkit."""
    table = edited_document
    for part in path:
        table = table[part]
    return table


def is_written_as_value(item: EditedTable) -> bool:
    """Return whether the item is the value in `key = value`.

    A table in braces is. A table with a header or with dotted keys is not, and a list of tables
    with headers is not.
    """
    from tomlkit.items import AoT, InlineTable  # 10 ms, and most commands do not edit

    return isinstance(item, InlineTable) or not isinstance(item, (dict, AoT))


def _nearest_table(document: TomlTable, path: KeyPath) -> KeyPath:
    """Return the path of the innermost existing table above a key: () is the document itself.

    For the key a.b.c, look for a.b, then for a. If one of them exists, it is a table: otherwise
    `refuse_wrong_kind` has refused the key before.
    """
    for depth in range(len(path) - 1, 0, -1):
        if value_at(document, path[:depth]) is not None:
            return path[:depth]
    return ()


def is_too_large(text: str) -> bool:
    """Return whether the text is too large to be read again."""
    return len(text.encode()) > MAX_TOML_BYTES


def _refuse_large(new_text: str, path: KeyPath) -> None:
    """Raise CannotEdit if the new text would be too large to be read again."""
    if is_too_large(new_text):
        # The file could be changed in a text editor, but then no command could read it.
        hint = "Use a shorter value, or remove other keys first."
        raise CannotEdit(path, f"the file would become {TOO_LARGE}", hint)
